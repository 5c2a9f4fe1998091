"""The workflow contract: what other applications may start, send and ask.

docs/workflows.md and docs/workflows.json are made from it: ``docs/generate_workflows.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport, ConsolidationState
from engram.contracts.lifecycle import (
    DecayReport,
    DecayState,
    MaintenanceReport,
    MaintenanceState,
    PromotionReport,
    PromotionState,
)
from engram.contracts.removal import ErasureInput, ErasureReceipt, ForgetInput, ForgetReceipt
from engram.contracts.reviews import AnswerReview, ReviewOutcome, ReviewState
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeReply,
    EncodeRequest,
    EndSession,
    SessionState,
    SessionSummary,
)
from engram.domain.buffer import RememberedTurn
from engram.errors import (
    BasisForgotten,
    EngramError,
    InvalidInput,
    InvalidScope,
    ModelRejected,
    ModelUnavailable,
    PayloadRefused,
    SchemaMismatch,
    StorageUnavailable,
    TemporalUnavailable,
    UnmaskedPersonalData,
    UserErased,
)


@dataclass(frozen=True, slots=True)
class PublishedMessage:
    """An update, signal or query.

    Attributes:
        kind: ``update``, ``signal`` or ``query``.
        name: As Temporal has it.
        takes: Type of its one argument; None if it has none.
        gives: Type of the answer; None of signals.
        meaning: What it does, and what sending it twice does.
        errors: Types of the failures that an update ends with, beside those of every call.
    """

    kind: str
    name: str
    meaning: str
    takes: Any = None
    gives: Any = None
    errors: tuple[type[EngramError], ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedWorkflow:
    """A workflow that applications may use.

    Attributes:
        name: Its type.
        id: With the parts that are filled in in capitals.
        takes: Type of its input.
        gives: Type of its result.
        start: How it may be started; empty if only Engram does.
        meaning: What it does.
        twice: What starting it again does.
        sent: What it takes while it runs.
        errors: Types of the failures that it ends with.
    """

    name: str
    id: str
    takes: Any
    gives: Any
    start: str
    meaning: str
    twice: str
    sent: tuple[PublishedMessage, ...] = ()
    errors: tuple[type[EngramError], ...] = ()


OF_EVERY_CALL: Final = (InvalidInput, InvalidScope, PayloadRefused)
"""Errors of starts and updates whose id, input or encryption is not as this contract says."""

PUBLISHED: Final = (
    PublishedWorkflow(
        names.SESSION_WORKFLOW,
        "session/NAMESPACE/USER/SESSION",
        SessionState,
        SessionSummary,
        "by update-with-start with `encode`, conflict policy `UseExisting`",
        "A conversation: it stores turns, holds the recent ones in mind, and asks for their "
        "consolidation. It ends when it is ended, or idle.",
        "The running one takes the update; its policy stays. After its end, a new run begins.",
        (
            PublishedMessage(
                "update",
                names.ENCODE_UPDATE,
                "Stores turns. The answer is the acknowledgement: stored, searchable, kept through "
                "crashes. A message id that is known with the same words stores nothing and gives "
                "the first receipt; with other words, with tags, metadata or a summary that the "
                "stored turn has not, or with another `is_test`, its call is refused, in the "
                "reply. All turns of a call are stored, or none. A run that is full refuses it "
                "(`temporal_unavailable`): sent again, the next run takes it.",
                EncodeRequest,
                EncodeReply,
                (
                    *(StorageUnavailable, TemporalUnavailable, UnmaskedPersonalData),
                    *(SchemaMismatch, UserErased),
                ),
            ),
            PublishedMessage(
                "update",
                names.END_SESSION_UPDATE,
                "Ends the session; what waits is consolidated in the background. Turns that come "
                "before the run is over begin the next session in it.",
                EndSession,
                SessionSummary,
            ),
            PublishedMessage(
                "query",
                names.WORKING_MEMORY_QUERY,
                "The recent turns, oldest first; none once the session is ended.",
                None,
                tuple[RememberedTurn, ...],
            ),
        ),
    ),
    PublishedWorkflow(
        names.CONSOLIDATION_WORKFLOW,
        "consolidation/NAMESPACE/USER",
        ConsolidationState,
        ConsolidationReport,
        "by update-with-start with `consolidate`, or signal-with-start with `request`, conflict "
        "policy `UseExisting`; `consolidation-test/...` with `population` `test`, "
        "`consolidation-trial/...` with `dry_run`",
        "What was said becomes what is known: passes, until nothing more is asked.",
        "The running one goes round again.",
        (
            PublishedMessage(
                "update",
                names.CONSOLIDATE_UPDATE,
                "Asks for a pass that begins from now on, and answers with its report.",
                ConsolidationRequest,
                ConsolidationReport,
                (StorageUnavailable, ModelUnavailable, ModelRejected),
            ),
            PublishedMessage(
                "signal",
                names.REQUEST_CONSOLIDATION_SIGNAL,
                "Asks for a pass, and waits for nothing.",
                ConsolidationRequest,
            ),
            PublishedMessage(
                "query",
                names.UNLINKED_QUERY,
                "Ids of memories that wait to be linked.",
                None,
                tuple[str, ...],
            ),
        ),
    ),
    PublishedWorkflow(
        names.DECAY_WORKFLOW,
        "decay/NAMESPACE/USER",
        DecayState,
        DecayReport,
        "by a start; `decay-test/...` with `population` `test`, `decay-trial/...` with `dry_run`",
        "Time passes for one user's memories: what is due is reviewed.",
        "Refused while one runs, or joined with `UseExisting`. Nothing is due twice.",
    ),
    PublishedWorkflow(
        names.PROMOTION_WORKFLOW,
        "promotion/NAMESPACE/USER",
        PromotionState,
        PromotionReport,
        "by a start; variants as of decay",
        "Makes habits of what proved itself in one user's memory.",
        "Refused while one runs, or joined with `UseExisting`. Nothing is promoted twice.",
    ),
    PublishedWorkflow(
        names.MAINTENANCE_WORKFLOW,
        "maintenance/KIND",
        MaintenanceState,
        MaintenanceReport,
        "by a start or a schedule, which appends its time to the id",
        "One kind of pass (`consolidation`, `decay`, `promotion`) for every user who has something "
        "due.",
        "Passes over users who are being served are skipped; what is done is not due any more.",
    ),
    PublishedWorkflow(
        names.FORGETTING_WORKFLOW,
        "forgetting/NAMESPACE/USER/MEMORY-ID",
        ForgetInput,
        ForgetReceipt,
        "by a start",
        "Forgets one memory, and what rests on it alone.",
        "Joined with `UseExisting`; once it is gone, a receipt of zeros or `memory_not_found`.",
        errors=(BasisForgotten, StorageUnavailable),
    ),
    PublishedWorkflow(
        names.ERASURE_WORKFLOW,
        "erasure/NAMESPACE/USER",
        ErasureInput,
        ErasureReceipt,
        "by a start; send `asked_at`, the present: an erasure that is sent again an hour later is "
        "refused",
        "Erases everything of a user.",
        "Refused while one runs: what was said since that began may stay, so wait for its end, "
        "then start with `UseExisting`. Again, it finds nothing. Reset when it is over, it fails, "
        "and leaves what was said since.",
        errors=(StorageUnavailable, UserErased),
    ),
    PublishedWorkflow(
        names.REVIEW_WORKFLOW,
        "review/NAMESPACE/USER/REVIEW-ID",
        ReviewState,
        ReviewOutcome,
        "",
        "Waits for a person to say which of two memories holds.",
        "",
        (
            PublishedMessage(
                "update",
                names.ANSWER_REVIEW_UPDATE,
                "Says what holds, and answers when that is written; of several answers the first "
                "counts.",
                AnswerReview,
                ReviewOutcome,
                (StorageUnavailable,),
            ),
            PublishedMessage(
                "signal",
                names.KEEP_SIGNAL,
                "The same, and waits for nothing; an answer that is none is passed over.",
                str,
            ),
        ),
    ),
)
"""In the order of the page. What is not here is Engram's own and may change with any release."""
