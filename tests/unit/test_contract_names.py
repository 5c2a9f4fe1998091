"""What Temporal persists is compatibility data: names and shapes are pinned here."""

from __future__ import annotations

from engram.contracts import names
from engram.domain.scope import Scope


def test_names_never_change() -> None:
    """Histories, schedules and callers of other versions refer to these strings."""
    public = {key: value for key, value in vars(names).items() if key.isupper()}
    assert public == {
        "SESSION_WORKFLOW": "engram.session",
        "CONSOLIDATION_WORKFLOW": "engram.consolidation",
        "ENCODE_UPDATE": "encode",
        "END_SESSION_UPDATE": "end_session",
        "WORKING_MEMORY_QUERY": "working_memory",
        "REQUEST_CONSOLIDATION_SIGNAL": "request",
        "CONSOLIDATE_UPDATE": "consolidate",
        "CONSOLIDATION_PROGRESS_QUERY": "progress",
        "STORE_TURNS_ACTIVITY": "engram.store_turns",
        "REQUEST_CONSOLIDATION_ACTIVITY": "engram.request_consolidation",
        "SELECT_DUE_ACTIVITY": "engram.select_due_episodes",
        "EXTRACT_ACTIVITY": "engram.extract",
        "RECONCILE_ACTIVITY": "engram.reconcile",
        "LINK_ACTIVITY": "engram.link",
        "WRITE_PLAN_ACTIVITY": "engram.write_plan",
        "RETIRE_ACTIVITY": "engram.retire",
        "MARK_CONSOLIDATED_ACTIVITY": "engram.mark_consolidated",
        "USER_ATTRIBUTE": "EngramUser",
        "SESSION_ATTRIBUTE": "EngramSession",
        "STAGE_ATTRIBUTE": "EngramStage",
        "SPENT_MEMO": "EngramModels",
    }


def test_workflow_ids_never_change() -> None:
    """One running workflow per session and per user rests on these ids."""
    scope = Scope.of("default", "ada")
    assert names.session_workflow_id(scope, "s1") == "session/default/ada/s1"
    assert names.consolidation_workflow_id(scope) == "consolidation/default/ada"
