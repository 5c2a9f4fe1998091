"""Whether the settings can be used, and the models that they name."""

from __future__ import annotations

import stat
from typing import Final

from engram.agents.models import RULES, make_model, provider_errors
from engram.cli.doctor.results import Result, Surroundings, failed, ok, warning
from engram.embedding.embedder import make_embedder
from engram.errors import EngramError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def settings(around: Surroundings) -> Result:
    """Every value can be used."""
    wrong = around.effective.problems
    if wrong:
        return failed(
            "settings",
            "; ".join(f"{variable}: {said}" for variable, said in wrong.items()),
            "`engram config NAME` says what is allowed",
        )
    given = sum(each.origin != "default" for each in around.effective.settings)
    return ok("settings", f"{given} set, the others at their defaults")


def variables(around: Surroundings) -> Result:
    """No variable looks like a setting and is none."""
    unknown = around.effective.unknown
    if not unknown:
        return ok("variables", "every ENGRAM_ variable is a setting")
    return warning(
        "variables",
        f"set nothing: {', '.join(each.variable for each in unknown)}",
        "; ".join(
            f"did you mean {each.nearest} instead of {each.variable}?"
            for each in unknown
            if each.nearest
        )
        or "`engram config` lists the settings",
    )


def embedder(around: Surroundings) -> Result:
    """The embedder that is set can be made here."""
    name = around.settings.embedder
    try:
        made = make_embedder(name)
    except EngramError as error:
        return failed("embedder", error.message, _what_to_do(error))
    return ok("embedder", made.identity)


def model(around: Surroundings) -> Result:
    """The language model is known, its package installed and its key set; it is not asked."""
    name = around.settings.model
    if name == RULES:
        return ok("model", "rules (offline)")
    try:
        made = make_model(name)
    except EngramError as error:
        return failed("model", error.message, _what_to_do(error))
    return ok("model", f"{made.model_id}; --ask-model asks it something")


async def model_answers(around: Surroundings) -> Result:
    """The language model answers; only with --ask-model, because it costs something."""
    if not around.ask_model:
        return ok("model answers", "not asked")
    from pydantic_ai.direct import model_request  # noqa: PLC0415 - only what is used loads
    from pydantic_ai.messages import ModelRequest  # noqa: PLC0415 - same

    try:
        thinker = make_model(around.settings.model)
        if around.settings.model == RULES:
            return ok("model answers", "rules need not be asked")
        with provider_errors():
            await model_request(thinker, [ModelRequest.user_text_prompt("Answer with: ok")])
    except EngramError as error:
        return failed("model answers", error.message, _what_to_do(error))
    return ok("model answers", f"{thinker.model_id} answered")


def keys(around: Surroundings) -> Result:
    """The file of API keys can be read, and by its owner only."""
    from engram.http.key_file import KeyFile  # noqa: PLC0415 - an optional part

    path = around.settings.keys_path
    try:
        kept = KeyFile(path).read()
    except EngramError as error:
        return failed("keys", error.message, _what_to_do(error))
    if not path.exists():
        return ok("keys", "none; `engram keys create` makes one for the HTTP API")
    if path.stat().st_mode & _OTHERS:
        return warning("keys", f"{path} may be read by others", f"chmod 600 {path}")
    return ok("keys", f"{len(kept)} in {path}")


def _what_to_do(error: EngramError) -> str:
    said = [error.allowed and f"allowed: {error.allowed}", error.hint]
    return ". ".join(part.rstrip(".") for part in said if part) or "see the message"
