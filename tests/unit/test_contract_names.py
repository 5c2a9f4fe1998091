"""What Temporal persists is compatibility data: names and shapes are pinned here."""

from __future__ import annotations

import pytest

from engram.contracts import names
from engram.domain.scope import Scope


def test_names_never_change() -> None:
    """Histories, schedules and callers of other versions refer to these strings."""
    public = {key: value for key, value in vars(names).items() if key.isupper()}
    assert public == {
        "SESSION_WORKFLOW": "engram.session",
        "CONSOLIDATION_WORKFLOW": "engram.consolidation",
        "ERASURE_WORKFLOW": "engram.erasure",
        "HISTORY_ERASURE_WORKFLOW": "engram.history_erasure",
        "FORGETTING_WORKFLOW": "engram.forgetting",
        "DECAY_WORKFLOW": "engram.decay",
        "PROMOTION_WORKFLOW": "engram.promotion",
        "MAINTENANCE_WORKFLOW": "engram.maintenance",
        "IMPORT_WORKFLOW": "engram.import",
        "REVIEW_WORKFLOW": "engram.review",
        "ASKED_CONSOLIDATION_WORKFLOW": "engram.asked_consolidation",
        "NEXUS_SERVICE": "engram.memory",
        "WORKFLOW_TYPES": (
            *("engram.session", "engram.consolidation", "engram.erasure"),
            *("engram.history_erasure", "engram.forgetting", "engram.decay"),
            *("engram.promotion", "engram.maintenance", "engram.import", "engram.review"),
            "engram.asked_consolidation",
        ),
        # Whose key payloads are encrypted with: another choice would not find it again.
        "SHARED_KEY_OWNER": "shared",
        "AUDIT_KEY_OWNER": "audit",
        "OF_ONE_USER": {
            *("session", "import", "forgetting", "consolidation", "consolidation-test"),
            *("review", "nexus"),
        },
        "SESSION_ENDED_SIGNAL": "session_ended",
        "ENCODE_UPDATE": "encode",
        "FORGET_TURNS_SIGNAL": "forget",
        "END_SESSION_UPDATE": "end_session",
        "WORKING_MEMORY_QUERY": "working_memory",
        "REQUEST_CONSOLIDATION_SIGNAL": "request",
        "CONSOLIDATE_UPDATE": "consolidate",
        "CONSOLIDATION_PROGRESS_QUERY": "progress",
        "UNLINKED_QUERY": "unlinked",
        "BEGIN_IMPORT_UPDATE": "begin",
        "IMPORT_BATCH_UPDATE": "store_batch",
        "FINISH_IMPORT_UPDATE": "finish",
        "IMPORT_PROGRESS_QUERY": "import_progress",
        "MAINTENANCE_PROGRESS_QUERY": "maintenance_progress",
        "ANSWER_REVIEW_UPDATE": "answer",
        "KEEP_SIGNAL": "keep",
        "LOOK_SIGNAL": "look",
        "REVIEW_QUERY": "review",
        "STORE_TURNS_ACTIVITY": "engram.store_turns",
        "REQUEST_CONSOLIDATION_ACTIVITY": "engram.request_consolidation",
        "SELECT_DUE_ACTIVITY": "engram.select_due_episodes",
        "EXTRACT_ACTIVITY": "engram.extract",
        "RECONCILE_ACTIVITY": "engram.reconcile",
        "LINK_ACTIVITY": "engram.link",
        "WRITE_PLAN_ACTIVITY": "engram.write_plan",
        "RETIRE_ACTIVITY": "engram.retire",
        "MARK_CONSOLIDATED_ACTIVITY": "engram.mark_consolidated",
        "CONSOLIDATE_TURNS_ACTIVITY": "engram.consolidate_turns",
        "APPLY_PLAN_ACTIVITY": "engram.apply_plan",
        "DIGEST_ACTIVITY": "engram.digest",
        "DIGEST_KNOWLEDGE_ACTIVITY": "engram.digest_knowledge",
        "DIGEST_SESSIONS_ACTIVITY": "engram.digest_sessions",
        "LEARN_GUIDELINES_ACTIVITY": "engram.learn_guidelines",
        "RAISE_FENCE_ACTIVITY": "engram.raise_fence",
        "ERASE_WORKFLOWS_ACTIVITY": "engram.erase_workflows",
        "ERASE_MEMORIES_ACTIVITY": "engram.erase_memories",
        "PLAN_FORGETTING_ACTIVITY": "engram.plan_forgetting",
        "APPLY_FORGETTING_ACTIVITY": "engram.apply_forgetting",
        "LOOK_AGAIN_ACTIVITY": "engram.look_for_forgotten",
        "REVIEW_ACTIVITY": "engram.review_due_memories",
        "PROMOTE_ACTIVITY": "engram.promote_memories",
        "PROMOTE_SESSION_ACTIVITY": "engram.promote_ended_session",
        "FIND_DUE_USERS_ACTIVITY": "engram.find_due_users",
        "STORE_BATCH_ACTIVITY": "engram.store_imported_batch",
        "OPEN_REVIEWS_ACTIVITY": "engram.open_reviews",
        "LOOK_AT_DISPUTE_ACTIVITY": "engram.look_at_dispute",
        "SETTLE_DISPUTE_ACTIVITY": "engram.settle_dispute",
        # In histories of other programs' workflows.
        "ENCODE_CALL": "engram.encode",
        "RECALL_CALL": "engram.recall",
        "CONTEXT_CALL": "engram.context",
        "FORGET_CALL": "engram.forget",
        "CONSOLIDATE_CALL": "engram.consolidate",
        "USER_ATTRIBUTE": "EngramUser",
        "SESSION_ATTRIBUTE": "EngramSession",
        "STAGE_ATTRIBUTE": "EngramStage",
        "SEARCH_ATTRIBUTES": ("EngramUser", "EngramSession", "EngramStage"),
        "SPENT_MEMO": "EngramModels",
        "REVIEW_MEMO": "EngramReview",
        "DEFAULT_STORE": "engram",
        "LONGEST_ID": 255,
    }


def test_workflow_ids_never_change() -> None:
    """One running workflow per session and per user rests on these ids."""
    scope = Scope.of("default", "ada")
    assert names.session_workflow_id(scope, "s1") == "session/default/ada/s1"
    assert names.forgetting_workflow_id(scope, "m1") == "forgetting/default/ada/m1"
    assert names.erasure_workflow_id(scope) == "erasure/default/ada"
    behind = names.history_erasure_workflow_id("erasure/default/ada")
    assert behind == "history-erasure/default/ada"
    assert names.consolidation_workflow_id(scope) == "consolidation/default/ada"
    assert names.consolidation_workflow_id(scope, "-test") == "consolidation-test/default/ada"
    assert names.decay_workflow_id(scope) == "decay/default/ada"
    assert names.decay_workflow_id(scope, "-trial") == "decay-trial/default/ada"
    assert names.promotion_workflow_id(scope) == "promotion/default/ada"
    assert names.maintenance_workflow_id("decay") == "maintenance/decay"
    assert names.review_workflow_id(scope, "r1") == "review/default/ada/r1"
    assert names.import_workflow_id(scope, "i1") == "import/default/ada/i1"


@pytest.mark.parametrize("store", [names.DEFAULT_STORE, "staging", "s" * 60])
@pytest.mark.parametrize("user", ["ada", "u" * 80])
def test_what_deletes_histories_is_of_the_store_of_its_erasure(store: str, user: str) -> None:
    """Its id follows from that of the erasure; its payloads outlive the user's key."""
    scope = Scope.of("n" * 60, user)
    erasure = names.in_store(store, names.erasure_workflow_id(scope))
    behind = names.history_erasure_workflow_id(erasure)
    assert names.store_of(behind) == store
    assert "history-erasure/" in behind
    assert len(behind) <= names.LONGEST_ID
    assert names.key_owner_of(behind) == names.SHARED_KEY_OWNER


def test_workflow_ids_of_another_store_begin_with_its_prefix() -> None:
    """They fit into what a database keeps of an id, and say whose they are."""
    scope = Scope.of("n" * 80, "u" * 80)
    for workflow_id in (names.session_workflow_id(scope, "s:" * 40), "maintenance/decay"):
        for store in ("engram", "staging", "p" * 64):
            marked = names.in_store(store, workflow_id)
            assert names.store_of(marked) == store
            assert len(marked) <= 255
    ada = Scope.of("default", "ada")
    assert (
        names.in_store("staging", names.session_workflow_id(ada, "s1"))
        == "staging:session/default/ada/s1"
    )
    one, other = (names.session_workflow_id(scope, f"{end:080}") for end in (1, 2))
    assert names.in_store("staging", one) != names.in_store("staging", other)
