"""The guard of personal data: what a namespace marks or masks, and what it refuses unmasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from engram.domain.personal_data import PersonalDataRule, PersonalKind, PersonalSpan, with_tokens
from engram.domain.turns import MAX_METADATA_DEPTH
from engram.errors import InvalidTurn, UnmaskedPersonalData, needs_extra
from engram.settings import Settings

if TYPE_CHECKING:
    from engram.ports import PersonalDataDetector

# What is masked can only show something else to whoever contrived it.
_MOST_PASSES: Final = 4
# Whole numbers below are no card, phone or account.
_LEAST_NUMBER: Final = 10**8
# Of metadata, and of a detail of a memory with all that is in it.
_DEEPEST: Final = MAX_METADATA_DEPTH + 8
# Fields of memories that hold no words: names and keys that Engram or the application made.
_NO_WORDS: Final = frozenset(
    {"id", "namespace", "user_id", "session_id", "message_id", "identity", "provenance", "vitals"}
    | {"write_id", "operation_ids", "folded_sources", "policy_fingerprint", "links", "tellings"}
    | {"type", "personal_data", "occasions"}
)


class GuardedTurn(Protocol):
    """What is looked at of a turn, in any of its forms."""

    @property
    def content(self) -> str:
        """The words."""

    @property
    def speaker(self) -> str | None:
        """The speaker's name."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Plain data."""

    @property
    def tags(self) -> Sequence[str]:
        """Labels."""

    @property
    def summary(self) -> str | None:
        """In a sentence."""


class PersonalDataGuard:
    """Looks for personal data where the rule of a namespace says so.

    Names of users, sessions and messages are the application's keys, and stay as they are.

    Args:
        rule: For namespaces without a rule of their own.
        by_namespace: Rules of single namespaces.
        detector: Finds it; None: the built-in one, which needs the extra ``worker``.
        phone_region: Of the built-in detector.

    Raises:
        EmbeddedPartMissing: a namespace has a rule, and the extra is not installed.
    """

    def __init__(
        self,
        rule: PersonalDataRule = "off",
        by_namespace: Mapping[str, PersonalDataRule] | None = None,
        detector: PersonalDataDetector | None = None,
        *,
        phone_region: str = "US",
    ) -> None:
        self._rule = rule
        self._by_namespace = dict(by_namespace or {})
        self._detector = detector
        if detector is None and {rule, *self._by_namespace.values()} != {"off"}:
            with needs_extra("worker"):
                # Not above: the library takes a while to load, and most have no rule.
                from engram.language.personal_data import BuiltInDetector  # noqa: PLC0415
            self._detector = BuiltInDetector(phone_region)

    @classmethod
    def of(cls, settings: Settings) -> PersonalDataGuard:
        """The guard that the settings ask for."""
        return cls(
            settings.personal_data,
            settings.personal_data_by_namespace,
            phone_region=settings.phone_region,
        )

    def masks(self, namespace: str) -> bool:
        """Whether nothing personal may be stored there."""
        return self._rule_of(namespace) == "mask"

    @property
    def masks_anywhere(self) -> bool:
        """Whether any namespace masks."""
        return "mask" in {self._rule, *self._by_namespace.values()}

    def masked(self, namespace: str, turn: GuardedTurn) -> dict[str, Any]:
        """What has to be other about a turn, by field; nothing where the namespace does not mask.

        Raises:
            InvalidTurn: what is left would have to be masked again and again.
        """
        return _Look(self._finder, masks=True).changes(turn) if self.masks(namespace) else {}

    def marks(self, namespace: str, turn: GuardedTurn) -> tuple[PersonalKind, ...]:
        """The kinds of personal data in a turn, sorted; none where the namespace does not mark."""
        if self._rule_of(namespace) != "mark":
            return ()
        look = _Look(self._finder)
        look.changes(turn)
        return tuple(sorted(look.kinds))

    def check(self, namespace: str, turn: GuardedTurn, before: str | None = None) -> None:
        """Refuse a turn that is not masked, in a namespace that masks.

        Args:
            namespace: Where it is to be stored.
            turn: In any of its forms.
            before: What was said before it, where that comes with it.

        Raises:
            UnmaskedPersonalData: with the kinds that were found.
        """
        if not self.masks(namespace):
            return
        look = _Look(self._finder)
        look.changes(turn)
        if before is not None:
            look.text(before)
        _refuse(look.kinds)

    def check_fields(
        self, namespace: str, fields: Mapping[str, Any], before: str | None = None
    ) -> None:
        """The same of a memory of any type, by its fields: everything in it that is words.

        Raises:
            UnmaskedPersonalData: with the kinds that were found.
        """
        if self.masks(namespace):
            _refuse(self._kinds_in(fields, before))

    def masked_fields(self, namespace: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What has to be other about a turn of an export, by field.

        Raises:
            InvalidTurn: what is left would have to be masked again and again.
        """
        if not self.masks(namespace):
            return {}
        look = _Look(self._finder, masks=True)
        return {name: now for name, now in look.fields(fields).items() if now != fields[name]}

    def found_in(self, namespace: str, fields: Mapping[str, Any]) -> bool:
        """Whether a memory of an export has words that the namespace would have masked."""
        return self.masks(namespace) and bool(self._kinds_in(fields, None))

    def _kinds_in(self, fields: Mapping[str, Any], before: str | None) -> set[PersonalKind]:
        look = _Look(self._finder)
        look.fields(fields)
        if before is not None:
            look.text(before)
        return look.kinds

    def _rule_of(self, namespace: str) -> PersonalDataRule:
        return self._by_namespace.get(namespace, self._rule)

    @property
    def _finder(self) -> PersonalDataDetector:
        if self._detector is None:
            raise TypeError("a namespace has a rule and nothing to find personal data with")
        return self._detector


UNGUARDED: Final = PersonalDataGuard()
"""Looks for nothing."""


def _refuse(kinds: set[PersonalKind]) -> None:
    if kinds:
        named = sorted(str(kind) for kind in kinds)
        raise UnmaskedPersonalData(
            f"It holds personal data ({', '.join(named)}), which this namespace masks.",
            allowed="words in which clients or the API have masked it",
            hint="Give whatever sends it the same ENGRAM_PERSONAL_DATA and ENGRAM_PHONE_REGION "
            "as the workers, and the same version of Engram.",
            details={"kinds": named},
        )


class _Look:
    """One look at something, and the kinds that were found in it.

    Args:
        detector: Finds them.
        masks: Whether what comes back must hold nothing more; otherwise it is only counted.
    """

    def __init__(self, detector: PersonalDataDetector, *, masks: bool = False) -> None:
        self._detector = detector
        self._masks = masks
        self.kinds: set[PersonalKind] = set()

    def changes(self, turn: GuardedTurn) -> dict[str, Any]:
        """The fields of a turn that have to be other, as they have to be."""
        speaker, summary = turn.speaker, turn.summary
        seen = {
            "content": self.text(turn.content),
            "speaker": None if speaker is None else self.text(speaker),
            "summary": None if summary is None else self.text(summary),
            "tags": tuple(self.text(tag) for tag in turn.tags),
            "metadata": self.value(turn.metadata, "") if turn.metadata else turn.metadata,
        }
        return {name: now for name, now in seen.items() if now != getattr(turn, name)}

    def fields(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Those fields of a memory that hold words, as they have to be."""
        return {name: self.value(one, "") for name, one in given.items() if name not in _NO_WORDS}

    def value(self, given: Any, key: str, depth: int = 0) -> Any:
        """A value with all that is in it; what a key is called tells what stands under it."""
        if depth > _DEEPEST:
            raise InvalidTurn("Something is nested too deeply to be looked at.")
        if isinstance(given, str):
            return self.text(given, key)
        if isinstance(given, int) and not isinstance(given, bool) and abs(given) >= _LEAST_NUMBER:
            # Longer than any number that says something about somebody.
            written = str(given) if given.bit_length() < 128 else ""  # noqa: PLR2004 - 38 digits
            now = self.text(written, key)
            return given if now == written else now
        if isinstance(given, Mapping):
            return self._mapping(given, depth)
        if isinstance(given, list | tuple):
            return type(given)([self.value(one, key, depth + 1) for one in given])
        return given

    def _mapping(self, given: Mapping[str, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, one in given.items():
            name = now = self.text(key)
            number = 2
            while now in made:
                now, number = f"{name} {number}", number + 1
            made[now] = self.value(one, key, depth + 1)
        return made

    def text(self, given: str, key: str = "") -> str:
        """A text with tokens for what is found; with a key before it, as one reads it."""
        head = f"{key}: " if key else ""
        now = given
        for _ in range(_MOST_PASSES):
            found = [
                PersonalSpan(max(0, span.start - len(head)), span.end - len(head), span.kind)
                for span in self._detector.find(head + now)
                if span.end > len(head)
            ]
            if not found:
                return now
            self.kinds.update(span.kind for span in found)
            if not self._masks:
                # Only what it holds was asked for; that it is another text says so.
                return with_tokens(now, found)
            now = with_tokens(now, found)
        raise InvalidTurn(
            "Personal data in a turn cannot be masked: what is left shows more each time.",
            allowed="text in which addresses and numbers stand apart",
        )
