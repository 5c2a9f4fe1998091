"""Operations on disputes that wait for a person, and who carries them out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from engram.consolidation.disputes import found_between
from engram.contracts.reviews import (
    KEEP_ALL,
    KEEP_NEWEST,
    KEEP_NONE,
    DisputeState,
    ReviewOutcome,
    allowed_answers,
    review_id_of,
)
from engram.domain.access import Access
from engram.domain.memories import AnyMemory
from engram.domain.rules import ReviewDefault
from engram.domain.scope import Scope
from engram.errors import InvalidInput
from engram.operations.registry import Answered, Operation, Question, handles
from engram.ports import MemoryRepository
from engram.storage.payload import is_memory_id
from engram.temporal.reviews import ReviewGateway, no_review


class Review(Answered):
    """A dispute that waits for a person to say what holds.

    Attributes:
        review_id: By which it is answered.
        memories: The two that contradict each other, the newest first; or the one that the
            user disputes.
        answers: What can be answered: the id of the memory that holds, ``newest``, ``both``
            (they hold side by side) or ``none``.
        opened_at: When it began to wait.
        deadline: When ``default`` decides in the person's place.
        default: What the setting says holds then.
        reminders: How often it has reminded.
        workflow_id: What waits, for the Temporal UI.
    """

    review_id: str
    memories: tuple[AnyMemory, ...]
    answers: tuple[str, ...]
    opened_at: datetime
    deadline: datetime
    default: ReviewDefault
    reminders: int
    workflow_id: str


def _answer(keep: str) -> str:
    # Which of them a review takes, it says itself; of anything else it need not be asked.
    if keep not in {KEEP_NEWEST, KEEP_ALL, KEEP_NONE} and not is_memory_id(keep):
        raise InvalidInput(
            "This is no answer to a review.",
            allowed=f"the id of one of its memories, {KEEP_NEWEST}, {KEEP_ALL} or {KEEP_NONE}",
            hint="`reviews` shows the memories of each review that waits.",
        )
    return keep


class ReviewAnswer(Question):
    """What a person answers to a review."""

    review_id: str
    keep: Annotated[str, AfterValidator(_answer)] = Field(
        description="Id of the memory that holds, or newest, both, none."
    )


REVIEWS: Final = Operation(
    "reviews",
    Question,
    tuple[Review, ...],
    "Disputes that wait for a person to say what holds.",
    access=Access.READ,
)
REVIEW: Final = Operation(
    "review",
    ReviewAnswer,
    ReviewOutcome,
    "Say what holds of memories that contradict each other.",
    access=Access.WRITE,
)


class ReviewHandlers:
    """Carries out the operations of this module.

    Args:
        reviews: Reaches the workflows that wait.
        repository: Where memories are kept.
    """

    def __init__(self, reviews: ReviewGateway, repository: MemoryRepository) -> None:
        self._reviews = reviews
        self._repository = repository

    @handles(REVIEWS)
    async def reviews(self, scope: Scope, asked: Question) -> tuple[Review, ...]:
        """What waits for a person, the longest first; what was settled a moment ago does not."""
        del asked
        waiting = await self._reviews.waiting(scope)
        wanted = {one for _, note in waiting for one in note.memory_ids}
        memories = await self._repository.get(scope, wanted, fresh=True)
        found: list[Review] = []
        for workflow_id, note in waiting:
            ids = note.memory_ids
            stands = found_between(memories, ids)
            if stands.state is not DisputeState.OPEN:
                continue
            found.append(
                Review(
                    review_id=review_id_of(ids),
                    memories=tuple(memories[one] for one in stands.newest_first),
                    answers=allowed_answers(ids),
                    opened_at=note.opened_at,
                    deadline=note.deadline,
                    default=note.default,
                    reminders=note.reminders,
                    workflow_id=workflow_id,
                )
            )
        return tuple(found)

    @handles(REVIEW)
    async def review(self, scope: Scope, asked: ReviewAnswer) -> ReviewOutcome:
        """Settle a dispute on both ends.

        Raises:
            ReviewNotFound: no such review waits.
            InvalidInput: this is no answer to it.
        """
        # The id names a workflow, which must not take a name that is none of ours.
        if not is_memory_id(asked.review_id):
            raise no_review()
        return await self._reviews.answer(scope, asked.review_id, asked.keep)
