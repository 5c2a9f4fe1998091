"""A server that answers as Temporal's does while its database is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # it has no types of its own

# What a client asks when it connects; the server answers it without its database.
_CONNECTING: Final = "GetSystemInfo"
_SAID: Final = "GetNamespace operation failed. Error no usable database connection found"


@contextmanager
def temporal_without_database() -> Iterator[tuple[str, Counter[str]]]:
    """Its address, and how often each of its methods was called."""
    asked: Counter[str] = Counter()

    class Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # as above
        def service(self, call: Any) -> Any:
            method = call.method.rpartition("/")[2]

            def answer(_: bytes, context: Any) -> bytes:
                asked[method] += 1
                if method != _CONNECTING:
                    context.abort(grpc.StatusCode.UNAVAILABLE, _SAID)
                return b""

            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(2), handlers=(Methods(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}", asked
    finally:
        server.stop(None).wait()
