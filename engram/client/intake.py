"""Turns as applications give them, on their way to being stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import ValidationError

from engram.contracts.sessions import AcceptedTurn
from engram.domain.turns import Turn, check_turn
from engram.errors import InvalidTurn
from engram.ports import Clock

_TICK = timedelta(microseconds=1)


class TurnIntake:
    """Checks turns before anything is sent, and fills in what was left open.

    Args:
        clock: The present.
        new_id: Makes an id for a turn that has none.
        max_bytes: Longest content.
    """

    def __init__(self, clock: Clock, new_id: Callable[[], str], *, max_bytes: int) -> None:
        self._clock = clock
        self._new_id = new_id
        self._max_bytes = max_bytes
        self._last_minted: datetime | None = None

    def accept(self, given: str | Turn | Sequence[str | Turn]) -> tuple[AcceptedTurn, ...]:
        """The turns, each with an id and a time.

        Raises:
            InvalidTurn: one of them cannot be kept, or there is none.
        """
        turns = _as_turns(given)
        if not turns:
            raise InvalidTurn("There is no turn to encode.", allowed="at least one turn")
        now = self._clock()
        for turn in turns:
            check_turn(turn, now=now, max_bytes=self._max_bytes)
        return tuple(
            AcceptedTurn(
                message_id=turn.message_id or self._new_id(),
                role=turn.role,
                content=turn.content,
                speaker=turn.speaker,
                timestamp=turn.timestamp or self._mint_timestamp(now),
                metadata=turn.metadata,
                tags=turn.tags,
                importance=turn.importance,
            )
            for turn in turns
        )

    def _mint_timestamp(self, now: datetime) -> datetime:
        """Now, but always after the last one, so that turns of one call keep their order."""
        minted = now if self._last_minted is None else max(now, self._last_minted + _TICK)
        self._last_minted = minted
        return minted


def _as_turns(turns: str | Turn | Sequence[str | Turn]) -> list[Turn]:
    given: Iterable[str | Turn] = [turns] if isinstance(turns, str | Turn) else turns
    return [turn if isinstance(turn, Turn) else _user_turn(turn) for turn in given]


def _user_turn(content: object) -> Turn:
    if not isinstance(content, str):
        raise InvalidTurn(
            f"A turn was given as {type(content).__name__}.",
            allowed="a string, an engram.Turn, or a list of these",
        )
    try:
        return Turn(content=content)
    except ValidationError as error:
        raise InvalidTurn(
            "The content of a turn is not valid Unicode text.",
            allowed="text that can be encoded as UTF-8",
            hint="Decode the original bytes with errors='replace'.",
        ) from error
