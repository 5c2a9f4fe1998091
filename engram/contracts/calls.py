"""What other Temporal programs ask memory with, as small plain JSON.

Plain dataclasses: every data converter carries them, and every SDK can write them. Fields are
only ever added, with defaults; names are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class UserArgs:
    """Whose memory is meant.

    Attributes:
        user_id: 1 to 80 ASCII letters, digits and ``. _ @ + : = | ~ -``.
        namespace: Keeps applications apart; that of whoever answers if None.
    """

    user_id: str
    namespace: str | None = None


@dataclass(frozen=True, kw_only=True)
class EncodeArgs(UserArgs):
    """Turns to keep.

    Attributes:
        session_id: The conversation they belong to.
        turns: Each with the fields of :class:`engram.Turn`; ``content`` alone is enough.
        extract_facts: Whether to look for pattern facts and negations.
        is_test: Keeps the turns, and all drawn from them, out of real answers.
    """

    session_id: str
    turns: list[dict[str, Any]]
    extract_facts: bool = True
    is_test: bool = False


@dataclass(frozen=True, kw_only=True)
class RecallArgs(UserArgs):
    """A question.

    Attributes:
        query: In words.
        options: Other fields of the HTTP API's body of ``recall``: ``limit``, ``memory_types``,
            ``as_of`` and so on.
    """

    query: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ContextArgs(RecallArgs):
    """A question whose answer goes into a prompt.

    Attributes:
        tokens: The most that it may have, estimated as a quarter of its characters.
    """

    tokens: int = 1000


@dataclass(frozen=True, kw_only=True)
class ProfileArgs(UserArgs):
    """A question about somebody or something.

    Attributes:
        name: Of a person, place or project; None for the user.
    """

    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class ForgetArgs(UserArgs):
    """What is to be forgotten.

    Attributes:
        memory_id: Of a memory of this user.
    """

    memory_id: str


@dataclass(frozen=True, kw_only=True)
class ConsolidateArgs(UserArgs):
    """Which turns are consolidated now.

    Attributes:
        test_only: Test turns only, instead of all others.
    """

    test_only: bool = False
