"""Examples in the OpenAPI document: what is asked, and what comes back."""

from __future__ import annotations

from typing import Any, Final

_EPISODE: Final = "850d6e4c-1f0e-5b57-9a7e-0c3c2f6f1b4d"
_FACT: Final = "4f0c1a52-7c0b-5a2e-8a55-3a1d1f2c9a9a"
_TURN: Final = {
    "id": _EPISODE,
    "namespace": "default",
    "user_id": "ada",
    "type": "episodic",
    "content": "My e-mail is ada@example.org.",
    "session_id": "monday",
    "role": "user",
    "timestamp": "2026-05-20T08:15:00Z",
    "message_id": "m1",
    "known_at": "2026-05-20T08:15:00Z",
    "created_at": "2026-05-20T08:15:01Z",
}

QUESTIONS: Final[dict[str, Any]] = {
    "encode": {
        "turns": [
            {
                "role": "user",
                "content": "My e-mail is ada@example.org.",
                "message_id": "m1",
                "timestamp": "2026-05-20T08:15:00Z",
            }
        ]
    },
    "recall": {"query": "How can I reach Ada?", "limit": 5, "include_sources": True},
    "forget": {"memory_id": _EPISODE},
    "verify": {"memory_id": _FACT},
    "confirm": {"memory_id": _FACT},
    "profile": {"name": "Ada"},
    "briefing": {"limit": 5},
}
ANSWERS: Final[dict[str, Any]] = {
    "encode": {
        "episode_ids": [_EPISODE],
        "fact_ids": [_FACT],
        "negation_ids": [],
        "signal": "none",
        "buffered": 1,
        "workflow_id": "session/default/ada/monday",
    },
    "recall": [{"memory": _TURN, "score": 0.71, "sources": []}],
    "get_memory": _TURN,
    "list_memories": {"memories": [_TURN], "cursor": f"episodic:{_EPISODE}"},
    "stats": {
        "counts": {"episodic": 1, "factual": 1, "semantic": 0, "procedural": 0, "negation": 0},
        "active": {"episodic": 1, "factual": 1, "semantic": 0, "procedural": 0, "negation": 0},
        "waiting": 1,
    },
    "service_health": {"version": "0.1.0"},
    "service_ready": {"temporal": "answers", "store": "answers"},
}
