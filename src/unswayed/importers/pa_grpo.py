"""Reader of the training files released with PA-GRPO: one JSON line per presentation, to items.

Two files with two conventions. In the pairwise file (Chatbot Arena) `ground_truth` is the letter
that is *displayed* beside the better answer, so it flips with the order; in the multiple-choice
file (MMLU) it is the letter of the *original* option in all five rows. Rows of one item are put
back together, checked against each other, and become one item in its original order, which is
then shown through this package's own prompts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from unswayed.errors import ItemError
from unswayed.items import Item, ItemSet, Task, iter_lines
from unswayed.permutations import Order

__all__ = ["load_released"]

_LETTERS: Final = "ABCD"
_PAIR: Final = re.compile(
    r"###Query: (?:\\n|\n)(.*)(?:\\n|\n){2}###A Answer: (?:\\n|\n)(.*)(?:\\n|\n){2}"
    r"###B Answer:(?:\\n|\n)(.*)",
    re.DOTALL,
)
_QUESTION: Final = re.compile(
    r"(.*)\n\nOptions:\nA\. (.*?)\nB\. (.*?)\nC\. (.*?)\nD\. (.*)", re.DOTALL
)


class _Shown(NamedTuple):
    """One row: what it shows, and its gold by original candidate."""

    line: int
    item_id: str
    task: Task
    order: Order
    prompt: str
    candidates: tuple[str, ...]
    gold: int
    source: str


def load_released(path: str | Path, *, limit: int | None = None) -> ItemSet:
    """Read a released training file.

    Args:
        path: `.jsonl` or `.jsonl.gz`, rows of one item anywhere in the file.
        limit: Keep the first `limit` items.

    Raises:
        ItemError: If a row cannot be read, or rows of one item contradict each other.
        UsageError: If the file cannot be read.
    """
    grouped: dict[str, list[_Shown]] = {}
    for number, line in iter_lines(path):
        try:
            shown = _read(json.loads(line), number)
        except (KeyError, TypeError, ValueError) as error:
            raise ItemError(f"{path}:{number}: not a released training row ({error!r}).") from None
        grouped.setdefault(shown.item_id, []).append(shown)
    items = [_item(rows, path) for rows in list(grouped.values())[:limit]]
    return ItemSet.of(items, name=Path(path).name.removesuffix(".gz").removesuffix(".jsonl"))


def _read(row: dict[str, Any], line: int) -> _Shown:
    extra, source = row["extra_info"], row["data_source"]
    text = row["prompt"][-1]["content"]
    letter = _LETTERS.index(row["reward_model"]["ground_truth"])
    if source == "chatbot_arena":
        match = _PAIR.fullmatch(text)
        order: Order = (0, 1) if extra["permutation"] == 0 else (1, 0)
        name, task = f"arena/{extra['original_question_id']}", Task.PAIRWISE
        gold = order[letter]  # the displayed letter
    else:
        match = _QUESTION.fullmatch(text)
        order = tuple(_LETTERS.index(symbol) for symbol in extra["permutation"])
        name, task = f"{source}/{extra['original_index']}", Task.MCQ
        gold = letter  # the original letter, whatever is displayed
    if match is None:
        raise ValueError("the prompt does not show a question with its candidates")
    prompt, *by_position = match.groups()
    candidates = [""] * len(order)
    for position, candidate in enumerate(order):
        candidates[candidate] = by_position[position].rstrip()
    return _Shown(line, name, task, order, prompt, tuple(candidates), gold, source)


def _item(rows: Sequence[_Shown], path: str | Path) -> Item:
    first = rows[0]
    for row in rows[1:]:
        for what in ("prompt", "candidates", "gold"):
            if getattr(row, what) != getattr(first, what):
                raise ItemError(
                    f"{path}:{row.line}: {row.item_id}: {what} differs from line {first.line}, "
                    "once both are put in original order."
                )
        if row.order in [other.order for other in rows if other.line < row.line]:
            raise ItemError(f"{path}:{row.line}: {row.item_id}: the same order occurs twice.")
    return Item(
        id=first.item_id,
        task=first.task,
        prompt=first.prompt,
        candidates=first.candidates,
        gold=first.gold,
        meta={"source": first.source},
    )
