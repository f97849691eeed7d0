"""Tasks: what is asked about candidates. One file each, one line in `items.TASKS`."""

from __future__ import annotations

from unswayed.model.items import TASKS
from unswayed.model.tasks.gold import check_gold, right_candidates
from unswayed.model.tasks.spec import (
    Points,
    TaskSpec,
    points_of,
    sentences_of,
    task_of,
    tasks_giving,
)

__all__ = [
    "TASKS",
    "Points",
    "TaskSpec",
    "check_gold",
    "points_of",
    "right_candidates",
    "sentences_of",
    "task_of",
    "tasks_giving",
]
