"""What a test may change of the process and must put back, and what it left changed."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import pydantic_ai.models
import stamina
import structlog

_PACKAGES: Final = ("engram", "workflows", "activities")
# Pytest says in it which test runs.
_PYTESTS_OWN: Final = "PYTEST_CURRENT_TEST"


@dataclass(frozen=True)
class ProcessState:
    """Everything of the process that tests share.

    Attributes:
        settings: By what it is: logging, environment, clock and the like.
        modules: What the names of each of Engram's modules stand for.
    """

    settings: dict[str, Any]
    modules: dict[str, dict[str, Any]]

    @classmethod
    def now(cls, *, with_modules: bool) -> ProcessState:
        """As it is at this moment; looking at every module takes a millisecond."""
        root = logging.getLogger()
        environment = {key: value for key, value in os.environ.items() if key != _PYTESTS_OWN}
        return cls(
            settings={
                "structlog's configuration": _configured(),
                "the root logger's level": root.level,
                "the root logger's handlers": _own_handlers(root),
                "the environment": environment,
                "the working directory": os.getcwd(),  # noqa: PTH109 - it may be gone
                "the import path": tuple(sys.path),
                "the handler of Ctrl-C": signal.getsignal(signal.SIGINT),
                "whether stamina retries": (stamina.is_active(), stamina.is_testing()),
                "whether models may be asked": pydantic_ai.models.ALLOW_MODEL_REQUESTS,
            },
            modules={
                name: vars(module).copy()
                for name, module in sys.modules.copy().items()
                if with_modules and name.split(".", 1)[0] in _PACKAGES
            },
        )

    def changed(self) -> list[str]:
        """What is no longer as it was; values stay out, because environments hold secrets."""
        now = ProcessState.now(with_modules=bool(self.modules))
        found = [name for name, value in self.settings.items() if now.settings[name] != value]
        for name, before in self.modules.items():
            after = now.modules.get(name, {})
            found.extend(
                f"{name}.{attribute}"
                for attribute, value in before.items()
                if after.get(attribute) is not value and not isinstance(value, ModuleType)
            )
        return found

    def put_back(self) -> None:
        """Make logging, environment and the like as they were."""
        before = self.settings
        structlog.configure(**before["structlog's configuration"])
        root = logging.getLogger()
        root.setLevel(before["the root logger's level"])
        for handler in set(_own_handlers(root)) - set(before["the root logger's handlers"]):
            root.removeHandler(handler)
        os.environ.clear()
        os.environ.update(before["the environment"])
        os.chdir(before["the working directory"])
        sys.path[:] = before["the import path"]
        signal.signal(signal.SIGINT, before["the handler of Ctrl-C"])
        for name, attributes in self.modules.items():
            vars(sys.modules[name]).update(attributes)


@contextmanager
def nothing_left_behind(*, with_modules: bool) -> Iterator[None]:
    """Fail whoever leaves the process changed, and put it back for those who come after."""
    before = ProcessState.now(with_modules=with_modules)
    yield
    changed = before.changed()
    if changed:
        before.put_back()
        raise AssertionError(f"left changed for whatever runs next: {', '.join(changed)}")


def _configured() -> dict[str, Any]:
    configuration = structlog.get_config()
    # The list is changed in place by structlog.testing.capture_logs.
    return {**configuration, "processors": list(configuration["processors"])}


def _own_handlers(root: logging.Logger) -> tuple[logging.Handler, ...]:
    """Without pytest's, which come and go with the phases of a test."""
    return tuple(h for h in root.handlers if not type(h).__module__.startswith("_pytest"))
