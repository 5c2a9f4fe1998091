"""The form in which memories are stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.domain.digests import BoxDetail, SealReason
from engram.domain.memories import (
    Episode,
    Link,
    MemoryStatus,
    Provenance,
    SemanticMemory,
    Tier,
    Vitals,
)
from engram.domain.scope import Scope
from engram.domain.slots import related_predicates, slot_of
from engram.errors import InvalidInput, StorageError
from engram.storage.base import DecodedPayloads
from engram.storage.payload import (
    decode,
    decode_change,
    encode,
    encode_change,
    format_time,
    is_memory_id,
)
from tests.support.recall_memories import semantic

SCOPE = Scope.of("default", "ada")
ID = "7d444840-9dc0-51d1-b245-5ffdce74fad2"
TIMES = st.datetimes(
    min_value=datetime(1900, 1, 2),  # noqa: DTZ001  # hypothesis adds the zone
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001  # same
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m))),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def turn(**values: Any) -> Episode:
    """A turn with the fields that matter to a test."""
    at = datetime(2025, 6, 1, tzinfo=UTC)
    basic = {"content": "x", "known_at": at, "created_at": at, "timestamp": at}
    names = {"id": ID, "namespace": "default", "user_id": "ada", "role": "user", "message_id": "m"}
    return Episode(**{**basic, **names, **values})


@given(content=TEXT, at=TIMES, metadata=st.dictionaries(st.text(), JSON), tags=st.lists(TEXT))
def test_a_memory_survives_the_way_through_json(
    content: str, at: datetime, metadata: dict[str, Any], tags: list[str]
) -> None:
    """Any text, moment and metadata comes back equal, also when the payload passes as JSON."""
    memory = turn(content=content, timestamp=at, metadata=metadata, tags=tuple(tags))
    assert decode(json.loads(json.dumps(encode(SCOPE, memory)))) == memory


@given(one=TIMES, other=TIMES)
def test_times_compare_as_text_as_they_do_as_moments(one: datetime, other: datetime) -> None:
    """One width, one zone: the order of the texts is the order of the moments."""
    assert len(format_time(one)) == len("2025-06-01T00:00:00.000000Z")
    assert (format_time(one) < format_time(other)) == (one < other)
    assert (format_time(one) == format_time(other)) == (one == other)


def test_a_time_without_zone_is_refused() -> None:
    """Nobody could say which moment it is."""
    with pytest.raises(InvalidInput, match="timezone"):
        format_time(datetime(2025, 6, 1))  # noqa: DTZ001  # the mistake under test


def test_times_that_are_read_share_one_zone() -> None:
    """Comparing two takes a tenth of what it takes where each has a zone of its own."""
    at = datetime(2025, 6, 1, tzinfo=UTC)
    link = Link(target_id=ID, first_seen=at, last_seen=at)
    memory = decode(encode(SCOPE, semantic("Ada lives in Oslo.", links=(link,))))
    assert isinstance(memory, SemanticMemory)
    times = [memory.known_at, memory.confidence.last_confirmed, memory.links[0].last_seen]
    assert all(time.tzinfo is UTC for time in times)


@pytest.mark.parametrize("said", ["2025-W22-7T10:00:00.000000Z", "2025-06-01x10:00:00.000000Z"])
def test_a_time_in_another_form_is_refused(said: str) -> None:
    """Python reads weeks, and any sign between day and hour; nothing that is written has them."""
    with pytest.raises(ValidationError, match="first_seen"):
        Link.model_validate({"target_id": ID, "first_seen": said, "last_seen": said})


def test_fields_of_a_newer_version_come_back_as_they_were() -> None:
    """They are no obstacle to reading, and are part of what is written again."""
    payload = {**encode(SCOPE, turn()), "mood": "new in 2.0"}
    assert encode(SCOPE, decode(payload).model_copy(update={"tags": ("a",)})) == {
        **payload,
        "tags": ["a"],
    }


def test_what_no_query_is_about_is_stored_as_text_and_read_in_either_form() -> None:
    """Engines take their time over each name and value; earlier versions stored them apart."""
    at = datetime(2025, 6, 1, tzinfo=UTC)
    box = BoxDetail(
        keys=("box:1", "word:tea"), session_id="s", opened=at, last=at, sealed=SealReason.TOPIC,
        topic=("tea",), terms=("tea",), episode_ids=(ID,), trace_id="t",
    )  # fmt: skip
    lived = Vitals(energy=2.5, energy_at=at, tier=Tier.LONG_TERM, promotion_attempts=1)
    memory = semantic("A box.", detail=box, occasions={"s 2025-06-01": (ID,)}, vitals=lived)
    payload = encode(SCOPE, memory)
    assert payload["detail"].keys() == {"keys", "rest"}
    assert payload["vitals"].keys() == {"promotion_attempts", "rest"}
    as_before = {
        **payload,
        "confidence": json.loads(payload["confidence"]),
        "occasions": json.loads(payload["occasions"]),
        "detail": {**json.loads(payload["detail"]["rest"]), "keys": list(box.keys)},
        "vitals": {**lived.model_dump(mode="json"), "together": "[]"},
    }
    assert decode(payload) == decode(as_before) == memory


@pytest.mark.parametrize("ended", ["", "no longer "])
def test_a_slot_is_read_by_its_present_name(ended: str) -> None:
    """Whatever a statement of its kind was stored under before, as holding or as having ended."""
    told = semantic("Ana's manager is Bo", slot=slot_of("Ana", "manager is", "Bo"))
    payload = json.loads(json.dumps(encode(SCOPE, told)))
    payload["slot"]["predicate"] = f"{ended}reports to"
    read = decode(payload)
    assert isinstance(read, SemanticMemory)
    assert read.slot is not None
    assert read.slot.predicate == f"{ended}manager is"
    assert f"{ended}reports to" in related_predicates(read.slot)


CHANGES: dict[str, st.SearchStrategy[Any]] = {
    "tags": st.lists(TEXT).map(tuple),
    "metadata": st.just({}) | st.dictionaries(st.text(), JSON).map(lambda data: {**data, "k": 1}),
    "importance": st.sampled_from([0, 0.25, 1]),
    "expires_at": st.none() | TIMES,
    "is_test": st.booleans(),
    "status": st.sampled_from(MemoryStatus),
    "provenance": st.sampled_from([Provenance(), Provenance(run_id="r"), Provenance(model="m")]),
    "vitals": st.none() | st.builds(Vitals, energy=st.just(1.5), energy_at=TIMES),
    "links": st.lists(st.builds(Link, target_id=TEXT, first_seen=TIMES, last_seen=TIMES)).map(
        tuple
    ),
    "slot": st.sampled_from([None, slot_of("Ana", "manager is", "Bo")]),
    "occasions": st.dictionaries(TEXT, st.lists(TEXT).map(tuple)),
    "valid_to": st.none() | TIMES,
}


@given(
    first=st.fixed_dictionaries({}, optional=CHANGES),
    second=st.fixed_dictionaries({}, optional=CHANGES),
)
def test_a_change_is_stored_and_read_as_the_whole_would_be(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Only what differs is spelled out and read; payload and memory are those of the long way."""
    before = decode(json.loads(json.dumps(encode(SCOPE, semantic("A fact.", **first)))))
    stored = encode(SCOPE, before)
    after = before.model_copy(update={**second, "revision": 7})
    payload, few = encode_change(SCOPE, before, stored, after)
    assert payload == encode(SCOPE, after)
    assert few is not None
    assert {n for n in few if few[n] is None} == stored.keys() - payload.keys()
    assert {**stored, **few} == {**payload, **{n: None for n in few if few[n] is None}}
    read = decode_change(before, payload, few.keys())
    assert repr(read) == repr(decode(payload))


def test_what_an_earlier_version_stored_is_spelled_out_anew() -> None:
    """A change of it brings all of it into the present form; what a newer one added stays."""
    memory = semantic("A fact.", slot=slot_of("Ana", "manager is", "Bo"))
    stored = json.loads(json.dumps(encode(SCOPE, memory)))
    older = {**stored, "slot": {**stored["slot"], "predicate": "reports to"}}
    apart = {**stored, "confidence": json.loads(stored["confidence"])}
    newer = {**stored, "mood": "new in 2.0"}
    made = semantic("A fact.", provenance=Provenance(run_id="r"))
    unnamed = {n: v for n, v in encode(SCOPE, made).items() if n != "run_id"}
    for payload, whole in ((older, True), (apart, True), (unnamed, True), (newer, False)):
        before = decode(payload)
        after = before.model_copy(update={"tags": ("a",)})
        written, few = encode_change(SCOPE, before, payload, after)
        assert written == encode(SCOPE, after)
        assert (few is None) is whole


def test_what_was_written_twice_is_read_from_what_was_read_last() -> None:
    """Changes on top of one another, none of which was read, give the memory of the last one."""
    decoded = DecodedPayloads()
    before = decoded(encode(SCOPE, turn(summary="short")))
    decoded.trust([before])
    stored = encode(SCOPE, before)
    for update in ({"tags": ("a",), "summary": None}, {"importance": 1, "revision": 1}):
        after = before.model_copy(update=update)
        payload, few = encode_change(SCOPE, before, stored, after)
        assert few is not None
        decoded.written(payload, few.keys())
        before, stored = after, payload
    assert repr(decoded.trusted(ID)) == repr(decode(stored))


def test_decoded_memories_are_kept_up_to_a_size() -> None:
    """By the length of what they hold, not by their number alone: the last read ones stay."""
    decoded = DecodedPayloads(most=100, size=10_000)
    ids = [f"7d444840-9dc0-51d1-b245-5ffdce74f{n:03}" for n in range(50)]
    payloads = [encode(SCOPE, turn(id=one, content="x" * 100)) for one in ids]
    first = [decoded(payload) for payload in payloads]
    kept = [decoded(payload) is memory for payload, memory in zip(payloads, first, strict=True)]
    assert kept == [False] * 50  # Reading the old ones again pushed out the young.
    again = [decoded(payload) for payload in payloads[-10:]]
    for payload, memory in zip(payloads[-10:], again, strict=True):
        assert decoded(payload) is memory
    huge = encode(SCOPE, turn(content="x" * 20_000))
    assert decoded(huge) is not decoded(huge)
    assert decoded(payloads[0]) is decoded(payloads[0])


def test_what_is_asked_for_outlasts_what_nobody_asks_for() -> None:
    """A trusted memory that is asked for again and again stays, however much is read meanwhile."""
    decoded = DecodedPayloads(most=10)
    ids = [f"7d444840-9dc0-51d1-b245-5ffdce74f{n:03}" for n in range(30)]
    memories = [decoded(encode(SCOPE, turn(id=one))) for one in ids[:2]]
    decoded.trust(memories)
    for one in ids[2:]:
        decoded(encode(SCOPE, turn(id=one)))
        assert decoded.trusted(ids[0]) is memories[0]
    assert decoded.trusted(ids[1]) is None


def test_a_payload_that_cannot_be_read_is_a_typed_error() -> None:
    """It names the memory, and quotes neither content nor the reader's internals."""
    payload = {**encode(SCOPE, turn(content="secret words")), "status": "new in 2.0"}
    with pytest.raises(StorageError) as refused:
        decode(payload)
    assert refused.value.details["id"] == ID
    assert "secret" not in repr(refused.value.as_dict())
    assert refused.value.__cause__ is None


def test_empty_fields_are_left_out() -> None:
    """What says nothing is not stored, and reads back as its default."""
    payload = encode(SCOPE, turn())
    assert {"tags", "metadata", "operation_ids", "provenance", "summary"}.isdisjoint(payload)
    assert payload["tenant"] == "default/ada"


@pytest.mark.parametrize(
    ("value", "usable"),
    [
        (ID, True),
        (ID.upper(), False),
        (ID.replace("-", ""), False),
        (f"{{{ID}}}", False),
        (f"urn:uuid:{ID}", False),
        ("", False),
        ("1", False),
    ],
)
def test_ids_have_one_spelling(value: str, usable: bool) -> None:
    """Engines take several spellings for one point; the store knows one."""
    assert is_memory_id(value) is usable
