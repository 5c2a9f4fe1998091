"""What is measured: conversations, and questions about them whose evidence is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class TalkQuestion:
    """One question.

    Attributes:
        text: As it is asked.
        evidence: The ids of the turns that answer it, those that exist, each once.
        kind: What kind of question its source calls it.
        at: When it is asked; None for the present.
        answer: The right answer, where its source has one.
    """

    text: str
    evidence: tuple[str, ...]
    kind: str
    at: datetime | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Sitting:
    """One sitting: its turns carry their id as message id."""

    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """What one memory holds, and what is asked of it.

    Attributes:
        left_out: So many questions are not among them: no turn of it is their evidence.
    """

    name: str
    sessions: tuple[Sitting, ...]
    questions: tuple[TalkQuestion, ...]
    left_out: int = 0

    @classmethod
    def of(
        cls, name: str, sessions: Mapping[str, Sequence[Turn]], questions: Sequence[TalkQuestion]
    ) -> Talk:
        """A talk with those of its questions that have evidence."""
        asked = tuple(one for one in questions if one.evidence)
        return cls(
            name,
            tuple(Sitting(one, tuple(turns)) for one, turns in sessions.items()),
            asked,
            len(questions) - len(asked),
        )
