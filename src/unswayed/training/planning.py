"""Plan a training run from items, recipe and model: everything that can be checked without weights."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unswayed.backends import BACKENDS
from unswayed.backends.model_folders import ModelFolder, locate
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import ItemError, UsageError
from unswayed.model.items import Item, blind, load_items
from unswayed.model.presentation import Ask, canonical
from unswayed.prompts import PromptSettings, Rendered, check_prompts, render
from unswayed.training import checks
from unswayed.training.architecture import build_skeleton, check_quantised, shape_of
from unswayed.training.chats import ChatTokens, load_chat
from unswayed.training.filtering import content_of
from unswayed.training.groups import Groups, build_groups, prompt_settings
from unswayed.training.memory import Demand, advice, demand_of, estimate_memory
from unswayed.training.plan import Plan
from unswayed.training.protocol import Objective
from unswayed.training.provenance import run_record
from unswayed.training.recipe import for_engine, prompt_of, with_own_prompt
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import Advantage
from unswayed.training.rollout_checks import check_heads
from unswayed.training.sampling import Split, check_step
from unswayed.training.table import ENGINES, OBJECTIVES
from unswayed.training.weight_files import check_weight_files


def plan_training(
    objective: str,
    items: Sequence[Item],
    *,
    model: str,
    recipe: Recipe,
    consistency: str | None = None,
    advantage: Advantage | None = None,
    engine: str = "trl",
    digest: bool = True,
) -> Plan:
    """Check everything that can be checked without loading weights, on the data itself.

    Versions and hooks of trl, vLLM if it samples, loggers, GPUs, tokenizer, chat template, labels,
    gold, whole groups, prompt lengths, the model's architecture, context, weight files and adapter,
    whether a step's responses can be split, and what memory it needs.

    Args:
        objective: A registered objective, such as pa-grpo.
        items: Of one task; most objectives need gold: a right candidate, or the score of a level.
        model: Path or hub id of the model, with or without `hf/`.
        recipe: Every number.
        consistency: `--reward` of `rl`.
        advantage: `--advantage` of `rl`.
        engine: A registered engine.
        digest: Whether the files of the model are hashed; a plan that is only shown needs no hash.

    Raises:
        UsageError, ItemError, TemplateError: Anything that can be wrong.
    """
    chosen, runner = OBJECTIVES.load(objective), ENGINES.load(engine)
    recipe = for_engine(recipe, engine)
    settings = chosen.settings(recipe, consistency=consistency, advantage=advantage)
    checks.check_reward(objective, recipe, settings, consistency or advantage, chosen.sampled)
    runner.check(recipe, settings, chosen)
    sharding = runner.sharding(recipe, os.environ)
    base, folder, recipe, skeleton = _open_base(model, recipe, digest=digest)
    chat, groups, warnings = _read_data(items, recipe, chosen, folder)
    shape = shape_of(skeleton, recipe, sampled=chosen.sampled)
    checks.check_vocabulary(shape, chat, groups)
    split = Split(0, 0)
    if chosen.sampled:
        check_heads(recipe.rollout, shape.heads)
        split = runner.split(recipe, groups.n_presentations, sharding.processes)
    chosen.check(recipe, groups, settings)
    largest = chosen.largest_pass(recipe, groups, chat)
    checks.check_context(shape, groups, largest.response)
    steps_per_epoch = chosen.steps_per_epoch(recipe, groups)
    steps = recipe.optimiser.steps or math.ceil(steps_per_epoch * recipe.optimiser.epochs)
    demand = demand_of(shape, recipe, groups, sharding, largest=largest, sampled=chosen.sampled)
    return Plan(
        objective=objective,
        engine=engine,
        recipe=recipe,
        settings=settings,
        loss=chosen.loss(recipe, settings),
        sampled=chosen.sampled,
        base=base,
        folder=folder.path,
        prompt=prompt_of(recipe, folder.prompt),
        chat=chat,
        groups=groups,
        demand=demand,
        record=run_record(objective, engine, folder.name, recipe, settings, groups, sharding),
        split=split,
        steps_per_epoch=steps_per_epoch,
        steps=steps,
        warnings=(*warnings, *_remarks(recipe, demand, steps)),
    )


def _open_base(model: str, recipe: Recipe, *, digest: bool) -> tuple[str, ModelFolder, Recipe, Any]:
    """Return name and folder of the base, the recipe with its own prompt, and the base without weights."""
    base = _base_of(model)
    folder = locate(base, digest=digest)
    recipe = with_own_prompt(recipe, folder.prompt)
    skeleton = build_skeleton(folder.path)
    check_quantised(skeleton, recipe)
    check_weight_files(folder.path, skeleton)
    return base, folder, recipe, skeleton


def _read_data(
    items: Sequence[Item], recipe: Recipe, objective: Objective, folder: ModelFolder
) -> tuple[ChatTokens, Groups, tuple[str, ...]]:
    """Return the chats of the base, the items in the layouts that the objective compares, and remarks."""
    evaluation, prompts = (
        evaluation_items(items, recipe.data.evaluation),
        prompt_settings(recipe.prompt),
    )
    checks.check_task((*items, *evaluation), recipe)
    warnings = check_prompts((*items, *evaluation), prompts)
    chat = load_chat(
        folder.path,
        name=f"hf/{folder.name}",
        enable_thinking=recipe.chat.enable_thinking,
        prompt=_first_prompt(items, prompts),
    )
    groups = build_groups(
        items,
        recipe.data,
        recipe.prompt,
        seed=recipe.run.seed,
        count_tokens=lambda messages: len(chat.ids(messages)),
        layouts=objective.layouts,
        needs_gold=objective.needs_gold,
        evaluation=evaluation,
    )
    checks.check_labels(chat, groups)
    check_step(len(groups), recipe.optimiser.items_per_step)
    return chat, groups, tuple(warnings)


def evaluation_items(items: Sequence[Item], file: str | None) -> tuple[Item, ...]:
    """Return the items of an evaluation set; `ItemError` if some are among those to train on, by their texts."""
    if file is None:
        return ()
    evaluation = tuple(load_items(file).items)
    texts = set(map(content_of, items))
    both = [item for item in evaluation if content_of(item) in texts]
    if both:
        raise ItemError(
            f"{file}: {len(both)} of {plural(len(evaluation), 'item')} {agrees(len(both), 'is', 'are')} also "
            f"trained on, such as {both[0].id}. Remove them from the training items: unswayed filter "
            "--evaluation does."
        )
    return evaluation


def answers_with_label(items: Sequence[Item], *, model: str, recipe: Recipe) -> bool:
    """Return True if the prompt that a training would use asks for a label and nothing else."""
    own = with_own_prompt(recipe, locate(_base_of(model)).prompt)
    return _first_prompt(items, prompt_settings(own.prompt)).answer_only


def _first_prompt(items: Sequence[Item], prompts: PromptSettings) -> Rendered:
    """One of the run's prompts; items of one task and style are all asked for the same reply."""
    if not items:
        raise ItemError("nothing to train on: no items given. Give at least one.")
    return render(blind(items[0]), Ask(canonical(items[0].n)), prompts)


def _remarks(recipe: Recipe, demand: Demand, steps: int) -> Iterator[str]:
    """Warn about settings that are valid but probably unintended."""
    if not estimate_memory(demand).fits:
        yield f"memory: {advice(demand)}"
    largest = demand.shape.largest_rank
    if recipe.lora is not None and recipe.lora.rank > largest:
        yield (
            f"lora.rank {recipe.lora.rank} is above {largest}, the rank of the largest adapted "
            "layer: a smaller adapter can do the same."
        )
    if recipe.optimiser.warmup_steps >= steps:
        yield (
            f"optimiser.warmup_steps {recipe.optimiser.warmup_steps} is not below the {steps} steps "
            "of the run: the learning rate never reaches its value. Lower the warm-up."
        )


def _base_of(model: str) -> str:
    """Return the model's path or hub id: what follows `hf/`, or the folder of a built-in judge."""
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
    if "+bits=" in base:
        raise UsageError(
            f"{model} has rounded weights, and training needs full ones. Remove +bits."
        )
    if "+dtype=" in base:
        raise UsageError(f"{model}: the recipe sets the number format of training. Remove +dtype.")
    if "+heads=" in base:
        raise UsageError(f"{model} has scaled heads. Remove +heads to train its base.")
    if "+lora=" in base:
        raise UsageError(
            f"{model} already has an adapter, and training needs a full model. Merge the adapter "
            "into its base (unswayed train merge), then train the merged model."
        )
    return base
