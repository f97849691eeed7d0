"""Tasks: what is asked about candidates. One file each, one line in `items.TASKS`."""

from __future__ import annotations

from unswayed.items import TASKS
from unswayed.tasks.gold import check_gold, right_candidates
from unswayed.tasks.spec import TaskSpec, no_score, task_of, tasks_giving

__all__ = [
    "TASKS",
    "TaskSpec",
    "check_gold",
    "no_score",
    "right_candidates",
    "task_of",
    "tasks_giving",
]
