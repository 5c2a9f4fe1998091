"""What passes between clients, the workflow that has a person settle a dispute, and activities.

Ids, numbers and times; no content.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import Field

from engram.contracts.messages import Message, ScopedMessage, TimedMessage, Timeout
from engram.domain.identity import operation_id
from engram.domain.rules import DigestPolicy, ReviewDefault, ReviewRules
from engram.errors import InvalidInput

# --- what a person can answer

KEEP_NEWEST: Final = "newest"
KEEP_ALL: Final = "both"
KEEP_NONE: Final = "none"


class Settlement(NamedTuple):
    """Which memories stand, and which are refuted. Neither: they stay in dispute."""

    kept: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()


def review_id_of(memory_ids: Sequence[str]) -> str:
    """The id of the review of these memories: opening it twice is opening it once."""
    return operation_id("review", *sorted(memory_ids))


def allowed_answers(memory_ids: Sequence[str]) -> tuple[str, ...]:
    """What can be answered to a review of these memories."""
    several = (KEEP_NEWEST, KEEP_ALL) if len(memory_ids) > 1 else ()
    return (*memory_ids, *several, KEEP_NONE)


def check_answer(keep: str, memory_ids: Sequence[str]) -> None:
    """Refuse an answer that is none.

    Raises:
        InvalidInput: naming what is allowed.
    """
    allowed = allowed_answers(memory_ids)
    if keep not in allowed:
        raise InvalidInput(
            "This is no answer to the review.",
            allowed=", ".join(allowed),
            hint="`reviews` shows the memories of each review that waits.",
        )


# --- the workflow


class ReviewState(ScopedMessage):
    """What a review starts with.

    Attributes:
        memory_ids: What contradicts each other; of one that the user disputes, only that.
        rules: How long it waits, and what then.
        store_timeout: Longest time for one activity.
        digests: By which profiles are composed again once it is settled.
    """

    memory_ids: tuple[str, ...] = Field(min_length=1, max_length=2)
    rules: ReviewRules
    store_timeout: Timeout
    digests: DigestPolicy


class AnswerReview(Message):
    """A person's answer: the id of the memory that holds, ``newest``, ``both`` or ``none``."""

    keep: str


class ReviewEnd(StrEnum):
    """How a review ended."""

    ANSWERED = "answered"
    """A person said which holds."""
    DEFAULTED = "defaulted"
    """Nobody did, in time; the setting was followed."""
    SETTLED = "settled"
    """It was settled elsewhere: by a confirmation, or by what was said since."""
    FORGOTTEN = "forgotten"
    """One of the memories is gone."""


class ReviewOutcome(Message):
    """How a review ended, and what stands.

    Attributes:
        review_id: Which review.
        memory_ids: What it was about.
        ended: How it ended.
        kept: Of those, what stands.
        refuted: Of those, what is not so.
        reminders: How often it reminded.
        workflow_id: The run, for the Temporal UI.
    """

    review_id: str
    memory_ids: tuple[str, ...]
    ended: ReviewEnd
    kept: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    reminders: int = 0
    workflow_id: str | None = None


class ReviewNote(Message):
    """What a review that waits notes on its run, where listings show it.

    Attributes:
        memory_ids: What it is about.
        opened_at: When it began to wait.
        deadline: When the setting decides.
        default: What it says.
        reminders: How often it has reminded.
    """

    memory_ids: tuple[str, ...]
    opened_at: datetime
    deadline: datetime
    default: ReviewDefault = "keep_newest"
    reminders: int = 0


# --- its activities


class OpenReviewsInput(ScopedMessage):
    """Pairs that nothing settles, for each of which a review is to wait.

    Attributes:
        pairs: Ids of memories.
        rules: How long reviews wait, and what then.
    """

    pairs: tuple[tuple[str, str], ...]
    rules: ReviewRules


class OpenReviewsOutput(Message):
    """How many pairs are in dispute, and so have a review that waits."""

    opened: int = 0


class LookAtDisputeInput(ScopedMessage):
    """Input of the activity that looks how things stand between these memories."""

    memory_ids: tuple[str, ...]


class DisputeState(StrEnum):
    """How things stand between the memories of a review."""

    OPEN = "open"
    HALFWAY = "halfway"
    """One is refuted, or came to its end, and the other is still in dispute with it."""
    SETTLED = "settled"
    FORGOTTEN = "forgotten"


class DisputeFound(Message):
    """What the look found.

    Attributes:
        state: Whether anything is left to settle.
        newest_first: The memories, the newest first: by when it began to hold, was told, made;
            what has left the answers comes after what holds.
        best_supported_first: The same, by how many turns say so; then the newest first.
        refuted: Those that are refuted, or came to their end.
        replaced: What they took the place of, which holds again where they do not.
    """

    state: DisputeState
    newest_first: tuple[str, ...] = ()
    best_supported_first: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    def settled_by(self, keep: str, memory_ids: Sequence[str]) -> Settlement:
        """What a person's answer comes to."""
        match keep:
            case "both":
                return Settlement(kept=tuple(memory_ids))
            case "none":
                return Settlement(refuted=tuple(memory_ids))
            case "newest":
                keep = self.newest_first[0]
        return Settlement((keep,), tuple(one for one in memory_ids if one != keep))

    def settled_after(self, default: ReviewDefault, memory_ids: Sequence[str]) -> Settlement:
        """What the setting comes to; what the user refuted stays so."""
        if default == "keep_both_disputed" or not memory_ids[1:]:
            return Settlement()
        order = self.newest_first if default == "keep_newest" else self.best_supported_first
        return Settlement(order[:1], order[1:])


class SettleDisputeInput(TimedMessage):
    """Input of the activity that settles a dispute.

    Attributes:
        kept: What stands.
        refuted: What does not.
        confirmed: Whether a person says so.
    """

    kept: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    confirmed: bool = False
