"""Batches that fail for their own sake: halved, then left out, so that the others go on."""

from __future__ import annotations

from dataclasses import dataclass

from engram.contracts.consolidation import EpisodeBatch, Failure
from workflows.failures import is_of_the_model

# Finding one refused turn among twenty takes five; past this, batches are left out whole.
_MOST_HALVINGS = 16
# A model that turns down turns of so many batches and accepts nothing is the wrong model.
_HOPELESS_BATCHES = 10
# The ids of what is left out travel in payloads.
_MOST_LEFT_OUT = 2000


@dataclass
class Refusals:
    """Of one pass: how many batches lost turns to refusals, and how often one was halved."""

    batches: int = 0
    halvings: int = 0

    def halve(self, batch: EpisodeBatch, failure: Failure) -> tuple[EpisodeBatch, ...]:
        """The halves to ask for instead; none when halving is no use."""
        if not is_of_the_model(failure) or self.halvings >= _MOST_HALVINGS:
            return ()
        parts = halves(batch)
        self.halvings += bool(parts)
        return parts

    def must_end(self, *, accepted: int, left_out: int) -> bool:
        """Whether going on would only spend money: nothing is accepted, or far too much is not."""
        return left_out >= _MOST_LEFT_OUT or (self.batches >= _HOPELESS_BATCHES and not accepted)


def halves(batch: EpisodeBatch) -> tuple[EpisodeBatch, ...]:
    """Both halves of a batch, in order; none of a single turn."""
    ids = batch.episode_ids
    middle = len(ids) // 2
    if not middle:
        return ()
    return tuple(
        batch.model_copy(update={"episode_ids": part}) for part in (ids[:middle], ids[middle:])
    )
