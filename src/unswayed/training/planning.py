"""From items, a recipe and a model to a plan: everything that can be checked without weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from unswayed.backends import BACKENDS
from unswayed.backends.model_folders import locate
from unswayed.errors import UsageError
from unswayed.items import Item
from unswayed.prompts import check_prompts, prompt_fingerprint
from unswayed.registry import require
from unswayed.reward_settings import Advantage
from unswayed.training import checks
from unswayed.training.chats import load_chat
from unswayed.training.data import build_groups, prompt_settings
from unswayed.training.plan import Plan
from unswayed.training.provenance import run_record
from unswayed.training.recipe_parts import Recipe
from unswayed.training.sampling import Split, check_step
from unswayed.training.table import ENGINES, OBJECTIVES
from unswayed.training.trainer_arguments import process_count

__all__ = ["plan_training"]


def plan_training(
    objective: str,
    items: Sequence[Item],
    *,
    model: str,
    recipe: Recipe,
    consistency: str | None = None,
    advantage: Advantage | None = None,
    engine: str = "trl",
) -> Plan:
    """Check everything that can be checked without loading weights, on the data itself.

    Versions and hooks of trl, tokenizer, chat template, labels, gold, whole groups, prompt
    lengths, the model's context, and whether a step's responses can be split.

    Args:
        objective: A registered objective, such as pa-grpo.
        items: Of one task, with gold: a right candidate, or the score of a level.
        model: Path or hub id of the model, with or without `hf/`.
        recipe: Every number.
        consistency: `--reward` of `rl`.
        advantage: `--advantage` of `rl`.
        engine: A registered engine.

    Raises:
        UsageError, ItemError, TemplateError: Anything that can be wrong.
    """
    chosen = OBJECTIVES.load(objective)
    if "tensorboard" in recipe.run.loggers:
        require("tensorboard", extra="train", feature='run.loggers = ["tensorboard"]')
    settings = chosen.settings(recipe, consistency=consistency, advantage=advantage)
    runner = ENGINES.load(engine)
    runner.check(recipe, settings)
    base = _base_of(model)
    folder = locate(base)
    if folder.template is not None and recipe.prompt.template is None:
        prompt = msgspec.structs.replace(recipe.prompt, template=str(folder.template))
        recipe = msgspec.structs.replace(recipe, prompt=prompt)
    prompts = prompt_settings(recipe.prompt)
    chat = load_chat(folder.path, recipe)
    checks.check_task(items, recipe)
    warnings = check_prompts(items, prompts)
    groups = build_groups(
        items, recipe.data, recipe.prompt, seed=recipe.run.seed, count_tokens=chat.count
    )
    checks.check_labels(chat, groups)
    checks.check_context(folder.path, groups)
    check_step(len(groups), recipe.optimiser.items_per_step)
    split = Split(0, 0)
    if settings is not None:
        split = runner.split(recipe, groups.n_presentations, process_count())
    chosen.check(recipe, groups, settings)
    steps_per_epoch = chosen.steps_per_epoch(recipe, groups)
    return Plan(
        objective=objective,
        engine=engine,
        recipe=recipe,
        settings=settings,
        base=base,
        folder=folder.path,
        chat=chat,
        groups=groups,
        record=run_record(
            objective,
            folder.name,
            recipe,
            settings,
            groups,
            prompt_fingerprint=prompt_fingerprint(prompts),
            n_processes=process_count(),
        ),
        split=split,
        steps_per_epoch=steps_per_epoch,
        steps=recipe.optimiser.steps or math.ceil(steps_per_epoch * recipe.optimiser.epochs),
        example=str(chat.tokenizer.decode(chat.ids(groups.rows[0].messages))),
        warnings=tuple(warnings),
    )


def _base_of(model: str) -> str:
    """The model's path or hub id: what follows `hf/`, or the folder of a built-in judge.

    Raises:
        UsageError: If it is a model behind an API, or has an adapter already.
    """
    provider, slash, rest = model.partition("/")
    if provider == "tiny":
        from unswayed.tiny.formats import FORMATS

        if rest in FORMATS:
            return str(FORMATS[rest].folder)
    base = rest if slash and provider == "hf" else model
    if provider in BACKENDS and provider != "hf" and not Path(model).exists():
        raise UsageError(
            f"{model} cannot be trained: only open weights can. Give hf/<path or id>, a path, "
            "tiny/judge or tiny/rubric."
        )
    if "+lora=" in base:
        raise UsageError(
            f"{model} has an adapter already; training starts from a whole model. Merge the "
            "adapter into its base first (peft: merge_and_unload) and train the result."
        )
    return base
