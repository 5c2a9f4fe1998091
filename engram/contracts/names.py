"""Every name that Temporal persists. Histories refer to them: none is ever renamed.

``tests/unit/test_contract_names.py`` pins them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from engram.domain.scope import Scope

SESSION_WORKFLOW: Final = "engram.session"
CONSOLIDATION_WORKFLOW: Final = "engram.consolidation"
ERASURE_WORKFLOW: Final = "engram.erasure"
HISTORY_ERASURE_WORKFLOW: Final = "engram.history_erasure"
FORGETTING_WORKFLOW: Final = "engram.forgetting"
DECAY_WORKFLOW: Final = "engram.decay"
PROMOTION_WORKFLOW: Final = "engram.promotion"
MAINTENANCE_WORKFLOW: Final = "engram.maintenance"
IMPORT_WORKFLOW: Final = "engram.import"
REVIEW_WORKFLOW: Final = "engram.review"
ASKED_CONSOLIDATION_WORKFLOW: Final = "engram.asked_consolidation"

NEXUS_SERVICE: Final = "engram.memory"

WORKFLOW_TYPES: Final = (
    *(SESSION_WORKFLOW, CONSOLIDATION_WORKFLOW, ERASURE_WORKFLOW, HISTORY_ERASURE_WORKFLOW),
    *(FORGETTING_WORKFLOW, DECAY_WORKFLOW, PROMOTION_WORKFLOW, MAINTENANCE_WORKFLOW),
    *(IMPORT_WORKFLOW, REVIEW_WORKFLOW, ASKED_CONSOLIDATION_WORKFLOW),
)

SESSION_ENDED_SIGNAL: Final = "session_ended"

ENCODE_UPDATE: Final = "encode"
FORGET_TURNS_SIGNAL: Final = "forget"
END_SESSION_UPDATE: Final = "end_session"
WORKING_MEMORY_QUERY: Final = "working_memory"

REQUEST_CONSOLIDATION_SIGNAL: Final = "request"
CONSOLIDATE_UPDATE: Final = "consolidate"
CONSOLIDATION_PROGRESS_QUERY: Final = "progress"
UNLINKED_QUERY: Final = "unlinked"

BEGIN_IMPORT_UPDATE: Final = "begin"
IMPORT_BATCH_UPDATE: Final = "store_batch"
FINISH_IMPORT_UPDATE: Final = "finish"
IMPORT_PROGRESS_QUERY: Final = "import_progress"

MAINTENANCE_PROGRESS_QUERY: Final = "maintenance_progress"

ANSWER_REVIEW_UPDATE: Final = "answer"
KEEP_SIGNAL: Final = "keep"
LOOK_SIGNAL: Final = "look"
REVIEW_QUERY: Final = "review"

STORE_TURNS_ACTIVITY: Final = "engram.store_turns"
REQUEST_CONSOLIDATION_ACTIVITY: Final = "engram.request_consolidation"
SELECT_DUE_ACTIVITY: Final = "engram.select_due_episodes"
EXTRACT_ACTIVITY: Final = "engram.extract"
RECONCILE_ACTIVITY: Final = "engram.reconcile"
LINK_ACTIVITY: Final = "engram.link"
WRITE_PLAN_ACTIVITY: Final = "engram.write_plan"
RETIRE_ACTIVITY: Final = "engram.retire"
MARK_CONSOLIDATED_ACTIVITY: Final = "engram.mark_consolidated"
CONSOLIDATE_TURNS_ACTIVITY: Final = "engram.consolidate_turns"
APPLY_PLAN_ACTIVITY: Final = "engram.apply_plan"
DIGEST_ACTIVITY: Final = "engram.digest"
DIGEST_KNOWLEDGE_ACTIVITY: Final = "engram.digest_knowledge"
DIGEST_SESSIONS_ACTIVITY: Final = "engram.digest_sessions"
LEARN_GUIDELINES_ACTIVITY: Final = "engram.learn_guidelines"
ERASE_WORKFLOWS_ACTIVITY: Final = "engram.erase_workflows"
RAISE_FENCE_ACTIVITY: Final = "engram.raise_fence"
ERASE_MEMORIES_ACTIVITY: Final = "engram.erase_memories"
PLAN_FORGETTING_ACTIVITY: Final = "engram.plan_forgetting"
APPLY_FORGETTING_ACTIVITY: Final = "engram.apply_forgetting"
LOOK_AGAIN_ACTIVITY: Final = "engram.look_for_forgotten"
REVIEW_ACTIVITY: Final = "engram.review_due_memories"
PROMOTE_ACTIVITY: Final = "engram.promote_memories"
PROMOTE_SESSION_ACTIVITY: Final = "engram.promote_ended_session"
FIND_DUE_USERS_ACTIVITY: Final = "engram.find_due_users"
STORE_BATCH_ACTIVITY: Final = "engram.store_imported_batch"
OPEN_REVIEWS_ACTIVITY: Final = "engram.open_reviews"
LOOK_AT_DISPUTE_ACTIVITY: Final = "engram.look_at_dispute"
SETTLE_DISPUTE_ACTIVITY: Final = "engram.settle_dispute"

ENCODE_CALL: Final = "engram.encode"
RECALL_CALL: Final = "engram.recall"
CONTEXT_CALL: Final = "engram.context"
FORGET_CALL: Final = "engram.forget"
CONSOLIDATE_CALL: Final = "engram.consolidate"

USER_ATTRIBUTE: Final = "EngramUser"
SESSION_ATTRIBUTE: Final = "EngramSession"
STAGE_ATTRIBUTE: Final = "EngramStage"
SEARCH_ATTRIBUTES: Final = (USER_ATTRIBUTE, SESSION_ATTRIBUTE, STAGE_ATTRIBUTE)

SPENT_MEMO: Final = "EngramModels"
"""Of a consolidation: what it asked of models so far, over all of its runs."""

REVIEW_MEMO: Final = "EngramReview"
"""Of a review: what it is about, and until when it waits."""


DEFAULT_STORE: Final = "engram"
"""The collection prefix whose workflow ids have no mark; those of every other one begin with it."""

LONGEST_ID: Final = 255
"""Characters that a Temporal server over PostgreSQL or MySQL keeps of an id."""


def in_store(store: str, workflow_id: str) -> str:
    """The id of a workflow that works for one of several stores in a Temporal namespace.

    Args:
        store: The collection prefix of its store.
        workflow_id: What the functions below give.
    """
    if store == DEFAULT_STORE:
        return workflow_id
    marked = f"{store}:{workflow_id}"
    if len(marked) <= LONGEST_ID:
        return marked
    kind, *rest = workflow_id.split("/")
    # A number sign is in no name, so that nobody's user is taken for a digest.
    return f"{store}:{kind}/#{_digest('/'.join(rest[:2]))}/{_digest(workflow_id)}"


def store_of(workflow_id: str) -> str:
    """The collection prefix of the store that a workflow works for."""
    # Names of users and sessions may have a colon as well; the kind before them has none.
    store, marked, _ = workflow_id.partition("/")[0].partition(":")
    return store if marked else DEFAULT_STORE


def model_queue_of(workflow_id: str) -> str:
    """The task queue of a workflow's language models, where settings do not name another."""
    return f"{store_of(workflow_id)}-model"


OF_ONE_USER: Final = frozenset(
    {"session", "import", "forgetting", "consolidation", "consolidation-test", "review", "nexus"}
)
"""Kinds of workflows, by how their ids begin, whose payloads hold words of one user. Passes
are begun by those over all users, and hold ids and numbers; an erasure, and what deletes
histories behind it, outlives the user's key."""

SHARED_KEY_OWNER: Final = "shared"
"""Of passes, schedules, erasures: what serves several users, or outlives one's key."""

AUDIT_KEY_OWNER: Final = "audit"
"""Of the audit trail: no user's, so that erasing one leaves it whole."""


def key_owner(store: str, tenant: str) -> str:
    """Whose key the payloads of a user's workflows are encrypted with.

    Args:
        store: The collection prefix: a user of two stores on one Temporal namespace has a key
            in each, so that erasing them from one leaves the other readable.
        tenant: Namespace and user, as :attr:`engram.domain.scope.Scope.tenant` has them.
    """
    return tenant if store == DEFAULT_STORE else f"{store}:#{_digest(tenant)}"


@lru_cache(maxsize=1024)  # Each payload asks.
def key_owner_of(workflow_id: str) -> str:
    """Whose key payloads of a workflow are encrypted with: a user's, or the shared one."""
    store = store_of(workflow_id)
    kind, _, rest = workflow_id.removeprefix(f"{store}:").partition("/")
    namespace, found, user = rest.partition("/")
    if kind not in OF_ONE_USER or not found:
        return SHARED_KEY_OWNER
    if store != DEFAULT_STORE and namespace.startswith("#"):
        return f"{store}:{namespace}"
    return key_owner(store, f"{namespace}/{user.partition('/')[0]}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def session_workflow_id(scope: Scope, session_id: str) -> str:
    """One running workflow per session."""
    return f"session/{scope.tenant}/{session_id}"


def forgetting_workflow_id(scope: Scope, memory_id: str) -> str:
    """One running workflow per memory that is forgotten."""
    return f"forgetting/{scope.tenant}/{memory_id}"


def erasure_workflow_id(scope: Scope) -> str:
    """One running erasure per user."""
    return f"erasure/{scope.tenant}"


def history_erasure_workflow_id(erasure: str) -> str:
    """What deletes histories behind an erasure, by the id of that, in whichever store."""
    store = store_of(erasure)
    return in_store(store, f"history-{erasure.removeprefix(f'{store}:')}")


def consolidation_workflow_id(scope: Scope, variant: str = "") -> str:
    """One running consolidation per user: the id says so. That of test turns has a ``variant``."""
    return f"consolidation{variant}/{scope.tenant}"


def asked_consolidation_workflow_id(scope: Scope, request_id: str) -> str:
    """One per request of another Temporal namespace; it waits for the user's consolidation."""
    return f"asked-consolidation/{scope.tenant}/{request_id}"


def nexus_answer_id(scope: Scope) -> str:
    """What answers through Nexus are bound to: no workflow, but whose words they are."""
    return f"nexus/{scope.tenant}"


def decay_workflow_id(scope: Scope, variant: str = "") -> str:
    """One running decay pass per user; trials of it, with a ``variant``, run beside it."""
    return f"decay{variant}/{scope.tenant}"


def promotion_workflow_id(scope: Scope, variant: str = "") -> str:
    """One running promotion pass per user; trials of it, with a ``variant``, run beside it."""
    return f"promotion{variant}/{scope.tenant}"


def import_workflow_id(scope: Scope, import_id: str) -> str:
    """One running import per user and source."""
    return f"import/{scope.tenant}/{import_id}"


def review_workflow_id(scope: Scope, review_id: str) -> str:
    """One running review per dispute."""
    return f"review/{scope.tenant}/{review_id}"


def maintenance_workflow_id(kind: str, variant: str = "") -> str:
    """One running pass over all users of each kind; schedules append their time."""
    return f"maintenance/{kind}{variant}"
