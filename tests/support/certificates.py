"""Certificates for servers of tests: a private authority, and what it vouches for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def write_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Make an authority, and a certificate of it for 127.0.0.1.

    Returns:
        The files of the authority's certificate, the server's, and the server's key.
    """
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    names = [
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        for name in ("an authority", "127.0.0.1")
    ]
    day, now = timedelta(days=1), datetime.now(UTC)

    def signed(subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> bytes:
        started = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
                critical=False,
            )
        )
        return started.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)

    files = tuple(folder / name for name in ("authority.pem", "server.pem", "server.key"))
    files[0].write_bytes(signed(names[0], authority, ca=True))
    files[1].write_bytes(signed(names[1], server, ca=False))
    files[2].write_bytes(server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files[0], files[1], files[2]
