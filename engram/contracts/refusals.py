"""What was wrong with a request, in words of ours: nothing of what was given is repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pydantic import ValidationError

from engram.errors import EngramError, InvalidInput

_MOST_NAMED: Final = 10
_FIELD_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}\Z")
# Pydantic's words for these hold what was given, or what somebody's validator said of it.
_REPEATING: Final = frozenset(
    {"value_error", "assertion_error", "union_tag_invalid", "uuid_parsing", "url_parsing"}
)
_IN_OTHER_WORDS: Final = {
    "json_invalid": "this is no JSON",
    "model_attributes_type": "an object is expected",
    "model_type": "an object is expected",
    "tuple_type": "a list is expected",
}


@contextmanager
def typed_refusals() -> Iterator[None]:
    """Raise what validators of ours raised, where a request is made in the block.

    Raises:
        EngramError: what a validator raised.
        InvalidInput: a field has another type.
    """
    try:
        yield
    except ValidationError as error:
        # Not from it: its text would repeat what was given.
        raise refused(error.errors(include_input=False, include_url=False), "This") from None


def refused(errors: Sequence[Any], what: str, *, hint: str | None = None) -> EngramError:
    """What Pydantic found wrong, as an error of ours.

    Args:
        errors: As :meth:`pydantic.ValidationError.errors` lists them.
        what: What cannot be used, as the sentence begins.
        hint: What to do about it, where no error of ours says so.
    """
    if (ours := first_typed(errors)) is not None:
        return ours
    found = [one for one in errors if not _follows_from_another(one, errors)]
    wrong = "; ".join(map(_said, found[:_MOST_NAMED]))
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return InvalidInput(f"{what} cannot be used: {wrong}{more}.", hint=hint)


def first_typed(errors: Sequence[Any]) -> EngramError | None:
    """The first error of ours among those that Pydantic lists, unless others are there too."""
    found = [_raised(one) for one in errors if not _follows_from_another(one, errors)]
    return found[0] if found and None not in found else None


def _raised(one: Any) -> EngramError | None:
    raised = one.get("ctx", {}).get("error")
    return raised if isinstance(raised, EngramError) else None


def _follows_from_another(one: Any, errors: Sequence[Any]) -> bool:
    """A list is too short also because one of its items is wrong."""
    where = one["loc"]
    return one["type"] == "too_short" and any(
        len(other["loc"]) > len(where) and other["loc"][: len(where)] == where for other in errors
    )


def _said(one: Any) -> str:
    place = _place(one["loc"])
    return f"{place}: {_told(one)}" if place else _told(one)


def _told(one: Any) -> str:
    kind = str(one["type"])
    if (raised := _raised(one)) is not None:
        return raised.message.rstrip(".")
    if kind in _REPEATING:
        return kind.replace("_", " ")
    # What is a tuple in Python is a list to whoever sent it.
    message = str(one["msg"]).replace("Tuple", "List")
    return _IN_OTHER_WORDS.get(kind) or message[:1].lower() + message[1:]


def _place(parts: Sequence[int | str]) -> str:
    """Where something is wrong. Names of fields are the sender's: anything may stand there."""
    return ".".join(
        str(part) if isinstance(part, int) or _FIELD_NAME.match(part) else "(a name)"
        for part in parts
    )
