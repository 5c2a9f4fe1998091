"""What is liked, planned or used is noted as a whole phrase: "books about sleep and memory".

Two writers who had seen no rule wrote 240 turns each, with every reading they would accept; the
second half is kept from whoever writes rules.
"""

from __future__ import annotations

import pytest

from tests.support.objects_noted import verdicts

# Of what is noted, .09 and .10 are not as they were meant; .31 and .24 before phrases were whole.
WRONG = 0.12
# Of what could be noted, .62 and .69 are noted in full; .40 and .46 before.
RIGHT = 0.58


@pytest.mark.parametrize("half", ["seen", "held"])
def test_what_is_noted_is_whole_and_no_more_than_was_said(half: str) -> None:
    """Nothing that narrows it is lost, and nothing is in it that does not belong."""
    found = verdicts(f"objects.{half}.txt")
    assert found["wrong"] <= WRONG * (found["right"] + found["part"] + found["wrong"]), found
    assert found["right"] >= RIGHT * found.total(), found
