"""Embedding models of providers, against an OpenAI-compatible server on this machine."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pydantic_ai.models
import pytest
from openai import AsyncOpenAI
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.providers.openai import OpenAIProvider

from engram.contracts.messages import metering
from engram.embedding.choice import make_embedder
from engram.embedding.embedder import REMOTE_TEXT_BYTES
from engram.errors import EmbeddingFailed, ModelRejected
from engram.ports import Embedder

pytestmark = pytest.mark.usefixtures("provider_clients_go")


class Provider(ThreadingHTTPServer):
    """Answers with the status and error code it is told to, and with vectors of size 4."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.code: str | None = None
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """Base URL in the form of the OpenAI API."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        """One request for embeddings."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, **body})
        answer: dict[str, Any] = {
            "error": {"message": "no", "type": "test", "code": self.server.code}
        }
        if self.server.status == 200:
            answer = {
                "object": "list",
                "model": body["model"],
                "data": [
                    {"object": "embedding", "index": n, "embedding": [float(n), 1.0, 0.0, 0.5]}
                    for n in range(len(body["input"]))
                ],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
        data = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Silent."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider that runs for one test."""
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with pydantic_ai.models.override_allow_model_requests(allow_model_requests=True):
        yield server
    server.shutdown()
    thread.join()
    server.server_close()


def embedder_for(provider: Provider) -> Embedder:
    """An embedder on a client of its own, so that no connection outlives its event loop."""
    client = AsyncOpenAI(base_url=provider.url, api_key="test")
    return make_embedder(
        OpenAIEmbeddingModel(
            "text-embedding-3-small", provider=OpenAIProvider(openai_client=client)
        )
    )


async def test_a_provider_string_is_enough(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``openai:`` with the provider's own environment variables embeds in order."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    embedder = make_embedder("openai:text-embedding-3-small")
    assert embedder.identity == "openai:text-embedding-3-small+bm25.2"
    vectors = await embedder.embed_documents(["one", "two"])
    assert [vector.dense for vector in vectors] == [(0.0, 1.0, 0.0, 0.5), (1.0, 1.0, 0.0, 0.5)]
    assert await embedder.dimensions() == 4
    assert provider.asked[0]["path"] == "/v1/embeddings"
    assert provider.asked[0]["input"] == ["one", "two"]


async def test_what_a_provider_embeds_is_counted(provider: Provider) -> None:
    """Requests, those that failed among them, tokens and cost; what runs here costs nothing."""
    with metering() as meter:
        await make_embedder("wordllama").embed_query("hello")
        await embedder_for(provider).embed_documents(["one", "two"])
        provider.status = 400
        with pytest.raises(ModelRejected):
            await embedder_for(provider).embed_query("hello")
    (spent,) = meter.spent
    assert spent.model == "openai:text-embedding-3-small"
    assert (spent.requests, spent.failed_requests, spent.input_tokens) == (2, 1, 1)
    assert spent.cost_usd > 0
    assert spent.unpriced_requests == 0
    assert meter.answering is None


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422])
async def test_refusals_do_not_retry(provider: Provider, status: int) -> None:
    """A bad key, name or request is a lasting error and tells nothing of the text."""
    provider.status = status
    with pytest.raises(ModelRejected) as caught:
        await embedder_for(provider).embed_query("secret words")
    assert not caught.value.retryable
    assert caught.value.details["status"] == status
    assert "secret" not in str(caught.value)


async def test_a_quota_that_is_used_up_is_no_rate_limit(provider: Provider) -> None:
    """Both come with 429; what the provider says of it tells that waiting does not help."""
    provider.status, provider.code = 429, "insufficient_quota"
    with pytest.raises(ModelRejected, match=r"429.*quota"):
        await embedder_for(provider).embed_query("hello")


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_overload_can_be_retried(provider: Provider, status: int) -> None:
    """Rate limits and server errors are worth another attempt."""
    provider.status = status
    with pytest.raises(EmbeddingFailed) as caught:
        await embedder_for(provider).embed_query("hello")
    assert caught.value.retryable
    assert caught.value.details["status"] == status


async def test_an_unreachable_provider_can_be_retried(provider: Provider) -> None:
    """No connection is worth another attempt."""
    provider.shutdown()
    provider.server_close()
    with pytest.raises(EmbeddingFailed):
        await embedder_for(provider).embed_query("hello")


async def test_a_slow_provider_is_given_up(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has a time limit of its own."""
    monkeypatch.setattr("engram.embedding.embedder.REQUEST_SECONDS", 0.0)
    with pytest.raises(EmbeddingFailed, match="in time"):
        await embedder_for(provider).embed_query("hello")


async def test_a_text_past_the_limits_of_providers_is_cut(provider: Provider) -> None:
    """The dense side sees the head of a huge text, whole characters only."""
    await embedder_for(provider).embed_documents(["我" * REMOTE_TEXT_BYTES])
    sent = provider.asked[0]["input"][0]
    assert len(sent.encode()) <= REMOTE_TEXT_BYTES
    assert set(sent) == {"我"}
