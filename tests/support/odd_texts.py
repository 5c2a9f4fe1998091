"""The largest turns, of one piece over and over: what patterns stumble over."""

from __future__ import annotations

LARGEST = 32 * 1024

ADVERSARIAL = [
    "a ", "1", "12 ", "@", "a@", "not ", "\n", "I don't ", "'a ", '"a ', "call me ", "I'm Ben ",
    "$", "$1 ", "1.", "www.", "http://", "(", "+1 ", "on Friday ", "May ", "in a ", " ", ", ",
    "no ", "a", "tomorrow ", "I don't eat. ", "we live in A, not B. ", "10/10/", "A ", "-", ".",
    "i used to ", "Ab here ", "a@b.co ", "5 eur ", "5 pounds ", "one hundred ",
    "call (415) 555-2671 ",
    "Hello, my name is Ada and I paid $5 on 3 May 2024. ", "\u0130", "\u201c", "?!", "i'm ",
]  # fmt: skip
# Pasted: an encoded file, a table of contents, one word again and again.
FILLS = ["x", "-", "....", "\u0001", '"\\', "a@", "://", "'a", "`", "I ", "and "]


def largest(piece: str) -> str:
    """As much of it as a turn may hold."""
    return (piece * (LARGEST // len(piece) + 1))[:LARGEST]
