"""Vectors are checked before anything is written: engines accept some broken ones silently."""

from __future__ import annotations

import math
from itertools import pairwise

from engram.errors import WrongVectorSize
from engram.ports import SparseVector, TextVectors

MAX_TERM_ID = 2**32 - 1


def check_vectors(vectors: TextVectors, dimensions: int) -> None:
    """Refuse vectors that do not fit the store.

    Raises:
        WrongVectorSize: wrong length, not finite, or a malformed sparse vector.
    """
    if len(vectors.dense) != dimensions:
        raise WrongVectorSize(
            f"A dense vector has {len(vectors.dense)} dimensions.",
            allowed=f"{dimensions} dimensions in this store",
            hint="The store is bound to the embedder it was made with.",
            details={"size": len(vectors.dense), "expected": dimensions},
        )
    # The sum is finite if all parts are, short of overflow, and is far cheaper than a loop.
    if not math.isfinite(sum(vectors.dense)) and not all(map(math.isfinite, vectors.dense)):
        raise WrongVectorSize(
            "A dense vector holds a number that is not finite.", allowed="finite numbers"
        )
    _check_sparse(vectors.sparse)


def _check_sparse(sparse: SparseVector) -> None:
    indices = sparse.indices
    if len(indices) != len(sparse.values):
        raise WrongVectorSize(
            f"A sparse vector has {len(indices)} term ids and {len(sparse.values)} weights.",
            allowed="one weight per term id",
        )
    if indices and not (
        indices[0] >= 0
        and indices[-1] <= MAX_TERM_ID
        and all(left < right for left, right in pairwise(indices))
    ):
        raise WrongVectorSize(
            "The term ids of a sparse vector are out of order or out of range.",
            allowed=f"ascending, unique, 0 to {MAX_TERM_ID}",
        )
    if not all(map(math.isfinite, sparse.values)):
        raise WrongVectorSize(
            "A sparse vector holds a weight that is not finite.", allowed="finite numbers"
        )
