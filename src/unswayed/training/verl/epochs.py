"""Permutation groups as verl reads them: one Parquet file for each epoch, in the order of training."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from unswayed.base.errors import UsageError
from unswayed.model.items import encode_item
from unswayed.training.plan import Plan
from unswayed.training.sampling import GroupSampler
from unswayed.training.verl.reward import VerlRun

TEMPLATE: Final = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""Chat template that passes rendered prompts on: the model reads what an audit sends."""


class DataFiles(NamedTuple):
    """Files of a run."""

    train: list[str]  # one for each epoch
    validation: str  # one group; verl wants a file, and nothing is validated


def write_data(plan: Plan, folder: Path) -> DataFiles:
    """Write the files of all epochs: whole groups, shuffled by seed and epoch as trl's are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    rows, groups, recipe = rows_of(plan), plan.groups, plan.recipe
    sampler = GroupSampler(
        n_groups=len(groups),
        n_presentations=groups.n_presentations,
        groups_per_batch=recipe.optimiser.items_per_step,
        shuffle=recipe.data.shuffle,
        seed=recipe.run.seed,
    )

    def write(name: str, numbers: Iterable[int]) -> str:
        path = folder / f"{name}.parquet"
        pq.write_table(pa.Table.from_pylist([rows[number] for number in numbers]), path)
        return str(path)

    train = []
    for epoch in range(math.ceil(plan.steps / plan.steps_per_epoch)):
        sampler.set_epoch(epoch)
        train.append(write(f"epoch-{epoch}", sampler))
    return DataFiles(train, write("validation", range(groups.n_presentations)))


def run_text(plan: Plan) -> str:
    """Return the settings that workers and driver read."""
    recipe, groups = plan.recipe, plan.groups
    settings = plan.settings or recipe.reward
    run = VerlRun(recipe.prompt, groups.answer_only, recipe.task, groups.n_presentations, settings)
    return msgspec.json.encode(run).decode()


def rows_of(plan: Plan) -> list[dict[str, Any]]:
    """Return verl's row for each presentation: rendered prompt, gold, and what the reward reads.

    Raises:
        UsageError: If verl would tokenise a prompt in another way than an audit does.
    """
    groups, chat = plan.groups, plan.chat
    texts = chat.texts([row.messages for row in groups.rows])
    plain = chat.tokenizer(texts, add_special_tokens=False)["input_ids"]
    for row, text, ids in zip(groups.rows, texts, plain, strict=True):
        if list(ids) != chat.ids_of(text):
            raise UsageError(
                f"{row.item_id}: verl adds no special tokens to a prompt, and this model has no chat "
                "template that writes them. Use --engine trl."
            )
    run, items = run_text(plan), {item.id: item for item in groups.items}
    return [
        {
            "data_source": "unswayed",
            "prompt": [{"role": "user", "content": text}],
            "reward_model": {"style": "rule", "ground_truth": ""},  # gold is in extra_info
            "extra_info": {
                "run": run,
                "item": encode_item(items[row.item_id]).decode(),
                "item_id": row.item_id,
                "presentation": row.presentation,
                "order": row.shown.order,
                "labels": row.shown.labels,
                "symbols": row.symbols,
                "gold": row.gold,
            },
        }
        for row, text in zip(groups.rows, texts, strict=True)
    ]
