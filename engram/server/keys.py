"""API keys: what one is, how a presented one is recognised, and the file they are kept in."""

from __future__ import annotations

import hmac
import os
import stat
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeAlias

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engram.domain.access import Access
from engram.domain.scope import Scope, check_identifier
from engram.errors import InvalidInput, KeyRefused, KeysUnusable
from engram.ports import Clock
from engram.system import FileLock, private

# --- API keys: what one is, how one is made, and how a presented one is recognised

KEY_PREFIX: Final = "engram_"
# Enough of the hash to name a key by; it says nothing about the token.
_KEY_ID_DIGITS: Final = 12

KeyState: TypeAlias = Literal["valid", "expired", "revoked"]


class ApiKey(BaseModel):
    """What is kept of a key; the token itself is not.

    Attributes:
        id: The beginning of ``digest``; names the key in commands.
        name: What people call it; stands in logs.
        digest: SHA-256 of the token, in hexadecimal.
        access: What it allows.
        namespace: The one it opens.
        user_id: The one user it opens; None for all of the namespace.
        created_at: When it was made.
        expires_at: From when on it is refused; None for never.
        revoked_at: When it was taken back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    access: Access
    namespace: str
    user_id: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> KeyState:
        """Whether it opens anything at ``now``, and if not, why."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return "expired"
        return "valid"


def new_key(
    secret: bytes,
    *,
    name: str,
    access: Access,
    namespace: str,
    user_id: str | None,
    now: datetime,
    expires_at: datetime | None = None,
) -> tuple[str, ApiKey]:
    """A token, to be shown once, and what is kept of it.

    Args:
        secret: 32 random bytes.
        name: What people call it; has the form of a user id.
        access: What it allows.
        namespace: The one it opens.
        user_id: The one user it opens; None for all.
        now: The present.
        expires_at: From when on it is refused.

    Raises:
        InvalidScope: the name, the namespace or the user id has a form that is refused.
        InvalidInput: it would be expired already.
    """
    check_identifier(name, "name of the key")
    Scope.of(namespace, name if user_id is None else user_id)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("The key would be expired already.", allowed="a time to come")
    token = KEY_PREFIX + urlsafe_b64encode(secret).decode().rstrip("=")
    digest = digest_of(token)
    return token, ApiKey(
        id=digest[:_KEY_ID_DIGITS],
        name=name,
        digest=digest,
        access=access,
        namespace=namespace,
        user_id=user_id,
        created_at=now,
        expires_at=expires_at,
    )


def digest_of(token: str) -> str:
    """What is kept of a token.

    One round of SHA-256 is right here: a token is 256 random bits, which cannot be
    guessed from its digest however fast guesses are. Slow hashes are for passwords,
    which people choose; here they would only slow every request down.
    """
    return sha256(token.encode()).hexdigest()


def matching(token: str, keys: Iterable[ApiKey]) -> ApiKey | None:
    """The key whose token this is; takes as long whether and wherever it stands."""
    digest = digest_of(token)
    found: ApiKey | None = None
    for key in keys:
        if hmac.compare_digest(key.digest, digest):
            found = key
    return found


# --- the file that API keys are kept in, and the keys that a running server knows

_log = structlog.get_logger("engram.server")

# Changes whenever the file does: a new file is renamed into its place.
_Stamp: TypeAlias = tuple[int, ...] | None
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class _Kept(BaseModel):
    """What the file holds."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    keys: tuple[ApiKey, ...] = ()


class KeyFile:
    """Keys in one JSON file, mode 0600, replaced as a whole.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[ApiKey, ...]:
        """Every key, in order of making; none when there is no file.

        Raises:
            KeysUnusable: it cannot be read, is no such file, or others may write it.
        """
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & _OTHERS_WRITE:
                    raise self._unusable(
                        "may be written by other users", "Take that from them: chmod go-w."
                    )
                self._check_folders()
                return _Kept.model_validate_json(file.read()).keys
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unusable(f"cannot be read ({error.strerror})") from error
        except ValidationError:
            # Not chained: its text would repeat what the file holds.
            raise self._unusable("is damaged, or of another version") from None

    def _check_folders(self) -> None:
        """Refuse a file that others could replace by one of theirs.

        In a folder with the sticky bit only a file's owner can, whoever may write there:
        so are the folders of mounted secrets.
        """
        for folder in {self.path.absolute().parent, self.path.resolve().parent}:
            mode = folder.stat().st_mode
            if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
                raise self._unusable(
                    f"lies in {folder}, where other users may write",
                    f"Take that from them: chmod go-w {folder}.",
                )

    def stamp(self) -> _Stamp:
        """Something that differs after every change."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(f"cannot be looked at ({error.strerror})") from error
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size

    def add(self, key: ApiKey, now: datetime) -> None:
        """Keep a new key.

        Raises:
            InvalidInput: a key that is valid has this name.
            KeysUnusable: the file cannot be read or written.
        """

        def change(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            if any(old.name == key.name and old.state(now) == "valid" for old in keys):
                raise InvalidInput(
                    f"There is a key named {key.name!r}.",
                    allowed="a name that no valid key has",
                    hint="`engram keys revoke` takes the old one back.",
                )
            return (*keys, key)

        self._change(change)

    def revoke(self, name_or_id: str, now: datetime) -> tuple[ApiKey, ...]:
        """Take back the keys of this id or name; those that were taken back now.

        Raises:
            InvalidInput: no key has this id or name.
            KeysUnusable: the file cannot be read or written.
        """
        revoked: list[ApiKey] = []

        def change(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            if not any(name_or_id in (key.id, key.name) for key in keys):
                raise InvalidInput(
                    "No key has this id or name.", hint="`engram keys list` shows them."
                )
            return tuple(map(after, keys))

        def after(key: ApiKey) -> ApiKey:
            if name_or_id not in (key.id, key.name) or key.revoked_at is not None:
                return key
            revoked.append(key.model_copy(update={"revoked_at": now}))
            return revoked[-1]

        self._change(change)
        return tuple(revoked)

    def _change(self, change: Callable[[tuple[ApiKey, ...]], tuple[ApiKey, ...]]) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                self._write(_Kept(keys=change(self.read())))
        except OSError as error:
            raise self._unusable(f"cannot be written ({error.strerror})") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, so that none takes back what another one added."""
        lock = FileLock(self._beside(".lock"))
        lock.try_acquire(wait=True)
        try:
            yield
        finally:
            lock.release()

    def _write(self, kept: _Kept) -> None:
        # A name that only this writer, who holds the lock, uses.
        fresh = self._beside(".new")
        fresh.unlink(missing_ok=True)
        with open(fresh, "xb", opener=private) as file:
            file.write(kept.model_dump_json(indent=2).encode())
            file.flush()
            os.fsync(file.fileno())
        # Where the path is a link, what it leads to is replaced.
        fresh.replace(self.path.resolve())

    def _beside(self, ending: str) -> Path:
        place = self.path.resolve()
        return place.with_name(f".{place.name}{ending}")

    def _unusable(self, why: str, hint: str = "") -> KeysUnusable:
        return KeysUnusable(
            f"The file of API keys, {self.path}, {why}.",
            hint=hint or "ENGRAM_KEYS_FILE names another one.",
        )


class KeyRing:
    """The keys that a running server knows: those of the file, at every moment.

    Args:
        file: Where they are kept.
        clock: The present, for keys that expire.
    """

    def __init__(self, file: KeyFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._keys: tuple[ApiKey, ...] = ()
        self._stamp: _Stamp = None

    def holder(self, token: str | None) -> ApiKey:
        """The valid key whose token this is.

        Raises:
            KeyRefused: there is none; why is not told.
            KeysUnusable: the file cannot be read.
        """
        found = matching(token, self._current()) if token and token.startswith(KEY_PREFIX) else None
        if found is None or found.state(self._clock()) != "valid":
            raise KeyRefused(
                "The API key is missing, unknown, revoked or expired.",
                allowed="a header `Authorization: Bearer engram_...`",
                hint="`engram keys create` makes a key.",
            )
        return found

    def has_valid(self) -> bool:
        """Whether any key opens anything now."""
        now = self._clock()
        return any(key.state(now) == "valid" for key in self._current())

    def _current(self) -> tuple[ApiKey, ...]:
        try:
            # Looked at before it is read: what changes in between is read again next time.
            stamp = self._file.stamp()
            if stamp != self._stamp:
                self._keys = self._file.read()
                self._stamp = stamp
                _log.info("read the API keys", count=len(self._keys))
        except KeysUnusable as error:
            _log.error("the API keys cannot be read", reason=str(error))
            # Those who ask are not told where the file is.
            raise KeysUnusable(
                "The server cannot read its API keys.", hint="Its log says why."
            ) from None
        return self._keys
