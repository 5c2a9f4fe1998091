"""Trying mutants: a survey of which tests come past which lines, then one process for each.

Nothing is written into the source tree. What runs inside a function is swapped in a copy of a
process that has collected all tests; everything else is loaded anew, with the changed module in
the place of the real one.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, TypeVar

import coverage
import hypothesis
import pytest

from tests.mutation.mutants import Mutant
from tests.mutation.targets import NOT_PURE, ROOT, TARGETS, Target

K = TypeVar("K")

# Loaded once, before anything is mutated, because it takes longest.
_HEAVY: Final = (
    *("pydantic", "pydantic_ai", "pydantic_settings", "temporalio.client", "temporalio.worker"),
    *("temporalio.contrib.pydantic", "qdrant_client", "httpx", "structlog", "trustme", "typer"),
    *("pydantic_ai.models.function", "pydantic_ai.models.test", "hypothesis.strategies"),
    *("phonenumbers", "wordllama", "numpy", "fastapi", "uvicorn"),
)
# Not what the project adds: one process, always the same order, nothing that takes long.
_PYTEST: Final = (
    *("-o", "addopts=", "--import-mode=importlib", "-q", "--assert=plain", "--timeout=60"),
    *("-m", "not slow and not chaos and not benchmark", "--hypothesis-profile=mutation"),
    *("-p", "no:cacheprovider", "-p", "no:terminalreporter", "-p", "no:xdist"),
    *("-p", "no:randomly", "-p", "no:schemathesis"),
)
_KILLED, _SURVIVED, _UNSWAPPABLE, _BROKEN = 1, 0, 77, 70
_EXPIRED: Final = 24
"""SIGXCPU: it went round and round."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What the tests do to the modules as they are.

    Attributes:
        seconds: How long each test takes.
        tests: Which tests come past a line, by module.
        loading: Lines that run while a module is loaded, by module.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    loading: dict[str, list[int]] = field(default_factory=dict)


class Broken(Exception):
    """The tests do not even pass, or the harness does not work."""


def prepare() -> None:
    """Load what is not ours; make examples the same in every run, and failures short."""
    for name in _HEAVY:
        importlib.import_module(name)
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, database=None, deadline=None, phases=phases
    )


def survey(tests: Sequence[str], log: Path) -> Survey:
    """Run all tests once, on the code as it is.

    Raises:
        Broken: a test fails.
    """
    results = log.with_suffix(".survey.json")

    def look() -> int:
        measuring = coverage.Coverage(
            data_file=None, config_file=False, include=[str(target.path) for target in TARGETS]
        )
        measuring.start()
        measuring.switch_context("loading")
        for target in TARGETS:
            importlib.import_module(target.module)
        measuring.switch_context("collecting")
        found = Survey()

        def loop(session: pytest.Session) -> None:
            loaded = _Loaded()
            for item in _pure(session):
                loaded.forget()
                measuring.switch_context(item.nodeid)
                started = time.perf_counter()
                if _fails(session, [item]):
                    raise Broken(item.nodeid)
                found.seconds[item.nodeid] = time.perf_counter() - started

        _pytest(tests, loop)
        measuring.stop()
        data = measuring.get_data()
        for target in TARGETS:
            lines = data.contexts_by_lineno(str(target.path))
            known = {line: [c for c in seen if c in found.seconds] for line, seen in lines.items()}
            found.tests[target.module] = known
            found.loading[target.module] = [n for n, seen in lines.items() if "loading" in seen]
        results.write_text(json.dumps([found.seconds, found.tests, found.loading]))
        return 0

    for _, status in _forked([("survey", look, 3600)], 1, log):
        if status != 0:
            raise Broken(f"the survey failed; see {log}")
    seconds, by_module, loading = json.loads(results.read_text())
    tested = {
        name: {int(line): found for line, found in lines.items()}
        for name, lines in by_module.items()
    }
    return Survey(seconds, tested, loading)


def try_swapped(
    mutants: Sequence[tuple[int, Mutant, list[str]]],
    known: Survey,
    tests: Sequence[str],
    processes: int,
    log: Path,
) -> Iterator[tuple[int, int]]:
    """Mutants inside functions, by number, with the tests to ask; to how each ended.

    Yields nothing for those that cannot be swapped.
    """
    results = log.with_suffix(".swapped.jsonl")
    results.write_text("")

    def loop(session: pytest.Session) -> None:
        items = {item.nodeid: item for item in _pure(session)}
        loaded = _Loaded()
        gc.collect()
        gc.freeze()

        def trial(mutant: Mutant, names: list[str]) -> int:
            if not loaded.swap(mutant):
                return _UNSWAPPABLE
            loaded.forget()
            return _KILLED if _fails(session, [items[name] for name in names]) else _SURVIVED

        jobs = (
            (number, partial(trial, mutant, names), _limit(names, known))
            for number, mutant, names in mutants
        )
        with results.open("a", encoding="utf-8") as out:
            for number, status in _forked(jobs, processes, log):
                out.write(f"{json.dumps([number, status])}\n")
                out.flush()

    def collect_and_try() -> int:
        _pytest(tests, loop)
        return 0

    for _, status in _forked([("swapped", collect_and_try, 24 * 3600)], 1, log):
        if status != 0:
            raise Broken(f"swapping failed; see {log}")
    for line in results.read_text().splitlines():
        number, status = json.loads(line)
        if status != _UNSWAPPABLE:
            yield number, status


def try_loaded(
    mutants: Sequence[tuple[int, Mutant, Target]], known: Survey, processes: int, log: Path
) -> Iterator[tuple[int, int]]:
    """Mutants of what runs while a module is loaded, by number; to how each ended."""

    def trial(mutant: Mutant, target: Target) -> Callable[[], int]:
        def run() -> int:
            sys.meta_path.insert(0, _Instead(mutant, target.path))
            outcome = [_KILLED]

            def loop(session: pytest.Session) -> None:
                items = sorted(_pure(session), key=lambda item: known.seconds.get(item.nodeid, 0.0))
                outcome[0] = _KILLED if _fails(session, items) else _SURVIVED

            try:
                _pytest(target.tests, loop)
            except Broken:
                return _KILLED
            return outcome[0]

        return run

    jobs = (
        (number, trial(mutant, target), 60 + _limit(_own(target, known), known))
        for number, mutant, target in mutants
    )
    return _forked(jobs, processes, log)


def was_killed(status: int) -> bool:
    """Whether a trial ended with a failing test, or with no end at all.

    Raises:
        Broken: the harness failed, not the mutant.
    """
    if status == _BROKEN:
        raise Broken("a trial failed without a test; see the log")
    return status != _SURVIVED


def _own(target: Target, known: Survey) -> list[str]:
    return [name for name in known.seconds if name.split("::")[0] in target.tests]


def _limit(names: Iterable[str], known: Survey) -> int:
    return 10 + int(5 * sum(known.seconds.get(name, 1.0) for name in names))


class _Loop:
    """Takes the place of pytest's own loop over the collected tests."""

    def __init__(self, loop: Callable[[pytest.Session], None]) -> None:
        self.loop = loop
        self.ran = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed == 0:
            self.ran = True
            self.loop(session)
        return True


def _pytest(tests: Iterable[str], loop: Callable[[pytest.Session], None]) -> None:
    plugin = _Loop(loop)
    code = pytest.main([*_PYTEST, *tests], plugins=[plugin])
    if not plugin.ran or code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise Broken(f"pytest ended with {code!r}")


def _pure(session: pytest.Session) -> list[pytest.Item]:
    """The tests that ask for no folder and borrow no store: they open no engine."""
    return [
        item
        for item in session.items
        if NOT_PURE.isdisjoint(getattr(item, "fixturenames", ()))
        and not hasattr(getattr(item, "module", None), "borrowed_store")
    ]


def _fails(session: pytest.Session, items: Sequence[pytest.Item]) -> bool:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return True
    return False


class _Loaded:
    """Our functions and caches that are in memory, looked up once: there are a million objects."""

    def __init__(self) -> None:
        # What is frozen is not found.
        gc.unfreeze()
        paths = {str(target.path) for target in TARGETS}
        self.caches: list[Any] = []
        self.functions: dict[tuple[str, str], list[FunctionType]] = {}
        for found in gc.get_objects():
            if isinstance(found, FunctionType):
                code = found.__code__
                if code.co_filename in paths:
                    key = (code.co_filename, code.co_qualname)
                    self.functions.setdefault(key, []).append(found)
            elif type(found).__name__ == "_lru_cache_wrapper" and _is_ours(found):
                self.caches.append(found)

    def forget(self) -> None:
        """Empty the caches: they hold what the code said before."""
        for cache in self.caches:
            cache.cache_clear()

    def swap(self, mutant: Mutant) -> bool:
        """Give every function object that runs this source the changed code."""
        path = sys.modules[mutant.module].__file__
        assert path is not None
        assert mutant.function is not None
        changed = _code(compile(mutant.source, path, "exec", dont_inherit=True), mutant.function)
        running = self.functions.get((path, mutant.function), [])
        if changed is None or not running:
            return False
        for function in running:
            if len(changed.co_freevars) != len(function.__code__.co_freevars):
                return False
            function.__code__ = changed
        return True


def _is_ours(found: object) -> bool:
    return str(getattr(found, "__module__", "")).startswith("engram")


def _code(code: CodeType, name: str) -> CodeType | None:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found = part if part.co_qualname == name else _code(part, name)
            if found is not None:
                return found
    return None


class _Instead(importlib.abc.MetaPathFinder):
    """Loads the changed source under the module's name."""

    def __init__(self, mutant: Mutant, path: Path) -> None:
        self.module = mutant.module
        self.loader = _Changed(mutant.module, str(path))
        self.loader.changed = mutant.source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Only of the one module."""
        if fullname != self.module:
            return None
        return importlib.util.spec_from_loader(fullname, self.loader)


class _Changed(importlib.machinery.SourceFileLoader):
    changed = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.changed, self.path, "exec", dont_inherit=True)


def _forked(
    jobs: Iterable[tuple[K, Callable[[], int], int]], processes: int, log: Path
) -> Iterator[tuple[K, int]]:
    """Run each in a process of its own, so many at once; each may take so many CPU seconds."""
    running: dict[int, K] = {}
    for key, job, seconds in jobs:
        while len(running) >= processes:
            yield _ended(running)
        child = os.fork()
        if child == 0:
            _in_child(job, seconds, log)
        running[child] = key
    while running:
        yield _ended(running)


def _ended(running: dict[int, K]) -> tuple[K, int]:
    child, status = os.wait()
    if os.WIFSIGNALED(status):
        return running.pop(child), _EXPIRED
    return running.pop(child), os.WEXITSTATUS(status)


def _in_child(job: Callable[[], int], seconds: int, log: Path) -> None:
    code = _BROKEN
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = sys.stderr = os.fdopen(out, "w", encoding="utf-8", closefd=False)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        os.chdir(ROOT)
        code = job()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        os._exit(code)
