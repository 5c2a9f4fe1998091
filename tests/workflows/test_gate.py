"""One gate: whatever way entries come in, the worker refuses what cannot be kept, and says where.

``ENGRAM_MALFORMED`` sets how many entries the everyday tests send by each way.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from engram.agents.asking import Rules
from engram.consolidation.turns import TurnStore
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.importing import (
    ImportBatch,
    ImportKind,
    ImportPolicy,
    ImportState,
    StoreBatchInput,
)
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeCall,
    EncodeReply,
    EncodeRequest,
    SessionState,
    StoreTurnsInput,
)
from engram.domain.memories import STORED_TYPES, Episode, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.errors import InvalidInput, InvalidScope, UnmaskedPersonalData
from engram.language.extractor import Extractor
from engram.language.guarding import PersonalDataGuard
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.temporal.gateway import WorkflowGateway, session_policy
from engram.temporal.importing import ImportGateway
from engram.transfer.batches import MOST_UNPACKED, batch
from engram.transfer.preparing import HerePreparer
from engram.transfer.store import MemoryRestorer, TurnImporter
from engram.workflows.worker import running_workers
from tests.support.clock import NOW
from tests.support.edge_stores import borrowed_store
from tests.support.malformed_entries import (
    SAID,
    as_json,
    good_turn,
    good_turn_memory,
    malformed_memories,
    malformed_turns,
)
from tests.support.stores import worker_settings

EVERYDAY = int(os.environ.get("ENGRAM_MALFORMED", "300"))
IN_FULL = 5_000
SIZES = [EVERYDAY, pytest.param(IN_FULL, marks=pytest.mark.slow)]


class Gate:
    """A worker, a store, and a user whose memory is attacked.

    Attributes:
        client: Reaches Temporal as any program that can.
        repository: What the worker writes into.
        scope: The user.
    """

    def __init__(self, client: Client, repository: EdgeRepository, settings: Settings) -> None:
        self.client = client
        self.repository = repository
        self.settings = settings
        self.scope = Scope.of("default", f"u-{uuid4().hex[:8]}")
        self.gateway = WorkflowGateway(client, settings)

    async def stored(self, scope: Scope | None = None) -> int:
        """How many memories the user has."""
        return sum(
            [await self.repository.count(scope or self.scope, kind) for kind in STORED_TYPES]
        )

    async def start_import(self, kind: ImportKind, **state: Any) -> Any:
        """An importing workflow, started past every client of Engram."""
        policy = ImportPolicy(
            updates_per_run=500,
            store_timeout=timedelta(seconds=30),
            idle_time=timedelta(days=1),
        )
        source = uuid4().hex
        asked = {"scope": self.scope, "import_id": source, "kind": kind, "policy": policy, **state}
        return await self.client.start_workflow(
            names.IMPORT_WORKFLOW,
            ImportState(**asked),
            id=names.import_workflow_id(self.scope, source),
            task_queue=self.settings.store_queue,
            search_attributes=attributes("import", user=self.scope.tenant),
        )

    async def refused_session(
        self, state: Any, workflow_id: str, **options: Any
    ) -> WorkflowFailureError:
        """Start a session past every client, say something in it, and see it fail."""
        handle = await self.client.start_workflow(
            names.SESSION_WORKFLOW,
            state,
            id=workflow_id,
            task_queue=self.settings.store_queue,
            **options,
        )
        turn = Turn(message_id="m1", role="user", content="Hello.", timestamp=NOW)
        request = EncodeRequest(calls=(EncodeCall(turns=(turn,)),))
        # Nobody can do anything with such a run: it ends by itself, perhaps before it is asked.
        with pytest.raises((WorkflowUpdateFailedError, RPCError)):
            await handle.execute_update(names.ENCODE_UPDATE, request)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        return failed.value

    async def consolidates(self) -> None:
        """Check that a turn that is encoded now is stored and consolidated, and nothing else."""
        turn = Turn(message_id="good", role="user", content="I live in Oslo.", timestamp=NOW)
        request = EncodeRequest(calls=(EncodeCall(turns=(turn,)),))
        reply = await self.gateway.encode(self.scope, "s1", request)
        assert reply.outcomes[0].error is None
        report = await self.gateway.consolidate(self.scope, ConsolidationRequest(reason="asked"))
        assert (report.episodes, report.failures) == (1, ())
        assert await self.repository.count(self.scope, MemoryType.SEMANTIC) > 0


@asynccontextmanager
async def gate(client: Client, **chosen: Any) -> AsyncIterator[Gate]:
    """A whole worker over an empty store."""
    settings = worker_settings(schedules=False, **chosen)
    async with borrowed_store() as repository:

        def new_write_id() -> str:
            return uuid4().hex

        async with running_workers(
            client,
            repository,
            make_embedder("wordllama"),
            Rules(),
            settings,
            new_write_id=new_write_id,
        ):
            yield Gate(client, repository, settings)


def batches(entries: Iterator[dict[str, Any]]) -> Iterator[tuple[ImportBatch, int]]:
    """The entries in batches, each with the number of its entries."""
    waiting: list[str] = []
    size = first = 0
    for entry in entries:
        text = as_json(entry)
        if waiting and (len(waiting) == 500 or size + len(text) > MOST_UNPACKED // 2):
            yield batch(first, waiting), len(waiting)
            first, size, waiting = first + len(waiting), 0, []
        waiting.append(text)
        size += len(text)
    yield batch(first, waiting), len(waiting)


def said(error: BaseException) -> dict[str, Any]:
    """What the worker answered, as data."""
    cause: Any = error.__cause__
    details: dict[str, Any] = cause.details[0]
    return details


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", list(ImportKind))
async def test_malformed_entries_of_an_import_started_directly_are_refused_with_their_places(
    temporal_client: Client, count: int, kind: ImportKind
) -> None:
    """Every entry of every batch is counted, the first are named; nothing is stored of them."""
    async with gate(temporal_client) as one:
        handle = await one.start_import(kind)
        made: Callable[[int], Iterator[dict[str, Any]]] = (
            malformed_turns
            if kind is ImportKind.TURNS
            else lambda count: malformed_memories(one.scope, count)
        )
        refused = 0
        for sent, entries in batches(made(count)):
            # A batch that does not follow is another matter: each comes as the first.
            with pytest.raises(WorkflowUpdateFailedError) as failed:
                await handle.execute_update(
                    names.IMPORT_BATCH_UPDATE, sent.model_copy(update={"first": 0})
                )
            told = said(failed.value)
            assert told["code"] == InvalidInput.code
            assert told["details"]["places"]
            assert SAID not in str(told)
            refused += told["details"]["refused"]
            assert told["details"]["refused"] <= entries
        # What has no form at all hides whether the others of its batch could be kept.
        assert 0 < refused <= count
        assert await one.stored() == 0
        await one.consolidates()


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", list(ImportKind))
async def test_each_malformed_entry_is_refused_where_it_stands(
    temporal_client: Client, count: int, kind: ImportKind
) -> None:
    """Sent among good ones, each is the one that is refused, and takes them with it."""
    async with gate(temporal_client) as one:
        turns = kind is ImportKind.TURNS
        store = one_store(one)[kind]
        made = malformed_turns(count) if turns else malformed_memories(one.scope, count)
        good = as_json(
            good_turn(0)
            if turns
            else {"memory": good_turn_memory(one.scope, 0).model_dump(mode="json")}
        )
        for number, entry in enumerate(made):
            with pytest.raises(InvalidInput) as refused:
                await store(batch(40, [good, as_json(entry)]))
            details = refused.value.details
            assert details["refused"] == 1
            assert details["places"] in ([f"line {number + 1}"], ["entry 42"])
            assert SAID not in str(refused.value)
        assert await one.stored() == 0


def one_store(one: Gate) -> dict[ImportKind, Any]:
    """What the activity does with a batch, by kind, without Temporal around it."""
    embedder = make_embedder("wordllama")
    preparer = HerePreparer(embedder, Extractor(one.settings))
    bound, guard = one.settings.max_turn_bytes, PersonalDataGuard.of(one.settings)
    makers: dict[ImportKind, Any] = {
        ImportKind.TURNS: TurnImporter(
            one.repository, embedder, preparer, lambda: uuid4().hex, bound, guard
        ),
        ImportKind.MEMORIES: MemoryRestorer(
            one.repository, embedder, lambda: uuid4().hex, bound, guard
        ),
    }

    def storing(kind: ImportKind) -> Any:
        async def store(sent: ImportBatch) -> Any:
            asked = StoreBatchInput(
                scope=one.scope, now=NOW, kind=kind, batch=sent, workflow_id="w", run_id="r"
            )
            return await makers[kind].store(asked)

        return store

    return {kind: storing(kind) for kind in ImportKind}


async def test_an_import_goes_on_after_a_refused_batch(temporal_client: Client) -> None:
    """Through the client's own way, too: the batch is refused, and the right one is stored."""
    async with gate(temporal_client) as one:
        imports = ImportGateway(temporal_client, one.settings)
        for kind in ImportKind:
            await imports.begin(one.scope, kind.value, kind, consolidate=False)
        wrong = as_json({**good_turn(0), "timestamp": "2999-01-01T00:00:00Z"})
        with pytest.raises(InvalidInput, match=r"1 of 2 turns .* line 1: .* believable"):
            await imports.send(one.scope, "turns", batch(0, [wrong, as_json(good_turn(1))]))
        sent = batch(0, [as_json(good_turn(0)), as_json(good_turn(1))])
        assert (await imports.send(one.scope, "turns", sent)).tally.stored == 2
        kept = good_turn_memory(one.scope, 5).model_dump(mode="json")
        wrong = as_json({"memory": {**kept, "role": "root"}, "place": "line 7"})
        with pytest.raises(InvalidInput, match=r"1 of 1 memories .* line 7: .* role"):
            await imports.send(one.scope, "memories", batch(0, [wrong]))
        restored = await imports.send(one.scope, "memories", batch(0, [as_json({"memory": kept})]))
        assert restored.tally.stored == 1


OF_IMPORTS = frozenset({"session_id", "sequence", "before", "place"})


def readable(turn: dict[str, Any]) -> bool:
    """Whether the turn has a form that a session's input can have."""
    try:
        EncodeCall.model_validate_json(as_json({"turns": [turn]}))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("count", SIZES)
async def test_malformed_turns_sent_to_a_session_directly_are_refused(
    temporal_client: Client, count: int
) -> None:
    """Each call with a turn that cannot be kept is answered so; nothing of it is stored."""
    async with gate(temporal_client) as one:
        await one.consolidates()
        before = await one.stored()
        handle = temporal_client.get_workflow_handle(names.session_workflow_id(one.scope, "s1"))
        # What is no finite number becomes null on its way through Temporal.
        made = [
            turn
            for turn in malformed_turns(count, without=OF_IMPORTS)
            if "NaN" not in as_json(turn) and "Infinity" not in as_json(turn)
        ]
        formed = [turn for turn in made if readable(turn)]
        assert len(formed) > count // 2
        for start in range(0, len(formed), 100):
            calls = [{"turns": [turn]} for turn in formed[start : start + 100]]
            reply: EncodeReply = await handle.execute_update(
                names.ENCODE_UPDATE, {"calls": calls}, result_type=EncodeReply
            )
            codes = {outcome.error and outcome.error["code"] for outcome in reply.outcomes}
            assert (len(reply.outcomes), codes) == (len(calls), {"invalid_turn"})
        # What has not even the form is refused before it is part of the history.
        formless = [turn for turn in made if not readable(turn) and "\\ud800" not in as_json(turn)]
        for turn in formless[:10]:
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(names.ENCODE_UPDATE, {"calls": [{"turns": [turn]}]})
        assert await one.stored() == before


@pytest.mark.parametrize("user", [None, "default/somebody-else"])
async def test_a_session_that_an_erasure_would_not_find_stores_nothing(
    temporal_client: Client, user: str | None
) -> None:
    """Started by hand without its user's search attribute, it would keep what was said for good."""
    async with gate(temporal_client) as one:
        state = SessionState(scope=one.scope, session_id="s1")
        failed = await one.refused_session(
            state,
            one.gateway.session_id(one.scope, "s1"),
            search_attributes=attributes("session", user=user),
        )
        assert names.USER_ATTRIBUTE in said(failed)["message"]
        assert await one.repository.count(one.scope, MemoryType.EPISODIC) == 0


@pytest.mark.parametrize(
    "wrong",
    [{"session_id": "../x\n\x1b[31m"}, {"scope": {"namespace": "default", "user_id": "a/b"}}],
)
async def test_a_session_of_an_impossible_name_stores_nothing(
    temporal_client: Client, wrong: dict[str, Any]
) -> None:
    """Started directly under a name that no client accepts, it refuses every turn."""
    async with gate(temporal_client) as one:
        policy = session_policy(one.settings)
        state = SessionState(scope=one.scope, session_id="s1", policy=policy)
        failed = await one.refused_session(
            {**state.model_dump(mode="json"), **wrong}, f"any-name-{uuid4().hex}"
        )
        assert isinstance(failed.cause, ApplicationError)
        assert failed.cause.type == InvalidScope.code
        assert await one.stored() == 0


MASKED = {"personal_data_by_namespace": {"default": "mask"}}
CANARY = "zanzibarian@example.org"


async def taken_in(handle: WorkflowHandle[Any, Any]) -> int:
    """How many updates are part of the history of a run."""
    found = (await handle.fetch_history()).events
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    return sum(event.event_type == accepted for event in found)


async def test_a_direct_update_that_is_not_masked_is_refused_and_in_no_history(
    temporal_client: Client,
) -> None:
    """By the validator, in words, speaker and metadata; what is masked is stored after it."""
    async with gate(temporal_client, **MASKED) as one:
        await one.consolidates()
        before = await one.stored()
        handle = temporal_client.get_workflow_handle(names.session_workflow_id(one.scope, "s1"))
        said_well = {"message_id": "m", "role": "user", "content": "Hello.", "timestamp": NOW}
        for wrong, kind in (
            ({"content": f"Mail {CANARY}."}, "e-mail"),
            ({"speaker": CANARY}, "e-mail"),
            ({"tags": (CANARY,)}, "e-mail"),
            ({"metadata": {"from": [CANARY]}}, "e-mail"),
            # What numbers are valid the library reads from a file of its own.
            ({"content": "Call +47 22 98 76 54."}, "phone"),
        ):
            turn = Turn.model_validate({**said_well, **wrong})
            request = EncodeRequest(calls=(EncodeCall(turns=(turn,)),))
            with pytest.raises(WorkflowUpdateFailedError) as failed:
                await handle.execute_update(names.ENCODE_UPDATE, request)
            told = said(failed.value)
            assert (told["code"], told["details"]) == (
                UnmaskedPersonalData.code,
                {"kinds": [kind]},
            )
        assert await one.stored() == before
        kept = Turn.model_validate({**said_well, "content": "Mail [e-mail]."})
        reply = await one.gateway.encode(
            one.scope, "s1", EncodeRequest(calls=(EncodeCall(turns=(kept,)),))
        )
        assert reply.outcomes[0].error is None
        # The one that was sent before the others, and this one.
        assert await taken_in(handle) == 1 + 1


@pytest.mark.parametrize("kind", list(ImportKind))
async def test_a_batch_that_is_not_masked_is_refused_with_its_places(
    temporal_client: Client, kind: ImportKind
) -> None:
    """Before it is part of the import's history, and again where it would be stored."""
    async with gate(temporal_client, **MASKED) as one:
        memory = good_turn_memory(one.scope, 0).model_copy(update={"content": f"Mail {CANARY}."})
        entry: dict[str, Any] = {"memory": memory.model_dump(mode="json"), "place": "line 7"}
        if kind is ImportKind.TURNS:
            entry = {**good_turn(0), "content": f"Mail {CANARY}.", "place": "line 7"}
        sent = batch(0, [as_json(entry)])
        handle = await one.start_import(kind)
        with pytest.raises(WorkflowUpdateFailedError) as failed:
            await handle.execute_update(names.IMPORT_BATCH_UPDATE, sent)
        told = said(failed.value)
        assert (told["details"]["places"], "zanzibarian" in str(told)) == (["line 7"], False)
        assert await taken_in(handle) == 0
        with pytest.raises(InvalidInput, match=r"line 7: .*personal data"):
            await one_store(one)[kind](sent)
        assert await one.stored() == 0


async def test_a_turn_accepted_before_its_namespace_masked_is_refused_where_it_is_stored(
    temporal_client: Client,
) -> None:
    """What a worker without the rule let into a history, one with the rule does not store."""
    async with gate(temporal_client) as one:
        guard = PersonalDataGuard("mask")
        turn = Turn(message_id="m", role="user", content=f"Mail {CANARY}.", timestamp=NOW)
        counter = iter(range(99))
        turns = TurnStore(
            one.repository,
            make_embedder("wordllama"),
            Extractor(one.settings),
            lambda: f"write-{next(counter)}",
            one.settings.max_turn_bytes,
            guard=guard,
        )
        (outcome,) = await turns.store(
            StoreTurnsInput(
                scope=one.scope,
                now=NOW,
                session_id="s1",
                calls=(EncodeCall(turns=(turn,)),),
                first_sequence=0,
                workflow_id="w",
                run_id="r",
            )
        )
        assert outcome.error is not None
        assert outcome.error["code"] == UnmaskedPersonalData.code
        assert await one.stored() == 0


async def test_a_namespace_that_marks_stores_the_words_and_their_kinds(
    temporal_client: Client,
) -> None:
    """By encode and by import alike; nothing is refused and nothing is changed."""
    async with gate(temporal_client, personal_data="mark") as one:
        words = f"Mail {CANARY} or call 212-555-0142."
        turn = Turn(message_id="m", role="user", content=words, timestamp=NOW)
        await one.gateway.encode(one.scope, "s1", EncodeRequest(calls=(EncodeCall(turns=(turn,)),)))
        imports = ImportGateway(temporal_client, one.settings)
        await imports.begin(one.scope, "turns", ImportKind.TURNS, consolidate=False)
        sent = batch(0, [as_json({**good_turn(0), "content": words})])
        await imports.send(one.scope, "turns", sent)
        page = await one.repository.scroll(one.scope, MemoryType.EPISODIC)
        marked = [(e.content, e.personal_data) for e in page.memories if isinstance(e, Episode)]
        assert marked == [(words, ("e-mail", "phone"))] * 2
