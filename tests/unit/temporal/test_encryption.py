"""The payload codec: what it encrypts, what it refuses, and whose key it takes."""

from __future__ import annotations

import asyncio
import json
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    NexusSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from engram.contracts import names
from engram.contracts.calls import EncodeArgs
from engram.contracts.lifecycle import variant_of
from engram.contracts.messages import Population
from engram.contracts.names import SHARED_KEY_OWNER, key_owner, key_owner_of
from engram.domain.scope import Scope
from engram.errors import PayloadRefused
from engram.system import new_secret
from engram.temporal.encryption import (
    EncryptionCodec,
    answer_as,
    data_converter,
    for_replays,
    for_strangers,
)
from engram.temporal.keys import FolderKeyStore

SWITCHED_ON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SESSION = "session/default/ada/s1"
WORDS = "My diary word is PLUMBUS."
ADA = Scope.of("default", "ada")


def store(folder: Path, since: datetime | None = None) -> FolderKeyStore:
    """Keys in a new folder."""
    return FolderKeyStore.create(folder, new_secret=new_secret, since=since)


@pytest.fixture
def codec(tmp_path: Path) -> EncryptionCodec:
    """Of a folder where nothing was ever plain."""
    return EncryptionCodec(store(tmp_path / "k"))


def test_a_converter_for_one_workflow_makes_only_its_codec_anew(codec: EncryptionCodec) -> None:
    """Temporal asks for one a dozen times in each update: serializers and adapters are shared."""
    shared = data_converter(codec)
    bound = shared.with_context(WorkflowSerializationContext("default", SESSION))
    assert bound.payload_converter is shared.payload_converter
    assert bound.failure_converter is shared.failure_converter
    assert bound.payload_codec is not shared.payload_codec


def of(codec: EncryptionCodec, workflow_id: str) -> DataConverter:
    """What a client or worker converts a workflow's payloads with."""
    return data_converter(codec).with_context(WorkflowSerializationContext("default", workflow_id))


class Began:
    """Says when runs began, and counts how often it was asked."""

    def __init__(self, **began: datetime | None) -> None:
        self.began_at = began
        self.asked = 0

    async def began(self, workflow_id: str) -> datetime | None:
        self.asked += 1
        return self.began_at.get(workflow_id.replace("/", "_"))


async def refused(converter: DataConverter, payload: Payload) -> bool:
    """Whether whoever reads it gets the typed error."""
    try:
        await converter.decode([payload])
    except ApplicationError as error:
        return error.type == PayloadRefused.code and error.non_retryable
    return False


async def test_a_payload_holds_no_word_and_comes_back(codec: EncryptionCodec) -> None:
    """Neither data nor metadata show content or its encoding; the same workflow reads it."""
    (sent,) = await of(codec, SESSION).encode([{"content": WORDS}])
    assert sent.metadata["encoding"] == b"binary/encrypted"
    assert b"PLUMBUS" not in sent.SerializeToString()
    assert b"json" not in sent.SerializeToString()
    assert await of(codec, SESSION).decode([sent]) == [{"content": WORDS}]
    (twice,) = await of(codec, SESSION).encode([{"content": WORDS}])
    assert twice.data != sent.data


async def test_an_activity_reads_what_its_workflow_sent(codec: EncryptionCodec) -> None:
    """Both contexts name the workflow, which is what a payload is bound to."""
    (sent,) = await of(codec, SESSION).encode([WORDS])
    context = ActivitySerializationContext(
        "default", "1", "engram.store_turns", "q", SESSION, "engram.session", is_local=True
    )
    assert await data_converter(codec).with_context(context).decode([sent]) == [WORDS]


async def test_plain_foreign_and_changed_payloads_are_refused(
    codec: EncryptionCodec, tmp_path: Path
) -> None:
    """Plain, another store's, another workflow's, an unknown key's, and one changed bit."""
    here = of(codec, SESSION)
    (plain,) = await data_converter(None).encode([WORDS])
    (foreign,) = await of(EncryptionCodec(store(tmp_path / "other")), SESSION).encode([WORDS])
    (elsewhere,) = await of(codec, "session/default/ada/s2").encode([WORDS])
    (others,) = await of(codec, "session/default/bob/s1").encode([WORDS])
    (good,) = await here.encode([WORDS])
    renamed, changed, short = (Payload.FromString(good.SerializeToString()) for _ in range(3))
    renamed.metadata["engram-key"] = b"0" * 16
    changed.data = changed.data[:-1] + bytes([changed.data[-1] ^ 1])
    short.data = b"x"
    moved = Payload.FromString(elsewhere.SerializeToString())
    moved.metadata["engram-workflow"] = SESSION.encode()
    for payload in (plain, foreign, elsewhere, others, renamed, changed, short, moved):
        assert await refused(here, payload)
    assert codec.refused == 8
    assert not await refused(here, good)


@given(data=st.binary(max_size=200), encoding=st.sampled_from([b"", b"binary/encrypted"]))
async def test_nothing_that_is_made_up_is_read(
    data: bytes, encoding: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever bytes come without the key, nobody reads them and nothing is raised."""
    made_up = Payload(metadata={"encoding": encoding, "engram-key": data[:16]}, data=data)
    codec = EncryptionCodec(store(tmp_path_factory.getbasetemp() / "made-up"))
    assert await refused(of(codec, SESSION), made_up)


async def test_a_failure_says_nothing_to_whom_it_does_not_concern(codec: EncryptionCodec) -> None:
    """Message, stack and details are encrypted; the type stays readable."""
    failure = Failure()
    await of(codec, SESSION).encode_failure(
        ApplicationError(WORDS, {"quoted": WORDS}, type="invalid_turn"), failure
    )
    assert b"PLUMBUS" not in failure.SerializeToString()
    assert failure.application_failure_info.type == "invalid_turn"
    error = await of(codec, SESSION).decode_failure(failure)
    assert isinstance(error, ApplicationError)
    assert (error.message, error.details) == (WORDS, ({"quoted": WORDS},))


@pytest.mark.parametrize(
    "sent",
    [{"turns": [WORDS]}, {"user_id": {"x": WORDS}}, WORDS, b'{"user_id": "' + WORDS.encode()],
)
def test_what_does_not_fit_is_refused_without_being_quoted(sent: object) -> None:
    """Callers without keys get failures in plain, and workers log them: neither has the words."""
    data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    payload = Payload(metadata={"encoding": b"json/plain"}, data=data)
    door = for_strangers(data_converter(None))
    with pytest.raises(ValidationError, match="EncodeArgs") as refused:
        door.payload_converter.from_payload(payload, EncodeArgs)
    failure = Failure()
    door.failure_converter.to_failure(refused.value, door.payload_converter, failure)
    told = "".join(traceback.format_exception(refused.value))
    assert "PLUMBUS" not in told + str(failure)


async def test_plain_is_read_of_runs_from_before_and_of_no_others(tmp_path: Path) -> None:
    """The server says when the latest run began; a later run under the same id ends it."""
    keys = store(tmp_path / "k", SWITCHED_ON)
    codec, (plain,) = EncryptionCodec(keys), await data_converter(None).encode([WORDS])
    runs = Began(old=SWITCHED_ON - timedelta(days=1), new=SWITCHED_ON, none=None)
    assert await refused(of(codec, "old"), plain)
    codec.ask(runs)
    assert not await refused(of(codec, "old"), plain)
    assert await refused(of(codec, "new"), plain)
    assert await refused(of(codec, "none"), plain)
    assert await refused(data_converter(codec), plain)
    (sealed,) = await of(codec, "old").encode([WORDS])
    assert sealed.metadata["encoding"] == b"binary/encrypted"
    runs.began_at["old"] = SWITCHED_ON + timedelta(seconds=1)
    assert await refused(of(codec, "old"), plain)


async def test_who_floods_with_plain_payloads_has_the_server_asked_once(tmp_path: Path) -> None:
    """A refusal is remembered; and where nothing was ever plain, nobody is asked."""
    (plain,) = await data_converter(None).encode([WORDS])
    for since, asked in ((SWITCHED_ON, 1), (None, 0)):
        codec, runs = EncryptionCodec(store(tmp_path / str(asked), since)), Began()
        codec.ask(runs)
        for _ in range(20):
            assert await refused(of(codec, SESSION), plain)
        assert (runs.asked, codec.refused) == (asked, 20)


async def test_after_its_key_was_shredded_a_payload_is_noise(
    codec: EncryptionCodec, tmp_path: Path
) -> None:
    """Nothing of the erased user is read; what erased them, and others, still is."""
    erasure = names.erasure_workflow_id(ADA)
    converters = {one: of(codec, one) for one in (SESSION, erasure, "session/default/bob/s")}
    sent = {one: (await converter.encode([WORDS]))[0] for one, converter in converters.items()}
    await codec.keys.retire(ADA.tenant)
    assert not await refused(converters[SESSION], sent[SESSION])
    await codec.keys.shred(ADA.tenant)
    assert await refused(converters[SESSION], sent[SESSION])
    assert not await refused(converters[erasure], sent[erasure])
    assert not await refused(converters["session/default/bob/s"], sent["session/default/bob/s"])


async def test_an_answer_through_a_door_is_noise_after_the_user_s_key_was_shredded(
    tmp_path: Path,
) -> None:
    """Whoever asked through Nexus reads it until then, and what another was told afterwards."""
    keys = store(tmp_path / "k")
    asked = NexusSerializationContext("memory", names.NEXUS_SERVICE, "recall")
    door = for_strangers(data_converter(EncryptionCodec(keys))).with_context(asked)
    caller = data_converter(EncryptionCodec(keys)).with_context(asked)

    async def answered(user: str) -> Payload:
        answer_as(names.nexus_answer_id(Scope.of("default", user)))
        (payload,) = await door.encode([WORDS])
        return payload

    # Each in a task of its own, as the SDK has it.
    told, other = await asyncio.gather(answered("ada"), answered("bob"))
    assert await caller.decode([told]) == [WORDS]
    await keys.retire(ADA.tenant)
    await keys.shred(ADA.tenant)
    assert await refused(caller, told)
    assert await caller.decode([other]) == [WORDS]
    # What belongs to a workflow is that workflow's, whoever asked for it.
    answer_as(names.nexus_answer_id(ADA))
    (own,) = await of(EncryptionCodec(keys), SESSION).encode([WORDS])
    assert own.metadata["engram-workflow"] == SESSION.encode()


async def test_a_schedule_s_payload_opens_in_every_run_it_starts(codec: EncryptionCodec) -> None:
    """Temporal appends the time to the id, and hands a run the last one's result."""
    maintenance = names.maintenance_workflow_id("decay")
    (sent,) = await of(codec, maintenance).encode([1])
    (result,) = await of(codec, f"{maintenance}-2026-03-04T12:00:00Z").encode([2])
    run = of(codec, f"{maintenance}-2026-03-04T13:00:00Z")
    assert await run.decode([sent, result]) == [1, 2]
    assert await refused(of(codec, names.maintenance_workflow_id("promotion")), sent)
    (of_session,) = await of(codec, SESSION).encode([3])
    assert await refused(of(codec, f"{SESSION}-2026-03-04T13:00:00Z"), of_session)


async def test_a_replay_reads_both_and_makes_no_key(codec: EncryptionCodec) -> None:
    """It has no effects: plain histories are read, and what it answers goes nowhere."""
    (plain,) = await data_converter(None).encode([WORDS])
    (sealed,) = await of(codec, SESSION).encode([WORDS])
    replaying = for_replays(data_converter(codec)).with_context(
        WorkflowSerializationContext("default", SESSION)
    )
    assert await replaying.decode([plain, sealed]) == [WORDS, WORDS]
    await codec.keys.retire(ADA.tenant)
    await replaying.encode([WORDS])
    assert await codec.keys.shred(ADA.tenant) == 1
    assert await codec.keys.shred(ADA.tenant) == 0
    assert for_replays(data_converter(None)).payload_codec is None


def test_the_workflow_s_id_says_whose_key_it_is() -> None:
    """What holds words of one user has the user's key; whatever serves several, the shared."""
    bob = Scope.of("work", "bob")
    variants = [variant_of(population, dry_run=False) for population in Population]
    own = [
        names.session_workflow_id(bob, "s/1"),
        names.forgetting_workflow_id(bob, "7"),
        names.import_workflow_id(bob, "i"),
        *(names.consolidation_workflow_id(bob, variant) for variant in variants),
    ]
    assert {key_owner_of(one) for one in own} == {"work/bob"}
    shared = [
        names.erasure_workflow_id(bob),
        names.decay_workflow_id(bob),
        names.promotion_workflow_id(bob, "-trial"),
        names.maintenance_workflow_id("decay"),
        *("", "session", "session/alone", "something/else/again"),
    ]
    assert {key_owner_of(one) for one in shared} == {SHARED_KEY_OWNER}


@pytest.mark.parametrize("user", ["bob", "b" * 80])
def test_a_user_of_two_stores_has_a_key_in_each(user: str) -> None:
    """Erased from one store, what the other's workflows hold stays readable; also by digest."""
    bob = Scope.of("n" * 60, user)
    sessions = [names.session_workflow_id(bob, "s" * 60), names.consolidation_workflow_id(bob)]
    staged = {key_owner_of(names.in_store("staging" * 9, one)) for one in sessions}
    assert staged == {key_owner("staging" * 9, bob.tenant)} != {bob.tenant}
    erasure = names.in_store("staging", names.erasure_workflow_id(bob))
    assert key_owner_of(erasure) == SHARED_KEY_OWNER
