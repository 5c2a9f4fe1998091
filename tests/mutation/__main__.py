"""Runs the mutants, prints the score of each module, and fails below the bar.

    python -m tests.mutation                       # everything
    python -m tests.mutation domain.buffer         # modules whose name ends so
    python -m tests.mutation --seventh             # every seventh mutant, each weekday others
    python -m tests.mutation --seventh 2           # every seventh, beginning with the third
    python -m tests.mutation domain.buffer --again # only what lived the last time

A mutant that lives has to stand in ``survivors.toml`` with the reason why that is right.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.mutation.mutants import Mutant, functions_of, mutants_of, statement_lines
from tests.mutation.targets import ROOT, TARGETS, TESTS, Target
from tests.mutation.trials import (
    Survey,
    prepare,
    survey,
    try_loaded,
    try_swapped,
    was_killed,
)
from tests.support.weekday_share import PARTS, share_of

BAR: Final = 0.90
SURVIVORS: Final = Path(__file__).with_name("survivors.toml")
WORK: Final = ROOT / ".mutation"
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A mutant and whether a test noticed it."""

    mutant: Mutant
    killed: bool
    tests: int


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 if every module reaches the bar and every survivor has its reason."""
    asked = _parser().parse_args(arguments)
    started = time.monotonic()
    WORK.mkdir(exist_ok=True)
    targets = [t for t in TARGETS if not asked.modules or t.module.endswith(tuple(asked.modules))]
    mutants = [
        mutant
        for target in targets
        for mutant in mutants_of(target.module, target.path.read_text("utf-8"))
        if mutant.where.partition(".")[0] not in target.left_out
    ]
    names = [mutant.key for mutant in mutants]
    if asked.seventh is not None:
        today = share_of(datetime.now(UTC).date())
        mutants = mutants[today if asked.seventh == "today" else int(asked.seventh) :: PARTS]
    if asked.again:
        lived = {tuple(key) for key in json.loads((WORK / "survivors.json").read_text())}
        mutants = [mutant for mutant in mutants if mutant.key in lived]
    _say(f"{len(mutants)} mutants of {len(targets)} modules")
    outcomes = _try(mutants, targets, asked.processes)
    survivors = [outcome for outcome in outcomes if not outcome.killed]
    (WORK / "survivors.json").write_text(json.dumps([o.mutant.key for o in survivors]))
    reasons = reasons_by_mutant()
    whole = not (asked.again or asked.seventh is not None)
    problems = [
        *_unexplained(survivors, reasons),
        *_outdated(reasons, {t.module for t in targets}, names, survivors, whole=whole),
        *_scores(outcomes, each=whole, bar=0.0 if asked.again else BAR),
    ]
    _say(f"{(time.monotonic() - started) / 60:.1f} minutes")
    for problem in problems:
        _say(f"FAILED: {problem}")
    return 1 if problems else 0


def reasons_by_mutant() -> dict[Key, str]:
    """The survivors that are accepted, each with the reason."""
    listed = tomllib.loads(SURVIVORS.read_text("utf-8")).get("survivor", [])
    return {
        (one["module"], one["where"], one["before"].strip(), one["after"].strip()): one["reason"]
        for one in listed
    }


def _try(mutants: Sequence[Mutant], targets: Sequence[Target], processes: int) -> list[Outcome]:
    prepare()
    log = WORK / "log"
    log.write_text("")
    known = survey(TESTS, log)
    _say(f"{_clock()} {len(known.seconds)} tests take {sum(known.seconds.values()):.0f} seconds")
    by_module = {target.module: target for target in targets}
    trees = {t.module: ast.parse(t.path.read_text("utf-8")) for t in targets}
    loading = {t.module: _loading(trees[t.module], known.loading[t.module]) for t in targets}
    killed: dict[int, bool] = {}
    asked: dict[int, list[str]] = {}
    for number, mutant in enumerate(mutants):
        if mutant.function is not None and mutant.function not in loading[mutant.module]:
            asked[number] = _tests(mutant, trees[mutant.module], known)
            if not asked[number]:
                killed[number] = False
    swapped = [(n, mutants[n], names) for n, names in asked.items() if names]
    for number, status in try_swapped(swapped, known, TESTS, processes, log):
        killed[number] = was_killed(status)
    _say(f"{_clock()} {len(killed)} tried inside functions, {sum(killed.values())} killed")
    anew = [
        (number, mutant, by_module[mutant.module])
        for number, mutant in enumerate(mutants)
        if number not in killed
    ]
    for number, status in try_loaded(anew, known, processes, log):
        killed[number] = was_killed(status)
    return [Outcome(m, killed[n], len(asked.get(n, ()))) for n, m in enumerate(mutants)]


def _loading(tree: ast.Module, lines: Sequence[int]) -> set[str]:
    """Functions that run while the module, or another of the core, is loaded."""
    ran = set(lines)
    return {
        name
        for name, function in functions_of(tree).items()
        if ran & set(range(function.body[0].lineno, (function.end_lineno or 0) + 1))
    }


def _tests(mutant: Mutant, tree: ast.Module, known: Survey) -> list[str]:
    """The tests that come past a mutant, the quickest first."""
    lines = known.tests[mutant.module]
    found = {t for line in statement_lines(tree, mutant.line) for t in lines.get(line, ())}
    return sorted(found, key=lambda name: known.seconds[name])


def _unexplained(survivors: Sequence[Outcome], reasons: dict[Key, str]) -> list[str]:
    problems = []
    for outcome in survivors:
        mutant = outcome.mutant
        if mutant.key not in reasons:
            _say(_entry(mutant, outcome.tests))
            problems.append(f"{mutant.module}:{mutant.line} lives, for no reason that is listed")
    return problems


def _outdated(
    reasons: dict[Key, str],
    modules: set[str],
    names: Sequence[Key],
    survivors: Sequence[Outcome],
    *,
    whole: bool,
) -> list[str]:
    """Reasons for mutants that there are not, or that a test notices by now."""
    known, lived = set(names), {outcome.mutant.key for outcome in survivors}
    return [
        f"listed as a survivor, but {'killed' if key in known else 'no such mutant'}: {key}"
        for key in reasons
        if key[0] in modules and (key not in known or (whole and key not in lived))
    ]


def _scores(outcomes: Sequence[Outcome], *, each: bool, bar: float) -> list[str]:
    total, killed = Counter[str](), Counter[str]()
    for outcome in outcomes:
        for name in (outcome.mutant.module, "all"):
            total[name] += 1
            killed[name] += outcome.killed
    problems = []
    for name, count in total.items():
        score = killed[name] / count
        _say(f"{score:6.1%}  {killed[name]:4} of {count:4}  {name}")
        if score < bar and (each or name == "all"):
            problems.append(f"{name}: {score:.1%} lies below {bar:.0%}")
    return problems


def _entry(mutant: Mutant, tests: int) -> str:
    """A survivor as ``survivors.toml`` would list it."""
    return (
        f"# line {mutant.line}; {tests} tests come past it\n"
        f"[[survivor]]\nmodule = {json.dumps(mutant.module)}\nwhere = {json.dumps(mutant.where)}\n"
        f"before = {_text(mutant.before)}\nafter = {_text(mutant.after)}\n"
        'reason = ""\n'
    )


def _text(lines: str) -> str:
    if "'" in lines or "\n" in lines:
        return f"'''\n{lines}\n'''"
    return f"'{lines}'"


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules whose dotted name ends so; or all")
    parser.add_argument(
        "--seventh",
        nargs="?",
        const="today",
        choices=["today", *"0123456"],
        help="every seventh mutant",
    )
    parser.add_argument("--again", action="store_true", help="only what lived the last time")
    parser.add_argument("--processes", type=int, default=2, help="how many at once")
    return parser


if __name__ == "__main__":
    sys.exit(main())
