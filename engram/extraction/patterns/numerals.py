"""Numbers written as words."""

from __future__ import annotations

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SMALL: dict[str, int] = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * (value + 2) for value, word in enumerate(_TENS)},
    **{
        f"{tens}-{unit}": 10 * (ten + 2) + one
        for ten, tens in enumerate(_TENS)
        for one, unit in enumerate(_UNITS[1:10], start=1)
    },
}
SCALES: dict[str, int] = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
}
# Longest first, so that a regular expression does not stop at "six" in "sixteen".
WORDS = "|".join(sorted(SMALL, key=len, reverse=True))


def small_number(word: str) -> int | None:
    """The value of "7", "a", "an", "seven" or "twenty-one"; None for anything else."""
    if word in {"a", "an"}:
        return 1
    if word.isascii() and word.isdigit():
        return int(word)
    return SMALL.get(word.replace(" ", "-"))
