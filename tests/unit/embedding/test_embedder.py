"""Dense embedding: the offline model, batching, identity, and what counts as failure."""

import asyncio
import logging
import math
import sys
from collections.abc import Sequence
from operator import mul
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Embedder as PydanticAIEmbedder
from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType

from engram.embedding import offline
from engram.embedding.batches import BATCH_CHARACTERS, BATCH_TEXTS, batches
from engram.embedding.choice import make_embedder
from engram.errors import (
    EmbeddedPartMissing,
    EmbeddingFailed,
    EngramError,
    InvalidSettings,
    ModelRejected,
    WrongVectorSize,
)
from tests.support.offline_fastembed import offline_fastembed


class ScriptedModel(EmbeddingModel):
    """Answers every batch with what the script gives for it, and keeps what it was asked."""

    def __init__(self, *answers: list[list[float]]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[tuple[int, str]] = []

    @property
    def model_name(self) -> str:
        """A name."""
        return "scripted"

    @property
    def system(self) -> str:
        """A provider."""
        return "test"

    async def embed(
        self,
        inputs: str | Sequence[str],
        *,
        input_type: EmbedInputType,
        settings: EmbeddingSettings | None = None,
    ) -> EmbeddingResult:
        """The next answer, or ones of size 3."""
        texts, _ = self.prepare_embed(inputs, settings)
        self.asked.append((len(texts), input_type))
        answer = self.answers.pop(0) if self.answers else [[1.0, 1.0, 1.0]] * len(texts)
        return EmbeddingResult(
            embeddings=answer,
            inputs=texts,
            input_type=input_type,
            model_name=self.model_name,
            provider_name=self.system,
        )


async def test_wordllama_gives_unit_vectors_offline() -> None:
    """The default model answers without network, normalised, with its size known before."""
    embedder = make_embedder("wordllama")
    assert await embedder.dimensions() == 256
    for vectors in await embedder.embed_documents(["I moved to Lisbon.", "Tea, please."]):
        assert len(vectors.dense) == 256
        assert math.hypot(*vectors.dense) == pytest.approx(1.0, abs=1e-5)


async def test_wordllama_is_nearer_to_what_is_meant() -> None:
    """A question is nearer to the text on its topic than to another one."""
    embedder = make_embedder("wordllama")
    question = (await embedder.embed_query("Which city does she live in?")).dense
    city, tea = await embedder.embed_documents(["Her home is in Lisbon town.", "Boil the kettle."])
    assert sum(map(mul, question, city.dense)) > sum(map(mul, question, tea.dense))


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\x01", "👍", "a" * 30_000])
async def test_wordllama_gives_odd_texts_a_usable_vector(text: str) -> None:
    """Text without known words, or one huge word, still gives a finite unit vector."""
    vectors = await make_embedder("wordllama").embed_query(text)
    assert math.hypot(*vectors.dense) == pytest.approx(1.0, abs=1e-4)


async def test_wordllama_vectors_do_not_depend_on_the_batch() -> None:
    """A text has one vector, alone or among longer ones."""
    embedder = make_embedder("wordllama")
    texts = ["short", "a somewhat longer text about Lisbon " * 30, "mid size text"]
    alone = [(await embedder.embed_documents([text]))[0] for text in texts]
    assert await embedder.embed_documents(texts) == alone


def test_wordllama_looks_its_numbers_up_where_they_lie() -> None:
    """They are those that the package reads, without a copy in the memory of the process."""
    package = offline._import_quietly()  # noqa: SLF001 - what the model itself loads
    folder = Path(package.__file__).parent
    read = package.WordLlama.load(
        config=offline.CONFIG, dim=offline.DIMENSIONS, cache_dir=folder, disable_download=True
    )
    looked_up = offline._load(package).embedding  # noqa: SLF001 - same
    assert looked_up.astype("f4").tobytes() == read.embedding.tobytes()
    assert not looked_up.flags.owndata


async def test_wordllama_leaves_logging_alone() -> None:
    """Loading the package does not configure the application's root logger."""
    before = list(logging.getLogger().handlers)
    await make_embedder("wordllama").embed_query("hello")
    assert logging.getLogger().handlers == before


async def test_the_event_loop_stays_free_while_much_is_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A megabyte of turns is embedded in threads: a batch at a time."""
    embedder = make_embedder("wordllama")
    await embedder.embed_query("load the model first")
    texts = ["We walked along the river today. " * 900] * 30
    to_thread, handed_over = asyncio.to_thread, 0

    async def counted(*work: Any) -> Any:
        nonlocal handed_over
        handed_over += 1
        return await to_thread(*work)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    await embedder.embed_documents(texts)
    assert handed_over == len(list(batches(texts))) > 10


def test_identity_names_model_version_and_encoding() -> None:
    """Vectors of another model, version or term encoding can be told apart."""
    assert make_embedder("wordllama").identity == "wordllama:l2_supercat_256@0.4.0.post1+bm25.2"
    assert make_embedder(ScriptedModel()).identity == "test:scripted+bm25.2"
    sized = PydanticAIEmbedder(ScriptedModel())
    assert make_embedder(sized).identity == "test:scripted+bm25.2"


async def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without wordllama the error names the extra, and the setting that avoids it."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(EmbeddedPartMissing, match=r"\[embedded\].*ENGRAM_EMBEDDER"):
        await make_embedder("wordllama").embed_query("hello")


async def test_fastembed_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same for the optional ONNX models."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    embedder = make_embedder("fastembed:BAAI/bge-small-en-v1.5")
    assert embedder.identity.startswith("fastembed:BAAI/bge-small-en-v1.5")
    with pytest.raises(EmbeddedPartMissing, match=r"pip install \'\.\[fastembed\]\'") as missing:
        await embedder.embed_query("hello")
    assert isinstance(missing.value.__cause__, ImportError)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("BAAI/bge-small-en-v1.5", EmbeddingFailed, "downloaded"),
        ("no/such", InvalidSettings, "know"),
    ],
)
async def test_fastembed_without_a_network_is_no_unknown_model(
    monkeypatch: pytest.MonkeyPatch, name: str, error: type[EngramError], words: str
) -> None:
    """Its package raises the same for both; only the first is worth another try."""
    monkeypatch.setitem(sys.modules, "fastembed", offline_fastembed("TextEmbedding"))
    with pytest.raises(error, match=words) as caught:
        await make_embedder(f"fastembed:{name}").embed_query("hello")
    assert caught.value.retryable is (error is EmbeddingFailed)
    assert name in str(caught.value)


@pytest.mark.parametrize("spec", ["nonsense", "nobody:model", "fastembed:"])
def test_an_unknown_model_is_refused_at_once(spec: str) -> None:
    """A setting that names no model fails where it is read, saying what is allowed."""
    with pytest.raises(InvalidSettings, match="fastembed:<model>"):
        make_embedder(spec)


def test_a_provider_without_a_key_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote model without its key is a lasting error, not one to retry."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelRejected) as caught:
        make_embedder("openai:text-embedding-3-small")
    assert not caught.value.retryable


async def test_both_sides_are_told_to_the_model() -> None:
    """Queries and documents are announced as such, and documents come in bounded batches."""
    model = ScriptedModel()
    embedder = make_embedder(model)
    await embedder.embed_documents(["x"] * (BATCH_TEXTS + 1))
    await embedder.embed_query("x")
    assert model.asked == [(BATCH_TEXTS, "document"), (1, "document"), (1, "query")]


async def test_the_size_of_an_unknown_model_is_asked_for_once() -> None:
    """A probe tells the size; afterwards it is known."""
    model = ScriptedModel()
    embedder = make_embedder(model)
    assert await embedder.dimensions() == 3
    assert await embedder.dimensions() == 3
    assert len(model.asked) == 1


async def test_nothing_to_embed_asks_nobody() -> None:
    """An empty list gives an empty list."""
    model = ScriptedModel()
    assert await make_embedder(model).embed_documents([]) == []
    assert model.asked == []


@pytest.mark.parametrize("bad", [[[math.nan, 1.0]], [[math.inf, 1.0]], [[]], []])
async def test_unusable_vectors_are_refused(bad: list[list[float]]) -> None:
    """Vectors that are not finite, empty or missing are an error, never stored."""
    with pytest.raises(EmbeddingFailed):
        await make_embedder(ScriptedModel(bad)).embed_query("hello")


async def test_a_changed_size_is_refused() -> None:
    """A model that changes the size of its vectors is an error of its own."""
    embedder = make_embedder(ScriptedModel([[1.0, 2.0]], [[1.0, 2.0, 3.0]]))
    await embedder.embed_query("first")
    with pytest.raises(WrongVectorSize) as caught:
        await embedder.embed_query("second")
    assert caught.value.details == {"size": 3, "expected": 2}


@given(st.lists(st.integers(min_value=0, max_value=BATCH_CHARACTERS * 2), max_size=200))
def test_batches_are_bounded_and_complete(sizes: list[int]) -> None:
    """Every text is in one batch, in order; no batch of several is over the bounds."""
    texts = ["x" * min(size, 9) + " " * (size // 50_000) * 50_000 for size in sizes]
    found = list(batches(texts))
    assert [text for batch in found for text in batch] == texts
    for batch in found:
        assert 0 < len(batch) <= BATCH_TEXTS
        assert len(batch) == 1 or sum(map(len, batch)) <= BATCH_CHARACTERS
