"""API keys: how they are made, kept, recognised, and taken back."""

from __future__ import annotations

import hmac
import json
import os
import stat
from base64 import urlsafe_b64decode
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from engram.domain.access import Access
from engram.errors import EngramError, InvalidInput, InvalidScope, KeysUnusable
from engram.server.keys import KEY_PREFIX, KeyFile
from engram.system import new_secret
from tests.support.key_maker import KeyMaker, bearer

STATS = "/v1/namespaces/default/users/ada/stats"


def test_a_token_is_256_random_bits_with_a_prefix(key_maker: KeyMaker) -> None:
    """Tokens are recognisable, and hold as many random bits as promised; no two are alike."""
    tokens = {key_maker.token(f"key-{number}") for number in range(20)}
    assert len(tokens) == 20
    for token in tokens:
        assert token.startswith(KEY_PREFIX)
        assert len(urlsafe_b64decode(token.removeprefix(KEY_PREFIX) + "=")) == 32
    assert len({new_secret() for _ in range(20)}) == 20
    assert len(new_secret()) == 32


def test_only_a_digest_is_kept_and_only_its_owner_reads_it(key_maker: KeyMaker) -> None:
    """The file has mode 0600 and the token stands nowhere, nor in what Python prints of a key."""
    key = key_maker.key()
    (token,) = key_maker.tokens
    for path in key_maker.file.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert token.removeprefix(KEY_PREFIX).encode() not in path.read_bytes()
    assert key_maker.file.read() == (key,)
    assert key.digest not in repr(key)
    assert token not in repr(key)


def test_keys_that_are_made_at_the_same_time_are_all_kept(key_maker: KeyMaker) -> None:
    """Writers wait for each other: none takes back what another one added."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: key_maker.key(f"key-{number}"), range(24)))
    assert {key.name for key in key_maker.file.read()} == {f"key-{number}" for number in range(24)}


def test_a_name_is_taken_once_and_free_after_it_was_revoked(key_maker: KeyMaker) -> None:
    """Two valid keys never share a name, so that the log says which one asked."""
    first = key_maker.key("laptop")
    with pytest.raises(InvalidInput, match="There is a key named 'laptop'"):
        key_maker.key("laptop")
    assert [key.id for key in key_maker.file.revoke("laptop", key_maker.now)] == [first.id]
    assert key_maker.file.revoke(first.id, key_maker.now) == ()
    key_maker.key("laptop")
    with pytest.raises(InvalidInput, match="No key"):
        key_maker.file.revoke("desktop", key_maker.now)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"name": "two words"}, InvalidScope),
        ({"user": "a/b"}, InvalidScope),
        ({"namespace": ""}, InvalidScope),
        ({"days": 0}, InvalidInput),
    ],
)
def test_a_key_that_could_open_nothing_is_not_made(
    key_maker: KeyMaker, given: dict[str, Any], kind: type[EngramError]
) -> None:
    """Names of a form that is refused, and keys that are expired already, are typed errors."""
    with pytest.raises(kind):
        key_maker.key(**given)
    assert key_maker.file.read() == ()


async def test_a_running_server_knows_changes_at_once(
    web: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """Made, revoked, expired: the very next request meets it; every refusal is the same."""
    none = await web.get(STATS, headers=bearer("engram_none"))
    token = key_maker.token("laptop", days=1)
    assert (await web.get(STATS, headers=bearer(token))).status_code == 200
    key_maker.now += timedelta(days=1)
    expired = await web.get(STATS, headers=bearer(token))
    key_maker.now -= timedelta(hours=1)
    assert (await web.get(STATS, headers=bearer(token))).status_code == 200
    key_maker.file.revoke("laptop", key_maker.now)
    revoked = await web.get(STATS, headers=bearer(token))
    for refused in (none, expired, revoked):
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert {**refused.json(), "request_id": None} == {**none.json(), "request_id": None}


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer {}x", "Bearer é"]
)
async def test_what_is_no_key_opens_nothing(
    web: httpx.AsyncClient, key_maker: KeyMaker, given: str
) -> None:
    """Missing, cut off, lengthened, in another scheme or in other letters: refused."""
    header = given.format(key_maker.token()).encode("latin-1")
    assert (await web.get(STATS, headers={b"Authorization": header})).status_code == 401
    assert (await web.get(STATS)).status_code == 401


async def test_tokens_are_compared_in_constant_time(
    web: httpx.AsyncClient, key_maker: KeyMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests of all keys are compared by hmac, for a key that exists and for one that does not."""
    compared: list[str] = []
    compare = hmac.compare_digest

    def noted(kept: str, given: str) -> bool:
        compared.append(kept)
        return compare(kept, given)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    digests = [key_maker.key(f"key-{number}").digest for number in range(3)]
    for token in (key_maker.tokens[0], key_maker.tokens[2], KEY_PREFIX + "x" * 43):
        compared.clear()
        await web.get(STATS, headers=bearer(token))
        assert compared == digests


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2}', '{"keys": [{}]}'])
async def test_a_damaged_file_opens_nothing(
    web: httpx.AsyncClient, key_maker: KeyMaker, content: str
) -> None:
    """A file that cannot be understood locks everybody out, says so, and can be mended."""
    token = key_maker.token()
    whole = key_maker.file.path.read_bytes()
    key_maker.file.path.write_text(content)
    refused = await web.get(STATS, headers=bearer(token))
    assert (refused.status_code, refused.json()["code"]) == (503, "keys_unusable")
    assert str(key_maker.file.path) not in refused.text
    with pytest.raises(KeysUnusable, match="damaged"):
        key_maker.file.revoke("key", key_maker.now)
    assert key_maker.file.path.read_text() == content
    key_maker.file.path.write_bytes(whole)
    assert (await web.get(STATS, headers=bearer(token))).status_code == 200


def test_a_file_that_others_may_write_is_refused(key_maker: KeyMaker) -> None:
    """Whoever may write it could make keys."""
    key_maker.key()
    key_maker.file.path.chmod(0o664)
    with pytest.raises(KeysUnusable, match="may be written by other users"):
        key_maker.file.read()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_file_in_a_folder_that_others_may_write_is_refused(
    key_maker: KeyMaker, mode: int
) -> None:
    """They could put another file in its place; where only owners can, it is as good as any."""
    key_maker.token()
    folder = key_maker.file.path.parent
    before = folder.stat().st_mode & 0o777
    folder.chmod(mode)
    try:
        with pytest.raises(KeysUnusable, match="where other users may write"):
            key_maker.file.read()
        folder.chmod(mode | 0o1000)
        assert key_maker.file.read()
    finally:
        folder.chmod(before)


def test_a_linked_file_stays_a_link(key_maker: KeyMaker, tmp_path: Path) -> None:
    """Where the path is a link, as in mounted volumes, the file that it leads to is replaced."""
    (tmp_path / "volume").mkdir()
    link = tmp_path / "linked.json"
    link.symlink_to(tmp_path / "volume" / "keys.json")
    key_maker.file = KeyFile(link)
    key_maker.key()
    assert link.is_symlink()
    assert len(json.loads((tmp_path / "volume" / "keys.json").read_text())["keys"]) == 1


def test_a_folder_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    """A file in the place of the folder: the error names the path and the setting."""
    (tmp_path / "data").write_text("no folder")
    key_maker = KeyMaker(KeyFile(tmp_path / "data" / "keys.json"))
    with pytest.raises(KeysUnusable, match="ENGRAM_KEYS_FILE"):
        key_maker.key()


def test_access_includes_what_comes_before() -> None:
    """Reading is less than writing, and that less than operating."""
    assert [[one.includes(other) for other in Access] for one in Access] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_a_write_that_breaks_off_leaves_the_old_file(
    key_maker: KeyMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is replaced as a whole, once the new one is on the disk."""
    key_maker.key("old")

    def broken(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(KeysUnusable, match="No space left"):
        key_maker.key("new")
    assert [key.name for key in key_maker.file.read()] == ["old"]
