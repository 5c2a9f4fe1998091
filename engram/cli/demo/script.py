"""The file format of a demo: sessions of turns, and the questions asked afterwards."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engram.domain.turns import Turn
from engram.errors import InvalidInput


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DemoTurn(_Part):
    """One utterance."""

    text: str
    at: datetime
    speaker: str | None = None
    role: str = "user"

    def as_turn(self, message_id: str) -> Turn:
        """The turn as an application would hand it over."""
        return Turn(
            role=self.role,
            content=self.text,
            speaker=self.speaker,
            timestamp=self.at,
            message_id=message_id,
        )


class DemoSession(_Part):
    """One conversation."""

    id: str
    turns: tuple[DemoTurn, ...] = Field(min_length=1)


class Question(_Part):
    """Something to ask."""

    query: str


class ThenAndNow(Question):
    """A question whose answer changed."""

    before: datetime
    after: datetime


class Questions(_Part):
    """What the demo asks."""

    plain: Question
    negation: Question
    then_and_now: ThenAndNow
    sources: Question


class DemoScript(_Part):
    """A whole demo."""

    about: str
    user_id: str
    sessions: tuple[DemoSession, ...] = Field(min_length=1)
    questions: Questions


def load_script(path: Path | None) -> DemoScript:
    """The demo of a file, or the one that comes with Engram.

    Raises:
        InvalidInput: the file is missing or has another form.
    """
    try:
        text = (
            path.read_text("utf-8")
            if path is not None
            else files("engram.cli.demo").joinpath("conversation.json").read_text("utf-8")
        )
        return DemoScript.model_validate_json(text)
    except (OSError, ValidationError) as error:
        raise InvalidInput(
            "The demo conversation cannot be read.",
            allowed="a JSON file of the form of engram/cli/demo/conversation.json",
        ) from error
