"""`engram config`: every setting, where it comes from, and what is wrong with the environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engram.cli.config import effective as effective_settings
from engram.cli.config.effective import HIDDEN, Effective, Origin, Setting
from engram.cli.config.reference import settings_of
from engram.errors import InvalidSettings
from engram.settings import Settings
from tests.support.cli import engram
from tests.support.programs import environment


def effective(environment: dict[str, str], **others: Any) -> Effective:
    """What is told of this environment."""
    told, _ = effective_settings.effective(environment, **others)
    return told


def one(found: Effective, name: str) -> Setting:
    """The setting of this name."""
    return next(each for each in found.settings if each.name == name)


def test_every_setting_is_shown_with_its_default() -> None:
    """Nothing is set: all settings are there, at what Settings() gives, and nothing is wrong."""
    found = effective({"PATH": "/bin"})
    assert [each.name for each in found.settings] == [name for name, _ in settings_of()]
    assert {each.origin for each in found.settings} == {Origin.DEFAULT}
    assert one(found, "buffer_turns").value == Settings.model_fields["buffer_turns"].default
    assert all(each.meaning for each in found.settings)
    assert (found.problems, found.unknown) == ({}, ())


@pytest.mark.parametrize(
    "environment",
    [
        {"ENGRAM_LIFECYCLE__ENERGY__START": "0.4"},
        {"ENGRAM_LIFECYCLE__ENERGY": '{"start": 0.4}'},
        {"ENGRAM_LIFECYCLE": '{"energy": {"start": 0.4}}'},
        {"engram_lifecycle__energy__start": "0.4"},
    ],
)
def test_a_nested_setting_is_seen_however_it_is_given(environment: dict[str, str]) -> None:
    """As its own variable, in the JSON of a group around it, in small letters."""
    found = effective(environment)
    assert one(found, "lifecycle.energy.start").value == 0.4
    assert one(found, "lifecycle.energy.start").origin is Origin.ENVIRONMENT
    assert one(found, "lifecycle.energy.per_access").origin is Origin.DEFAULT
    assert found.unknown == ()


def test_an_option_wins_and_is_named() -> None:
    """What the command line gives goes before the environment, and is said to."""
    found = effective({"ENGRAM_DATA_DIR": "/a"}, options={"data_dir": "/b"})
    assert (one(found, "data_dir").value, one(found, "data_dir").origin) == ("/b", Origin.OPTION)


def test_an_empty_variable_sets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown of empty variables is what a program has that starts with them."""
    empty = {
        "ENGRAM_DATA_DIR": "",
        "ENGRAM_BUFFER_TURNS": "",
        "ENGRAM_LIFECYCLE__ENERGY": "",
        "ENGRAM_LIFECYCLE__ENERGY__START": "",
    }
    for variable, value in empty.items():
        monkeypatch.setenv(variable, value)
    found, settings = effective_settings.effective(empty)
    assert settings.model_dump() == Settings.load().model_dump()
    assert {each.origin for each in found.settings} == {Origin.DEFAULT}
    assert (found.problems, found.unknown) == ({}, ())
    assert effective({"ENGRAM_MODLE": ""}).unknown[0].nearest == "ENGRAM_MODEL"


def test_secrets_are_hidden() -> None:
    """A secret is there or not; its words are nowhere in what is shown, wrong ones included."""
    found = effective({"ENGRAM_QDRANT_API_KEY": "hunter2", "ENGRAM_TEMPORAL_API_KEY": "hunter3"})
    assert one(found, "qdrant_api_key").value == HIDDEN
    assert "hunter" not in found.model_dump_json()


def test_what_cannot_be_used_is_named_and_left_out() -> None:
    """Wrong values, broken JSON and unknown parts of groups are told together; the rest holds."""
    found = effective(
        {
            "ENGRAM_BUFFER_TURNS": "many",
            "ENGRAM_HEALTH": "{broken",
            "ENGRAM_LIFECYCLE__ENERGY__STRAT": "2",
            "ENGRAM_LIFECYCLE__ENERGY__START": "0.4",
        }
    )
    assert set(found.problems) == {
        "ENGRAM_BUFFER_TURNS",
        "ENGRAM_HEALTH",
        "ENGRAM_LIFECYCLE__ENERGY__STRAT",
    }
    assert one(found, "buffer_turns").problem is not None
    assert one(found, "buffer_turns").origin is Origin.DEFAULT
    assert one(found, "health.enough").problem == "is no JSON"
    assert one(found, "lifecycle.energy.start").value == 0.4


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("ENGRAM_MODLE", "ENGRAM_MODEL"),
        ("ENGRAM_DATADIR", "ENGRAM_DATA_DIR"),
        ("ENGRAM_LIFECYCLE_ENERGY_START", "ENGRAM_LIFECYCLE__ENERGY__START"),
        ("ENGRAM_USR", "ENGRAM_USER"),
        ("ENGRAM_ZZZZZZZZ", None),
    ],
)
def test_a_misspelt_variable_is_pointed_out(variable: str, meant: str | None) -> None:
    """A variable that sets nothing is named with the nearest that does, if one is near."""
    (unknown,) = effective({variable: "1"}, other_variables=["ENGRAM_USER"]).unknown
    assert (unknown.variable, unknown.nearest) == (variable, meant)


@pytest.mark.parametrize("command", ["config", "doctor"])
def test_the_program_knows_the_variable_of_the_user(command: str, tmp_path: Path) -> None:
    """A shell that has ENGRAM_USER is told of the misspelt variable beside it, and of no other."""
    done = subprocess.run(
        [sys.executable, "-m", "engram.cli", command, "--json", "-d", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(ENGRAM_USER="ada", ENGRAM_MODLE="x"),
    )
    told = done.stdout + done.stderr
    assert "ENGRAM_MODLE" in told
    assert "ENGRAM_USER" not in told


def test_broken_json_in_the_environment_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that starts with it gets a typed error that names the variable, not the value."""
    monkeypatch.setenv("ENGRAM_HEALTH", "{hunter2")
    with pytest.raises(InvalidSettings, match="ENGRAM_HEALTH: is no JSON") as caught:
        Settings.load()
    assert "hunter2" not in str(caught.value)


def test_the_command_for_people() -> None:
    """One setting with its meaning, a group, everything changed; warnings on standard error."""
    environment = {"ENGRAM_BUFFER_TURNS": "7", "ENGRAM_MODLE": "x"}
    one_setting = engram("config", "ENGRAM_BUFFER_TURNS", env=environment)
    assert one_setting.code == 0
    assert "meaning  N: extract when so many turns wait." in one_setting.stdout
    assert "value    7" in one_setting.stdout
    assert "warning: ENGRAM_MODLE is no setting; did you mean ENGRAM_MODEL?" in one_setting.stderr
    group = engram("config", "health", env=environment).stdout.splitlines()
    assert [line.split(".")[0] for line in group[1:]] == ["health"] * 5
    changed = engram("config", "--changed", env=environment).stdout.splitlines()
    assert changed == ["setting\tvalue\tfrom", "buffer_turns\t7\tenvironment"]


def test_the_command_for_programs() -> None:
    """--json is one document with settings, problems and unknown variables; a problem ends in 1."""
    done = engram("config", "--json", env={"ENGRAM_BUFFER_TURNS": "0", "ENGRAM_MODLE": "x"})
    assert done.code == 1
    told: dict[str, Any] = json.loads(done.stdout)
    assert list(told["problems"]) == ["ENGRAM_BUFFER_TURNS"]
    assert told["unknown"] == [{"variable": "ENGRAM_MODLE", "nearest": "ENGRAM_MODEL"}]
    assert {"name", "variable", "value", "origin", "meaning"} <= set(told["settings"][0])


def test_an_unknown_setting_is_wrong_usage() -> None:
    """A name that is no setting ends in 2 and names the nearest."""
    done = engram("config", "modle")
    assert done.code == 2
    assert "Did you mean 'model'?" in done.stderr
