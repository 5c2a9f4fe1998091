"""What Engram's own processes leave out of what they load, and how little memory they keep."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import set_custom_snapshot

from engram.agents.models import prices_when_asked
from engram.embedding.embedder import make_embedder
from engram.embedding.offline import OfflineEmbedder
from engram.system import absent


def test_what_is_absent_cannot_be_imported_and_then_can() -> None:
    """A package that is not loaded yet is missing inside the block; one that is loaded stays."""
    assert "wave" not in sys.modules
    with absent("wave", "json"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("wave")
        assert importlib.import_module("json").loads("1") == 1
    assert importlib.import_module("wave").Error


def test_prices_are_there_when_they_are_asked_for() -> None:
    """Put off, the list of prices answers as ever."""
    prices_when_asked()
    try:
        price = calc_price(Usage(input_tokens=1000), "gpt-4o", provider_id="openai")
    finally:
        set_custom_snapshot(None)
    assert price.total_price > 0


async def test_the_embedder_that_loads_later_is_the_offline_one() -> None:
    """Its name, by which stores are known, its vectors and its terms are those of the other."""
    later, now = OfflineEmbedder(), make_embedder("wordllama")
    assert later.identity == now.identity
    assert await later.dimensions() == await now.dimensions()
    texts = ["I live in Oslo.", "Tea."]
    await later.load()
    assert await later.embed_documents(texts) == await now.embed_documents(texts)
    assert await later.embed_query(texts[0]) == await now.embed_query(texts[0])
    assert later.encode_terms(texts[0]) == now.encode_terms(texts[0])


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_threads_share_what_they_free() -> None:
    """In a process that asks for it, no thread keeps a heap of its own."""
    code = (
        "import ctypes, threading\n"
        "from engram.system import shared_heap\n"
        "shared_heap()\n"
        "libc = ctypes.CDLL(None)\n"
        "def work(): [bytearray(4096) for _ in range(9)]; ready.wait()\n"
        "ready = threading.Barrier(9)\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[thread.start() for thread in threads]\n"
        "ready.wait()\n"
        "libc.malloc_stats()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stderr.splitlines() if line.startswith("Arena")] == ["Arena 0:"]
