"""Commands that measure recall on conversations with questions, and fit it to them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from engram.cli import output
from engram.cli.running import Commands, Json, json_or_text, run, settings_from
from engram.errors import InvalidInput, written_into

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.evaluation.answering import Examination
    from engram.evaluation.measuring import Fit, RankedAnswer
    from engram.evaluation.memories import MeasuredMemory
    from engram.evaluation.metrics import Difference
    from engram.evaluation.report import Measured
    from engram.evaluation.talks import Talk
    from engram.settings import Settings

_SEED: Final = 20261122
"""The same draws each time: two reports of the same figures say the same."""
_EXPORTED: Final = "export"

commands = Commands()
evaluation = Commands(
    name="eval",
    help="Measure recall on conversations with questions, compare settings, fit the weights.",
    no_args_is_help=True,
)
commands.add_typer(evaluation)

Files = Annotated[
    list[Path],
    typer.Argument(
        help="LoCoMo, LongMemEval, lines of JSON with turns and questions, or an export.",
    ),
]
OtherSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        help="NAME=VALUE of a setting to compare with; may be repeated.",
        metavar="NAME=VALUE",
    ),
]


@evaluation.command("recall")
def recall_(
    files: Files,
    changed: OtherSettings = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Folder for report.md and report.svg.", file_okay=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say how much of the evidence recall finds, and whether other settings find more.

    Everything happens in a folder of its own that goes when it is done. With --with, every
    question is asked a second time, and the difference comes with a bootstrap interval.

    Example: engram eval recall chats.jsonl --with ENGRAM_RECALL_WEIGHTS__CUE=0
    """
    from engram.evaluation.report import markdown, picture  # noqa: PLC0415 - slow; no help needs it

    settings = settings_from()
    changes = _changes(changed)
    if report is not None:
        _make(report)
    measured = [run(partial(_measured, file, settings, changes)) for file in files]
    if report is not None:
        page, drawn = markdown(measured, changes), picture(measured)
        with written_into(report):
            (report / "report.md").write_text(page, encoding="utf-8")
            (report / "report.svg").write_text(drawn, encoding="utf-8")
    if as_json:
        output.print_json([_as_json(one) for one in measured])
        return
    for one in measured:
        _print(one)
    if report is not None:
        output.console.print(f"Written: {report / 'report.md'}, {report / 'report.svg'}")


@evaluation.command()
def fit(files: Files, as_json: Json = False) -> None:
    """Fit the weights of recall's score to one's own questions, with cross-validation.

    Prints the weights as settings, and what such weights gain on questions that they were
    not fitted to. Refuses below 100 questions.

    Example: engram eval fit chats.jsonl
    """
    settings = settings_from()
    found = run(lambda: _fitted(files, settings))
    variables = {
        f"ENGRAM_RECALL_WEIGHTS__{name.upper()}": value
        for name, value in found.weights.model_dump().items()
        if value != getattr(settings.recall_weights, name)
    }
    if as_json:
        output.print_json(
            {
                "questions": found.questions,
                "settings": variables,
                "recall_at_10": _bounds(found.gain.found),
                "mrr": _bounds(found.gain.first),
            }
        )
        return
    from engram.evaluation.report import said  # noqa: PLC0415 - slow; no help needs it

    output.console.print(f"{found.questions} questions; on those that were left out of each fit:")
    output.console.print(f"R@10 {said(found.gain.found)}")
    output.console.print(f"MRR  {said(found.gain.first)}")
    if not variables:
        output.console.print("The weights are the best that were found.")
    for name, value in variables.items():
        output.print_document(f"{name}={value:g}")


@evaluation.command()
def answers(
    files: Files,
    model: Annotated[str, typer.Option(help="Answers from the context: <provider>:<model>.")],
    judge: Annotated[
        str | None, typer.Option(help="Says whether that is right; else the same model.")
    ] = None,
    questions: Annotated[int, typer.Option(help="How many at most of each file.", min=1)] = 100,
    tokens: Annotated[int, typer.Option(help="Of context for each question.", min=100)] = 2000,
    as_json: Json = False,
) -> None:
    """Let a model answer from what recall finds, and a model judge it; says what it cost.

    Example: engram eval answers chats.jsonl --model openai:gpt-5-mini --questions 50
    """
    settings = settings_from()
    for file in files:
        work = partial(_examined, file, settings, model, judge or model, questions, tokens)
        found = run(work)
        if as_json:
            output.print_json(_spent(file, found))
        else:
            _print_answers(file, found)


# --- what they do


def _make(folder: Path) -> None:
    """Make a folder, and see that it can be written to before anything is measured for it."""
    with written_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


@asynccontextmanager
async def _kept(talks: Sequence[Talk], settings: Settings) -> AsyncIterator[MeasuredMemory]:
    from engram.evaluation.memories import measured_memory  # noqa: PLC0415 - slow
    from engram.system import new_id, system_clock  # noqa: PLC0415 - same

    with tempfile.TemporaryDirectory(prefix="engram-eval-") as folder:
        async with measured_memory(
            Path(folder), settings, clock=system_clock, new_id=new_id
        ) as memory:
            with output.advancing("Storing conversations") as progress:
                for number, talk in enumerate(talks, 1):
                    await memory.keep(talk)
                    progress(number, len(talks))
            yield memory


async def _measured(file: Path, settings: Settings, changes: Mapping[str, str]) -> Measured:
    from engram.contracts.messages import metering  # noqa: PLC0415 - slow
    from engram.evaluation.measuring import compare, counted  # noqa: PLC0415 - same
    from engram.evaluation.questions import ENTITY, SLOT, shared_words  # noqa: PLC0415 - same
    from engram.evaluation.report import Measured  # noqa: PLC0415 - same
    from engram.evaluation.sets import load  # noqa: PLC0415 - same
    from engram.system import seeded_draw  # noqa: PLC0415 - same

    talks = load(file)
    left_out = sum(talk.left_out for talk in talks)
    if not any(talk.questions for talk in talks):
        raise InvalidInput(
            f"{file.name} has no question with evidence; {left_out} were left out.",
            allowed="questions whose evidence is the id of a turn of the same user",
        )
    made = any(one.kind in {SLOT, ENTITY} for talk in talks for one in talk.questions)
    shared = shared_words(talks) if made and talks[0].name == _EXPORTED else None
    other = _with(settings, changes) if changes else None
    with metering() as meter:
        async with _kept(talks, settings) as memory:
            found = await _asked(memory, talks, settings)
            if other is None:
                return Measured(
                    file.stem, found, shared_words=shared, spent=meter.spent, left_out=left_out
                )
            if other.embedder == settings.embedder:
                again = await _asked(memory, talks, other)
        if other.embedder != settings.embedder:
            async with _kept(talks, other) as memory:
                again = await _asked(memory, talks, other)
    comparison = compare(counted(found), counted(again), seeded_draw(_SEED))
    return Measured(file.stem, found, again, comparison, shared, meter.spent, left_out)


async def _asked(
    memory: MeasuredMemory, talks: Sequence[Talk], settings: Settings
) -> list[RankedAnswer]:
    from engram.evaluation.measuring import measure  # noqa: PLC0415 - slow

    total = sum(len(talk.questions) for talk in talks)
    with _asking(total) as progress:
        return await measure(memory, talks, settings, progress)


@contextmanager
def _asking(total: int) -> Iterator[Callable[[int], None]]:
    """Take how many of so many questions are answered."""
    with output.advancing("Asking") as advance:
        yield lambda done: advance(done, total)


async def _fitted(files: Sequence[Path], settings: Settings) -> Fit:
    from engram.evaluation.measuring import bring_up  # noqa: PLC0415 - slow
    from engram.evaluation.measuring import fit as fitted  # noqa: PLC0415 - same
    from engram.evaluation.sets import load  # noqa: PLC0415 - same
    from engram.system import seeded_draw  # noqa: PLC0415 - same

    asked = []
    for file in files:
        talks = load(file)
        total = sum(len(talk.questions) for talk in talks)
        async with _kept(talks, settings) as memory:
            with _asking(total) as progress:
                asked += await bring_up(memory, talks, settings, progress)
    return fitted(asked, settings, seeded_draw(_SEED))


async def _examined(
    file: Path, settings: Settings, model: str, judge: str, questions: int, tokens: int
) -> Examination:
    from engram.agents.models import make_model  # noqa: PLC0415 - slow
    from engram.evaluation.answering import Examiner  # noqa: PLC0415 - same
    from engram.evaluation.sets import load  # noqa: PLC0415 - same

    talks = load(file)
    examiner = Examiner(make_model(model), make_model(judge), tokens=tokens)
    async with _kept(talks, settings) as memory:
        with _asking(questions) as progress:
            return await examiner.examine(memory, talks, settings, progress, most=questions)


# --- settings that are compared


def _changes(given: Sequence[str] | None) -> dict[str, str]:
    """The settings to compare with, by the name of their variable.

    Raises:
        InvalidInput: one of them has no name or no value.
    """
    found: dict[str, str] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not name.startswith("ENGRAM_") or not equals:
            raise InvalidInput(
                "A setting to compare with cannot be read.",
                allowed="NAME=VALUE with the name of a variable, such as ENGRAM_RECALL_POOL=64",
            )
        found[name] = value
    return found


def _with(settings: Settings, changes: Mapping[str, str]) -> Settings:
    """The settings with these changed.

    Raises:
        InvalidSettings: one of them is not known, or out of range.
    """
    from engram.settings import NESTING, VARIABLE_PREFIX, Settings  # noqa: PLC0415 - slow

    nested: dict[str, Any] = {}
    for name, value in changes.items():
        *outer, last = name.removeprefix(VARIABLE_PREFIX).lower().split(NESTING.lower())
        place = nested
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = json_or_text(value)
    return Settings.load(**{**nested, "data_dir": settings.data_dir})


# --- what is printed


def _print(one: Measured) -> None:
    from engram.evaluation.report import (  # noqa: PLC0415 - slow; no help needs it
        COLUMNS,
        cost_of,
        rows,
        said,
        unasked,
    )

    for title, given in ((one.name, one.answers), (f"{one.name}, compared", one.changed)):
        if given is None:
            continue
        output.print_table(COLUMNS, rows(given), title=title, right=COLUMNS[1:])
    if one.comparison is not None:
        output.console.print(f"R@10 {said(one.comparison.found)}")
        output.console.print(f"MRR  {said(one.comparison.first)}")
    if one.shared_words is not None:
        output.console.print(
            f"Questions were made from conclusions; {one.shared_words:.0%} of their words "
            "stand in the turns that answer them."
        )
    if one.left_out:
        output.console.print(unasked(one.left_out))
    for each in one.spent:
        output.console.print(cost_of(each))


def _as_json(one: Measured) -> dict[str, Any]:
    from engram.evaluation.report import figures  # noqa: PLC0415 - slow; no help needs it

    told: dict[str, Any] = {"file": one.name, "figures": figures(one.answers)}
    if one.changed is not None:
        told["compared"] = figures(one.changed)
    if one.comparison is not None:
        told["recall_at_10"] = _bounds(one.comparison.found)
        told["mrr"] = _bounds(one.comparison.first)
    if one.shared_words is not None:
        told["shared_words"] = one.shared_words
    if one.left_out:
        told["left_out"] = one.left_out
    if one.spent:
        told["spent"] = [each.model_dump(mode="json") for each in one.spent]
    return told


def _bounds(change: Difference) -> dict[str, float]:
    return {"difference": change.mean, "low": change.low, "high": change.high}


def _spent(file: Path, found: Examination) -> dict[str, Any]:
    return {
        "file": file.stem,
        "questions": found.questions,
        "right": found.right,
        "without_answer": found.without_answer,
        "spent": [one.model_dump(mode="json") for one in found.spent],
    }


def _print_answers(file: Path, found: Examination) -> None:
    from engram.evaluation.report import cost_of  # noqa: PLC0415 - slow; no help needs it

    share = found.right / found.questions
    output.console.print(
        f"{file.stem}: {found.right} of {found.questions} right ({share:.0%}); "
        f"{found.without_answer} without an answer were left out."
    )
    for one in found.spent:
        output.console.print(cost_of(one))
