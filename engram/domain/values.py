"""The base of what is stored, and of what stays in histories; zones, and a stretch of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict

from engram.errors import InvalidInput

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

# "2024-05-01T10:00:00.000000Z", as times stand in the store, and in messages where it is no whole
# second.
_SPELLED_OUT: Final = 27


MOST_DAYS: Final = 36_500
"""Days that a setting may ask for, where more could only be a slip."""
DAYS_TILL_NEVER: Final = 999_999_999
"""The most days that a duration can have: what is to come after them never comes."""
MOST_MINUTES: Final = 10 * 365 * 24 * 60
"""Minutes that a setting may ask for: ten years."""


def _in_one_zone(said: object) -> object:
    if type(said) is str and len(said) == _SPELLED_OUT:
        if f"{said[7]}{said[10]}{said[19]}{said[26]}" != "-T.Z":
            # A week, or another sign between day and hour: Python reads more than Pydantic.
            return said
        try:
            return datetime.fromisoformat(said)
        except ValueError:
            pass
    return said


Moment: TypeAlias = Annotated[datetime, BeforeValidator(_in_one_zone)]
"""A time. All that are read from the store share one zone: to compare two takes a tenth of what
it takes where each has its own, as Pydantic reads them, and none has an object beside it."""


def is_none(value: object) -> bool:
    """Whether a field says nothing: histories keep no names for what is mostly absent."""
    return value is None


def is_empty(value: tuple[object, ...]) -> bool:
    """The same of a field with several values."""
    return not value


class StoredValue(BaseModel):
    """Never changed, only replaced.

    A newer version may have written more: that is passed over, and does not make the
    rest unreadable.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


def zone_named(name: str, wrong: type[InvalidInput] = InvalidInput) -> ZoneInfo:
    """The zone of a name of the IANA database.

    Raises:
        InvalidInput: as ``wrong``; there is none of this name.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few name one

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise unknown_zone(wrong) from error


def unknown_zone(wrong: type[InvalidInput]) -> InvalidInput:
    """The refusal of what names no zone."""
    return wrong(
        "The zone is unknown.",
        allowed="a name of the IANA database, such as Europe/Lisbon or Asia/Tokyo",
        hint="An offset such as +09:00 is no name: it does not say when clocks change.",
    )


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time.

    Attributes:
        begin: Its first moment, aware; None where it has always been going on.
        end: The first moment after it, aware; None where no end is named.
    """

    begin: datetime | None
    end: datetime | None

    def holds(self, moment: datetime) -> bool:
        """Whether the moment, aware, lies within."""
        begun = self.begin is None or self.begin <= moment
        return begun and (self.end is None or moment < self.end)

    def holds_by_the_clock(self, moment: datetime) -> bool:
        """Whether a moment lies within whose day and hour are read as those of the period's zone.

        So a day that was told is kept: as that day in UTC, wherever it was told.
        """
        edge = self.begin or self.end
        return edge is None or self.holds(moment.replace(tzinfo=edge.tzinfo))

    def __str__(self) -> str:
        """For people: the days from the first to the last, "2024-05-06 to 2024-05-12"."""
        last = None if self.end is None else (self.end - timedelta(microseconds=1)).date()
        if self.begin is None:
            return "any time" if last is None else f"until {last}"
        if last is None:
            return f"from {self.begin.date()} on"
        return f"{self.begin.date()} to {last}"
