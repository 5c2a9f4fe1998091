"""No number and no duration that nothing could work with gets past the start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import get_args

import pytest

from engram.cli.config.reference import default, settings_of, values
from engram.errors import InvalidSettings
from engram.settings import Settings, variable_of

BEYOND = "1" + "0" * 18
UNUSABLE = ("1e300", "-1e-3", "-1", "inf", "-inf", "nan", BEYOND, f"-{BEYOND}")


def _numbers() -> Iterator[tuple[str, type]]:
    """Every setting that is a number or a duration, nested ones too."""
    for name, field in settings_of():
        kinds = get_args(field.annotation) or (field.annotation,)
        for kind in {int, float, timedelta}.intersection(kinds):
            yield name, kind


@pytest.mark.parametrize(("name", "kind"), sorted(_numbers(), key=str))
def test_what_no_program_could_work_with_is_refused_at_the_start(
    name: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endless, negative, no number or past every use: named by its variable, without the value."""
    variable = variable_of(name)
    for hostile in UNUSABLE:
        monkeypatch.setenv(variable, hostile)
        with pytest.raises(InvalidSettings) as refused:
            Settings.load()
        assert variable in str(refused.value), hostile
        assert "Input should be" in str(refused.value)
    if kind is timedelta and name != "schedule_jitter":
        monkeypatch.setenv(variable, "0")
        with pytest.raises(InvalidSettings, match=f"{variable}: Input should be greater than"):
            Settings.load()


def test_both_ends_of_a_range_are_told() -> None:
    """`engram config` and the page of settings say of each what is allowed."""
    fields = dict(settings_of())
    for name, _ in _numbers():
        told = values(fields[name])
        assert "≤" in told, name
        assert "≥" in told or ">" in told, name
    assert values(fields["store_timeout"]) == "duration, > PT0S, ≤ P1D"
    assert default(fields["store_timeout"]) == "`PT30S`"


def test_the_largest_durations_can_be_worked_with() -> None:
    """What is allowed at most is still a time that a calendar has."""
    usual = Settings.load(buffer_minutes=5_256_000, session_idle_minutes=5_256_000)
    assert timedelta(minutes=usual.buffer_minutes) == timedelta(days=3650)
    assert timedelta(minutes=usual.session_idle_minutes) == timedelta(days=3650)


@pytest.mark.parametrize(
    ("setting", "rule"), [("personal_data_by_namespace", "mask"), ("learning_by_namespace", {})]
)
def test_no_rule_is_for_a_namespace_that_cannot_be(setting: str, rule: object) -> None:
    """A misspelt one would hold for nothing, and nobody would be told."""
    for name in ("clinic/ada", "", "Klinik Süd", "-clinic"):
        with pytest.raises(InvalidSettings, match="namespace is not usable"):
            Settings.load(**{setting: {"clinic": rule, name: rule}})


@pytest.mark.parametrize(
    ("variable", "there"),
    [
        ("ENGRAM_REVIEWS__WAIT_DAY", "ENGRAM_REVIEWS__WAIT_DAYS"),
        ("ENGRAM_LIFECYCLE__NOPE", "ENGRAM_LIFECYCLE__"),
    ],
)
def test_a_name_that_a_group_has_not_is_told_with_those_it_has(
    monkeypatch: pytest.MonkeyPatch, variable: str, there: str
) -> None:
    """Mistyped, or gone with a newer version: what is like it, or all that there is."""
    monkeypatch.setenv(variable, "1")
    with pytest.raises(InvalidSettings, match=f"{variable}: is no setting, or not .* {there}"):
        Settings.load()
