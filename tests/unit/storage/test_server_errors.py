"""How the server's refusals and silences reach the caller, and what is asked of it on writing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models

from engram.domain.memories import STORED_TYPES, MemoryType, next_revision
from engram.errors import InvalidSettings, SchemaMismatch, StorageError, StorageUnavailable
from engram.ports import Replacement, SparseVector
from engram.settings import Settings
from engram.storage.payload import TENANT, identity_record, indexed_fields
from engram.storage.server import ServerRepository, connect_qdrant, server_errors
from tests.support.engines import ADA, DIMENSIONS, EMBEDDER, episode, new

ID = episode(ADA, "turn").id
Answer = Callable[[httpx.Request], httpx.Response]


def client_of(answer: Answer) -> AsyncQdrantClient:
    """A client whose server is a function."""
    return AsyncQdrantClient(
        url="http://qdrant.test",
        check_compatibility=False,
        transport=httpx.MockTransport(answer),
    )


async def open_with(answer: Answer, settings: Settings | None = None) -> ServerRepository:
    """Open a store on a server that is a function."""
    return await ServerRepository.open(
        client_of(answer),
        embedder_identity=EMBEDDER,
        dimensions=DIMENSIONS,
        settings=settings or Settings.load(),
    )


class FakeServer:
    """Keeps no memories: it knows collections, and notes what it was asked."""

    def __init__(self, *, version: str = "1.20.0") -> None:
        self.version = version
        self.collections: dict[str, dict[str, Any]] = {}
        self.indexes: dict[str, set[str]] = {}
        self.asked: list[httpx.Request] = []
        self.made_by_another: dict[str, Any] | None = None
        self.replicas = 1
        self.shown: list[list[str]] = []
        self.update_status = "completed"

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        path = request.url.path.strip("/").split("/")
        if path == [""]:
            return httpx.Response(200, json={"title": "qdrant", "version": self.version})
        return self._on_collection(request, path[1], path[2:])

    def _on_collection(self, request: httpx.Request, name: str, rest: list[str]) -> httpx.Response:
        match request.method, rest:
            case "PUT", []:
                return self._create(name, json.loads(request.content))
            case "GET", ["exists"]:
                return _ok({"exists": name in self.collections})
            case "GET", []:
                return _ok(self._describe(name))
            case "PUT", ["index"]:
                self.indexes[name].add(json.loads(request.content)["field_name"])
        done = {"operation_id": 1, "status": self.update_status}
        results: dict[tuple[str, ...], Any] = {("points", "batch"): [done]}
        if request.method == "POST":
            payloads = self.shown.pop(0) if self.shown and rest == ["points"] else []
            results["points",] = [{"id": one, "payload": {"id": one}} for one in payloads]
        return _ok(results.get(tuple(rest), done))

    def _create(self, name: str, body: dict[str, Any]) -> httpx.Response:
        if self.made_by_another is not None:
            self.collections[name] = {**body, "metadata": {"engram": self.made_by_another}}
        if name in self.collections:
            self.indexes.setdefault(name, set())
            return httpx.Response(409, json={"status": {"error": "already exists"}})
        self.collections[name] = body
        self.indexes[name] = set()
        return _ok(result=True)

    def _describe(self, name: str) -> dict[str, Any]:
        body = self.collections[name]
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": {
                "params": {
                    "vectors": body["vectors"],
                    "sparse_vectors": body["sparse_vectors"],
                    "replication_factor": self.replicas,
                },
                "hnsw_config": {"m": 0, "ef_construct": 1, "full_scan_threshold": 1},
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
                "metadata": body.get("metadata"),
            },
            "payload_schema": {
                field: {"data_type": "keyword", "points": 0} for field in self.indexes[name]
            },
        }


def _ok(result: Any) -> httpx.Response:
    return httpx.Response(200, json={"result": result, "status": "ok", "time": 0.0})


async def test_opening_makes_collections_with_their_record_and_indexes() -> None:
    """Five collections, the record inside the request that makes each, every index made once."""
    server = FakeServer()
    await (await open_with(server)).close()
    assert set(server.collections) == {f"engram_{kind.value}" for kind in STORED_TYPES}
    record = identity_record(embedder=EMBEDDER, dimensions=DIMENSIONS)
    for kind in STORED_TYPES:
        name = f"engram_{kind.value}"
        assert server.collections[name]["metadata"] == {"engram": record}
        assert server.indexes[name] == {TENANT, *indexed_fields(kind)}
    before = len(server.asked)
    await (await open_with(server)).close()
    assert {request.method for request in server.asked[before:]} == {"GET"}


@pytest.mark.parametrize(("status", "says"), [(403, "refused access"), (404, "not know the coll")])
async def test_a_store_that_cannot_be_read_is_not_described(status: int, says: str) -> None:
    """A server tells its version to a revoked key too, and when it has lost a collection."""
    server, refusing = FakeServer(), set[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        refused = request.url.path in refusing
        return httpx.Response(status, text="no") if refused else server(request)

    repository = await open_with(answer)
    assert (await repository.info()).details["version"] == server.version
    refusing.add("/collections/engram_negation")
    with pytest.raises(StorageError, match=says):
        await repository.info()
    await repository.close()


async def test_a_collection_made_by_another_process_meanwhile_is_used() -> None:
    """Two processes opening at once: the later one checks what the earlier one recorded."""
    server = FakeServer()
    server.made_by_another = identity_record(embedder=EMBEDDER, dimensions=DIMENSIONS)
    await (await open_with(server)).close()
    server = FakeServer()
    server.made_by_another = identity_record(embedder="other", dimensions=DIMENSIONS)
    with pytest.raises(SchemaMismatch, match="other"):
        await open_with(server)


async def test_a_strangers_collection_is_left_alone() -> None:
    """A collection of that name without Engram's record is refused."""
    server = FakeServer()
    await (await open_with(server)).close()
    server.collections["engram_episodic"]["metadata"] = None
    with pytest.raises(SchemaMismatch, match="ENGRAM_COLLECTION_PREFIX"):
        await open_with(server)


async def test_writes_wait_and_are_ordered_by_who_is_alive() -> None:
    """Every write names wait=true and medium ordering; inserts never update."""
    server = FakeServer()
    repository = await open_with(server)
    before = len(server.asked)
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    replacement = Replacement(next_revision(memory, memory, write_id="w"), 0)
    await repository.replace(ADA, [replacement])
    await repository.delete(ADA, MemoryType.EPISODIC, [memory.id])
    asked = server.asked[before:]
    writes = [request for request in asked if "wait" in request.url.params]
    assert len(writes) == 3
    for request in writes:
        assert request.url.params["wait"] == "true"
        assert request.url.params["ordering"] == "medium"
    insert, overwrite, delete = (json.loads(request.content) for request in writes)
    assert insert["update_mode"] == "insert_only"
    (operation,) = overwrite["operations"]
    condition = json.dumps(operation["overwrite_payload"]["filter"])
    for part in (memory.id, ADA.tenant, '"revision"'):
        assert part in condition
    assert ADA.tenant in json.dumps(delete["filter"])
    await repository.close()


async def test_replication_is_asked_for_where_settings_name_it() -> None:
    """Every collection is made with as many copies, and acknowledgements, as the settings say."""
    server = FakeServer()
    chosen = Settings.load(qdrant_replication_factor=3, qdrant_write_consistency=2)
    await (await open_with(server, chosen)).close()
    for body in server.collections.values():
        assert (body["replication_factor"], body["write_consistency_factor"]) == (3, 2)


@pytest.mark.parametrize(("chosen", "shards"), [({}, 1), ({"qdrant_shards": 4}, 4)])
async def test_collections_have_one_part_unless_settings_name_more(
    chosen: dict[str, int], shards: int
) -> None:
    """A cluster that is not told makes a part for each node, which weigh words apart."""
    server = FakeServer()
    await (await open_with(server, Settings.load(**chosen))).close()
    assert {body["shard_number"] for body in server.collections.values()} == {shards}


async def _shown(server: FakeServer, *answers: list[str]) -> list[tuple[str, int]]:
    """How a point is read by one who will write, when the server answers like this."""
    repository = await open_with(server)
    before = len(server.asked)
    server.shown = list(answers)
    await repository._retrieve(MemoryType.EPISODIC, [ID], fresh=True)  # noqa: SLF001 - below the port: no engine here disagrees with itself
    return [
        (request.url.params.get("consistency", "one"), len(json.loads(request.content)["ids"]))
        for request in server.asked[before:]
    ]


async def test_fresh_reads_need_a_quorum_and_not_every_replica() -> None:
    """A node may be away; without copies on other nodes nothing is asked twice."""
    server = FakeServer()
    assert await _shown(server, []) == [("one", 1)]
    server.replicas = 3
    assert await _shown(server, [ID]) == [("quorum", 1)]


async def test_what_replicas_do_not_hold_alike_is_not_missing() -> None:
    """A quorum leaves it out while another writer's change spreads: it is looked at again."""
    server = FakeServer()
    server.replicas = 3
    quorum, one = ("quorum", 1), ("one", 1)
    assert await _shown(server, [], []) == [quorum, one]
    assert await _shown(server, [], [ID], [ID]) == [quorum, one, quorum]
    with pytest.raises(StorageUnavailable, match="agree"):
        await _shown(server, *([], [ID]) * 7)


async def test_requests_stay_below_what_a_server_accepts() -> None:
    """A hundred turns of the largest size, of characters that JSON escapes: all in small parts."""
    server = FakeServer()
    repository = await open_with(server)
    before = len(server.asked)
    content = "\x01" * 256 * 1024
    turns = [episode(ADA, f"turn {n}", content=content) for n in range(100)]
    await repository.insert(ADA, map(new, turns))
    changes = [Replacement(next_revision(turn, turn, write_id="w"), 0) for turn in turns]
    await repository.replace(ADA, changes)
    writes = [r for r in server.asked[before:] if "wait" in r.url.params]
    assert max(len(request.content) for request in writes) < 32 * 2**20
    assert sum(request.content.count(b'"message_id"') for request in writes) == 200


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, 408])
async def test_a_failing_server_is_worth_another_try(status: int) -> None:
    """Overload and failure are StorageUnavailable, which says that trying again helps."""
    with pytest.raises(StorageUnavailable) as refused:
        await open_with(lambda _: httpx.Response(status, text="no"))
    assert refused.value.retryable
    assert refused.value.details["status"] == status


async def test_a_rate_limit_says_how_long_to_wait() -> None:
    """The server's Retry-After is passed on."""
    answer = httpx.Response(429, headers={"Retry-After": "7"}, json={"status": {"error": "slow"}})
    with pytest.raises(StorageUnavailable) as refused:
        await open_with(lambda _: answer)
    assert refused.value.details["retry_after"] == 7


@pytest.mark.parametrize("told", ["Wed, 21 Oct 2026 07:28:00 GMT", "1.5", "soon"])
async def test_a_rate_limit_in_another_form_is_worth_another_try(told: str) -> None:
    """A date, a fraction or words in Retry-After, which the client cannot read: our pauses hold."""
    answer = httpx.Response(429, headers={"Retry-After": told}, json={"status": {"error": "slow"}})
    with pytest.raises(StorageUnavailable, match="rate limit") as refused:
        await open_with(lambda _: answer)
    assert refused.value.details == {}


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout"])
async def test_a_write_that_is_not_applied_is_not_done(status: str) -> None:
    """Accepted for later is not stored, not gone and not reworded; each can be asked for again."""
    server = FakeServer()
    repository = await open_with(server)
    memory = episode(ADA, "turn")
    words = {memory.id: SparseVector((1,), (1.0,))}
    server.update_status = status
    with pytest.raises(StorageUnavailable) as failed:
        await repository.insert(ADA, [new(memory)])
    assert failed.value.details == {"status": status}
    with pytest.raises(StorageUnavailable):
        await repository.delete(ADA, MemoryType.EPISODIC, [memory.id])
    with pytest.raises(StorageUnavailable):
        await repository._reword(MemoryType.EPISODIC, models.Filter(), words)  # noqa: SLF001 - below the port, which rewords only what this server has not
    server.update_status = "completed"
    assert await repository.insert(ADA, [new(memory)]) == frozenset()
    await repository.close()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_not_worth_another_try(status: int) -> None:
    """The error names the setting that holds the key, and is not retryable."""
    with pytest.raises(StorageError, match="ENGRAM_QDRANT_API_KEY") as refused:
        await open_with(lambda _: httpx.Response(status, text="no"))
    assert not refused.value.retryable


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_refusal_for_good_is_not_worth_another_try(status: int) -> None:
    """Other refusals are plain storage errors, without the server's text."""
    with pytest.raises(StorageError) as refused:
        await open_with(lambda _: httpx.Response(status, text="quoting a secret"))
    assert not refused.value.retryable
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ReadError]
)
async def test_a_silent_server_is_worth_another_try(failure: type[httpx.TransportError]) -> None:
    """No connection, a broken one, or no answer in time."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise failure("nothing there")

    with pytest.raises(StorageUnavailable, match="ENGRAM_QDRANT_URL"):
        await open_with(answer)


async def test_a_refused_connection_is_worth_another_try(unused_tcp_port: int) -> None:
    """The same through the real client and a port where nobody listens."""
    settings = Settings.load(qdrant_url=f"http://127.0.0.1:{unused_tcp_port}", qdrant_timeout=2.0)
    client = connect_qdrant(settings)
    with pytest.raises(StorageUnavailable):
        await ServerRepository.open(
            client, embedder_identity=EMBEDDER, dimensions=DIMENSIONS, settings=settings
        )
    await client.close()


async def test_something_else_at_that_address_is_not_worth_another_try() -> None:
    """A server that is no Qdrant: a typed error that asks about the address."""
    with pytest.raises(StorageError, match="ENGRAM_QDRANT_URL") as refused:
        await open_with(lambda _: httpx.Response(200, json=["not", "qdrant"]))
    assert not refused.value.retryable


@pytest.mark.parametrize("version", ["1.18.3", "1.9.0", "0.11.1"])
async def test_an_old_server_is_refused(version: str) -> None:
    """It would ignore the wish to count words per user, silently: scores would mix."""
    with pytest.raises(StorageError, match=r"1\.19") as refused:
        await open_with(FakeServer(version=version))
    assert version in str(refused.value)


@pytest.mark.parametrize("version", ["1.19.0", "1.20.3", "2.0.0", "1.21.0-dev", "dev"])
async def test_new_and_own_builds_are_accepted(version: str) -> None:
    """Later versions, and builds whose version is none, are taken at their word."""
    await (await open_with(FakeServer(version=version))).close()


async def test_a_key_over_plain_http_puts_no_warning_between_the_lines_of_a_log() -> None:
    """Every command of a compose setup would print one, with a line of our code."""
    settings = Settings.load(qdrant_url="http://127.0.0.1:1", qdrant_api_key="secret")
    # Warnings are errors in tests.
    await connect_qdrant(settings).close()


@pytest.mark.parametrize(
    "url",
    [
        *("http://host:port", "http://127.0.0.1:99999", "http://[::1", "http://:6333"),
        *("", "/var/qdrant", ":memory:", "localhost:6333", "grpc://localhost:6334"),
        *("http://127.0.0.1:6333/a b", "http://127.0.0.1\n.example.org:6333"),
        "http://reader:secret@qdrant.example.org:6333",
    ],
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    """Nothing is asked there again and again; the variable is named, the address is not shown."""
    with pytest.raises(InvalidSettings, match="ENGRAM_QDRANT_URL") as refused:
        connect_qdrant(Settings.load().model_copy(update={"qdrant_url": url}))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("key", ["schlüssel", "sec\nret"])
def test_a_key_that_no_header_carries_is_refused_at_once(key: str) -> None:
    """The variable is named, the key is not shown."""
    settings = Settings.load(qdrant_url="https://qdrant.example.org", qdrant_api_key=key)
    with pytest.raises(InvalidSettings, match="ENGRAM_QDRANT_API_KEY") as refused:
        connect_qdrant(settings)
    assert key not in str(refused.value)


async def test_a_key_from_a_file_with_a_line_end_opens_the_server() -> None:
    """Mounted secrets end with one, and no header can; an address may as well."""
    heard = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = Settings.load(
            qdrant_url=f"http://127.0.0.1:{port}/\n", qdrant_api_key="secret\n"
        )
        client = connect_qdrant(settings)
        with pytest.raises(StorageUnavailable, match="500"), server_errors("asking"):
            await client.info()
        await client.close()
    assert b"api-key: secret\r\n" in await heard
