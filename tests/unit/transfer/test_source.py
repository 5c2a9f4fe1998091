"""Files that are imported: their format, what archives may hold, and where they are broken."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from engram.errors import UnreadableSource
from engram.transfer.source import SourceFile, SourceFormat, looks_like

HEADS = {
    SourceFormat.CHATGPT: b' [{"title": "x", "mapping": {"a": {}}}]',
    SourceFormat.CLAUDE: b'\xef\xbb\xbf[{"uuid": "x",\n "chat_messages": []}]',
    SourceFormat.LOCOMO: b'[{"qa": [], "conversation": {"session_1_date_time": "x"}}]',
    SourceFormat.JSONL: b'{"content": "I like \\"mapping\\": {."}\n{"content": "x"}',
    SourceFormat.ENGRAM: b'{"engram_export": 1}\n',
    SourceFormat.TRANSCRIPT: b"[2024-05-01 10:00] Ada: hi",
}


@pytest.mark.parametrize("wanted", HEADS)
def test_formats_are_told_by_how_they_begin(wanted: SourceFormat) -> None:
    """Each format is recognised; JSON of no known one is refused."""
    assert looks_like(HEADS[wanted]) is wanted
    with pytest.raises(UnreadableSource, match="no known format"):
        looks_like(b'[{"secret": 1}]')
    for first in (b'{"content": "' + b"x" * 300_000, b'{"role": "user"}\n', b'{"content": "cut\n'):
        assert looks_like(first) is SourceFormat.JSONL
    assert looks_like(b"[01/05/2024, 10:00:00] Ada: hi") is SourceFormat.TRANSCRIPT


def test_what_is_no_utf8_or_holds_nothing_is_told_so() -> None:
    """Before its format is asked for; a head that ends within a character is none of them."""
    latin = '{"content": "Olá mundo"}'.encode("latin-1")
    with pytest.raises(UnreadableSource, match="not UTF-8 at line 1"):
        looks_like(latin)
    with pytest.raises(UnreadableSource, match="not UTF-8 at line 2"):
        looks_like(b"[\n" + latin)
    with pytest.raises(UnreadableSource, match="no known format"):
        looks_like('[{"secret": "Olá'.encode()[:-1])
    for nothing in (b"[]", b"[ \n]\n", b"[" + b" " * 999):
        with pytest.raises(UnreadableSource, match="without anything in it"):
            looks_like(nothing)


def zipped(path: Path, **members: bytes) -> Path:
    """An archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"folder/{name}.json", data)
    return path


def test_all_parts_of_an_archive_are_read(tmp_path: Path) -> None:
    """Conversations in several files come in order; a broken one is named."""
    talk = {"uuid": "u", "chat_messages": [{"sender": "human", "text": "Hi.", "uuid": "m"}]}
    data = json.dumps([talk]).encode()
    path = zipped(tmp_path / "a.zip", **{"conversations-001": data, "conversations-000": data})
    source = SourceFile(path)
    assert source.format is SourceFormat.CLAUDE
    assert len(list(source.found())) == 2
    assert source.fingerprint() == SourceFile(path).fingerprint()
    broken = {"conversations-000": data, "conversations-001": data[:-3]}
    with pytest.raises(UnreadableSource, match=r"File 2 .*conversation 1"):
        list(SourceFile(zipped(tmp_path / "b.zip", **broken)).found())
    assert [one.place for one in source.found()] == [
        "file 1, conversation 1, message 1",
        "file 2, conversation 1, message 1",
    ]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_damaged_archive_is_a_typed_error(tmp_path: Path, method: int) -> None:
    """A byte that is wrong anywhere in what is packed, however it is packed, is no traceback."""
    path = tmp_path / "a.zip"
    talk = {"uuid": "u", "chat_messages": [{"sender": "human", "text": str(range(99))}] * 99}
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("conversations.json", json.dumps([talk]))
    whole = path.read_bytes()
    for place in range(64, len(whole) - 128, max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(UnreadableSource):
            list(SourceFile(path).found())


def test_archives_that_cannot_be_meant(tmp_path: Path) -> None:
    """Without conversations, cut off, or unpacking to far more than it can hold: typed."""
    with pytest.raises(UnreadableSource, match="no conversations"):
        SourceFile(zipped(tmp_path / "a.zip", other=b"[]"))
    cut = tmp_path / "cut.zip"
    whole = zipped(tmp_path / "whole.zip", conversations=b"[]" * 999).read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableSource, match="cannot be unpacked"):
        SourceFile(cut)
    bomb = zipped(tmp_path / "bomb.zip", conversations=b'[{"mapping": {' + b" " * 200_000_000)
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(UnreadableSource, match="far more"):
        list(SourceFile(bomb).found())
    with pytest.raises(UnreadableSource, match="cannot be read"):
        SourceFile(tmp_path / "none.json")
