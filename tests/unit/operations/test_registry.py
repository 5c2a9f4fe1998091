"""What follows from an operation's declaration, and what a declaration cannot say."""

from __future__ import annotations

import pytest

from engram.contracts.refusals import typed_refusals
from engram.domain.access import Access
from engram.errors import InvalidInput, InvalidScope
from engram.operations.catalogue import OPERATIONS
from engram.operations.memories import LIST_MEMORIES
from engram.operations.registry import AboutMemory, Http, Operation, Question
from engram.operations.turns import (
    CONSOLIDATE,
    ENCODE,
    END_SESSION,
    WORKING_MEMORY,
    AboutSession,
)


def declared(http: Http) -> Operation[AboutMemory, int]:
    """An operation about one memory."""
    return Operation("x", AboutMemory, int, "X.", access=Access.READ, http=http)


def test_fields_stand_where_the_template_says() -> None:
    """Path, query and body together hold each field of each request once."""
    assert (ENCODE.placed, ENCODE.sent[0]) == (("session_id",), "turns")
    assert (CONSOLIDATE.path, CONSOLIDATE.sent) == ("consolidate", ("test_only", "dry_run"))
    assert (WORKING_MEMORY.queried, WORKING_MEMORY.has_body) == (("include_test",), False)
    assert (END_SESSION.path, END_SESSION.has_body) == ("sessions/{session_id}/end", False)
    assert LIST_MEMORIES.path == "memories"
    for operation in OPERATIONS:
        fields = (*operation.placed, *operation.queried, *operation.sent)
        assert sorted(fields) == sorted(operation.asked.model_fields), operation.name


@pytest.mark.parametrize(
    "http",
    [Http("GET"), Http(path="x/{nobody}"), Http(path="x{?nothing}"), Http("GET", "x")],
    ids=["get with a body", "unknown place", "unknown query", "get that leaves a field out"],
)
def test_an_address_that_does_not_fit_cannot_be_declared(http: Http) -> None:
    """A template with a name that is no field, or a GET that leaves one out, fails at once."""
    with pytest.raises(TypeError, match="does not fit"):
        declared(http)


def test_what_validators_raise_comes_out_as_it_is() -> None:
    """An error of Engram keeps its type; a wrong type is said without what was given."""
    with pytest.raises(InvalidScope), typed_refusals():
        AboutSession(session_id="a/b")
    with (
        pytest.raises(InvalidInput, match="memory_id: input should be a valid string") as caught,
        typed_refusals(),
    ):
        AboutMemory(memory_id=["secret"])  # type: ignore[arg-type]  # wrong on purpose
    assert "secret" not in str(caught.value)
    few = "turns: list should have at least 1 item"
    with pytest.raises(InvalidInput, match=few), typed_refusals():
        ENCODE.asked(session_id="s", turns=())
    with typed_refusals():
        Question()
