"""A training run checked in full before any weights are loaded: what `--dry-run` shows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unswayed.backends import BACKENDS
from unswayed.backends.model_folders import ModelFolder, locate
from unswayed.errors import UnknownNameError, UsageError
from unswayed.items import Item
from unswayed.prompts import check_prompts, prompt_fingerprint
from unswayed.registry import did_you_mean, require
from unswayed.rewards import Advantage, Consistency, RewardSettings
from unswayed.training import checks
from unswayed.training.data import Groups, build_groups, prompt_settings
from unswayed.training.provenance import Record, run_record
from unswayed.training.recipe import KINDS, Kind, Recipe, load_recipe, reward_settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Plan", "describe", "plan_training"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A training run that has been checked, before any weights are loaded (`--dry-run`).

    Attributes:
        kind, recipe, settings: What is trained and how; settings is None for pif.
        model: The model's name with its revision or fingerprint, without `hf/`.
        base: The model as it was asked for, without `hf/`.
        folder: Where its files lie.
        groups: The data.
        record: What is written beside every checkpoint.
        steps_per_epoch, steps: Optimiser steps.
        responses_per_step: Sampled responses per step, over all processes; 0 for pif.
        example: The first rendered chat, as the model reads it.
        warnings: What to know about the prompts, in sentences.
    """

    kind: Kind
    model: str
    base: str
    folder: Path
    recipe: Recipe
    settings: RewardSettings | None
    groups: Groups
    record: Record
    steps_per_epoch: int
    steps: int
    responses_per_step: int
    example: str
    warnings: tuple[str, ...]


def plan_training(
    kind: Kind,
    items: Sequence[Item],
    *,
    model: str,
    recipe: Recipe | str | Path,
    consistency: Consistency | None = None,
    advantage: Advantage | None = None,
    engine: str = "trl",
) -> Plan:
    """Check everything that can be checked without loading weights, on the data itself.

    Versions and hooks of trl, tokenizer, chat template, labels, gold, whole groups, prompt
    lengths, the model's context, and whether a step's responses can be split. Arguments and
    errors are those of `train`.
    """
    if kind not in KINDS:
        raise UnknownNameError(f"unknown training {kind!r}. {did_you_mean(kind, KINDS)}")
    if engine != "trl":
        raise UsageError(f"engine {engine!r} is not available; use trl.")
    checks.check_trl()
    made = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    if "tensorboard" in made.run.loggers:
        require("tensorboard", extra="train", feature='run.loggers = ["tensorboard"]')
    settings = _settings(kind, made, consistency, advantage)
    base = _base_of(model)
    found = locate(base)
    if found.template is not None and made.prompt.template is None:
        prompt = msgspec.structs.replace(made.prompt, template=str(found.template))
        made = msgspec.structs.replace(made, prompt=prompt)
    tokenizer = checks.load_tokenizer(str(found.path))
    options = checks.chat_options(made)
    _check_task(items, made)
    warnings = check_prompts(items, prompt_settings(made.prompt))
    groups = build_groups(
        items,
        made.data,
        made.prompt,
        seed=made.run.seed,
        count_tokens=checks.token_counter(tokenizer, options),
    )
    checks.check_labels(tokenizer, groups, options)
    checks.check_context(str(found.path), groups, groups.rows[0].max_tokens)
    plan = _plan(kind, base, found, made, settings, groups, tokenizer)
    return dataclasses.replace(plan, warnings=tuple(warnings))


def _settings(
    kind: Kind, recipe: Recipe, consistency: Consistency | None, advantage: Advantage | None
) -> RewardSettings | None:
    if kind != "pif":
        return reward_settings(kind, recipe, consistency=consistency, advantage=advantage)
    if consistency is not None or advantage is not None:
        raise UsageError("train pif has no reward and no advantage; use train rl for those.")
    return None


def _base_of(model: str) -> str:
    """The model's path or hub id: what follows `hf/`, or the folder of the built-in judge.

    Raises:
        UsageError: If it is a model behind an API, or has an adapter already.
    """
    provider, slash, rest = model.partition("/")
    if model == "tiny/judge":
        from unswayed.tiny.backend import WEIGHTS

        return str(WEIGHTS)
    base = rest if slash and provider == "hf" else model
    if provider in BACKENDS and provider != "hf" and not Path(model).exists():
        raise UsageError(
            f"{model} cannot be trained: only open weights can. Give hf/<path or id>, a path, or "
            "tiny/judge."
        )
    if "+lora=" in base:
        raise UsageError(
            f"{model} has an adapter already; training starts from a whole model. Merge the "
            "adapter into its base first (peft: merge_and_unload) and train the result."
        )
    return base


def _plan(
    kind: Kind,
    base: str,
    found: ModelFolder,
    recipe: Recipe,
    settings: RewardSettings | None,
    groups: Groups,
    tokenizer: PreTrainedTokenizerBase,
) -> Plan:
    from unswayed.training.trl_engine import process_count, split_batch
    from unswayed.training.trl_hooks import GroupSampler

    processes = process_count()
    per_step = recipe.optimiser.items_per_step
    responses = 0
    if settings is not None:
        split_batch(recipe, groups.n_presentations, processes)
        responses = per_step * groups.n_presentations * recipe.rollout.samples
        _check_reward(settings, groups, recipe)
    GroupSampler(  # refuses data that do not fill one step
        n_groups=len(groups),
        n_presentations=groups.n_presentations,
        n_samples=recipe.rollout.samples,
        groups_per_batch=per_step,
        repeats=1,
        shuffle=False,
        seed=0,
    )
    if settings is None:
        from unswayed.training import pif

        steps_per_epoch = pif.steps_per_epoch(recipe, groups)
    else:
        steps_per_epoch = len(groups) // per_step * recipe.optimiser.inner_updates
    steps = recipe.optimiser.steps or math.ceil(steps_per_epoch * recipe.optimiser.epochs)
    record = run_record(
        kind,
        found.name,
        recipe,
        settings,
        groups,
        prompt_fingerprint=prompt_fingerprint(prompt_settings(recipe.prompt)),
        n_processes=processes,
    )
    ids = checks.chat_ids(tokenizer, groups.rows[0].messages, checks.chat_options(recipe))
    return Plan(
        kind=kind,
        model=found.name,
        base=base,
        folder=found.path,
        recipe=recipe,
        settings=settings,
        groups=groups,
        record=record,
        steps_per_epoch=steps_per_epoch,
        steps=steps,
        responses_per_step=responses,
        example=str(tokenizer.decode(ids)),
        warnings=(),
    )


def _check_reward(settings: RewardSettings, groups: Groups, recipe: Recipe) -> None:
    """Score a made-up batch of the first item, so that a bad combination fails here."""
    from unswayed.training.trl_engine import scorer_of

    scorer = scorer_of(groups, settings, recipe)
    rows = [row for row in range(groups.n_presentations) for _ in range(recipe.rollout.samples)]
    texts = [groups.rows[row].symbols[0] for row in rows]
    scorer.rewards(scorer.features(rows, texts))


def _check_task(items: Sequence[Item], recipe: Recipe) -> None:
    for item in items:
        if item.task is not recipe.task:
            raise UsageError(
                f"{item.id}: recipe {recipe.name} is for task {recipe.task.value}, the item is "
                f"{item.task.value}. Choose a recipe for {item.task.value}."
            )


def describe(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, for `--dry-run --json`."""
    return {
        **plan.record,
        "steps_per_epoch": plan.steps_per_epoch,
        "steps": plan.steps,
        "responses_per_step": plan.responses_per_step,
        "counts": dataclasses.asdict(plan.groups.counts),
        "example": plan.example,
        "warnings": list(plan.warnings),
    }
