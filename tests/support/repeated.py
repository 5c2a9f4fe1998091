"""Something done again and again, from a thread, while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(do: Callable[[], None], every: float) -> Iterator[None]:
    """Do it every so many seconds, until the block ends; the last time is waited for."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every):
            do()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
