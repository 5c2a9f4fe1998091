"""What a process that comes later finds in a data folder, as one JSON object by user.

Arguments: a question, then the users. The folder is that of ENGRAM_DATA_DIR.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict

import engram


def main(question: str, *users: str) -> None:
    """Print, for each user, all contents by type of memory, and what answers the question best."""
    found = {}
    with engram.open_sync(user_id=users[0]) as memory:
        for user in users:
            kept: dict[str, list[str]] = defaultdict(list)
            for one in memory.for_user(user).list(limit=1000).memories:
                kept[one.type].append(one.content)
            hits = memory.for_user(user).recall(question, limit=1)
            found[user] = {"kept": kept, "answer": hits[0].memory.content if hits else None}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
