"""The HTTP application: everything a memory engine does, for any scope, under ``/v1``."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from engram.client.system import new_id, system_clock
from engram.errors import EngramError
from engram.http.admission import Admission, Door, OwnerOnly
from engram.http.documents import add_document
from engram.http.guarded import GuardedRoute
from engram.http.health import VERSION, ReadinessCheck, add_health
from engram.http.limits import BoundedBody
from engram.http.parts import EngineProvider
from engram.http.problems import on_engram_error, on_http_exception, on_invalid_request
from engram.http.requests import Requests
from engram.http.routes import add_routes
from engram.ports import Clock
from engram.settings import Settings

MAX_BODY_BYTES = 32 * 1024 * 1024


def create_app(
    engine_provider: EngineProvider,
    *,
    admission: Admission,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    max_body_bytes: int = MAX_BODY_BYTES,
    readiness: ReadinessCheck | None = None,
) -> FastAPI:
    """The application.

    Args:
        engine_provider: Gives the engine to every request.
        admission: Decides who gets in. No request reaches anything before it did.
        settings: Limits on what is accepted; from the environment when absent.
        clock: The present, to date turns and to tell absurd timestamps.
        max_body_bytes: Largest request body accepted.
        readiness: Asks what is behind, with other times than the usual ones.
    """
    app = FastAPI(
        title="Engram",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        # Every other address than those in the document is unknown.
        redirect_slashes=False,
    )
    app.router.route_class = GuardedRoute
    app.state.engine_provider = engine_provider
    app.state.settings = settings or Settings.load()
    app.state.clock = clock
    app.state.new_id = new_id
    app.add_exception_handler(EngramError, on_engram_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_exception)
    add_health(app, readiness or ReadinessCheck())
    add_routes(app)
    public = not isinstance(admission, OwnerOnly)
    add_document(app, locked=public)
    # The last one is the outermost.
    app.add_middleware(Door, admission=admission)
    app.add_middleware(BoundedBody, max_bytes=max_body_bytes)
    app.add_middleware(Requests, new_id=new_id, quietly=not public)
    return app
