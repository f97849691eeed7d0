"""Record of a training run, and the fields that make it the same run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from unswayed.backends.model_folders import OPEN
from unswayed.base.version import versions_of
from unswayed.model.items import Task, fingerprint
from unswayed.prompts import prompt_fingerprint
from unswayed.training.groups import Groups, prompt_settings
from unswayed.training.processes import Sharding
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import RewardSettings

_PACKAGES: Final = "unswayed torch transformers trl peft accelerate datasets numpy vllm verl ray"
_RUNS_ON: Final = frozenset(
    {
        "recipe.name",
        "recipe.model",
        "recipe.rollout.gpu_memory",
        "recipe.rollout.server_timeout",
        "recipe.rollout.server_url",
        "recipe.rollout.sleep",
        "recipe.rollout.tensor_parallel",
    }
)
"""Fields that change nothing that is learned: names, and where responses are sampled."""
_ADDED: Final[Mapping[str, object]] = {
    key: value
    for key, value in Recipe(name="", task=Task.PAIRWISE).identity().items()
    if key.startswith("target.")
    or key in ("data.layouts", "reward.accuracy_size", "reward.response", "reward.response_size")
}
"""Fields that records of earlier versions lack; what they trained was what the defaults say."""
_GROWS: Final = ("optimiser.steps", "optimiser.epochs")
"""What may change in a resumed run, if the learning rate is constant: how long it goes on."""

Record = Mapping[str, Any]


def run_record(
    objective: str,
    engine: str,
    model: str,
    recipe: Recipe,
    settings: RewardSettings | None,
    groups: Groups,
    sharding: Sharding,
) -> Record:
    """Everything that decides what a run learns, and what it ran on."""
    return {
        "kind": objective,
        "engine": engine,
        "model": model,
        "recipe_name": recipe.name,
        "recipe_fingerprint": recipe.fingerprint(),
        "recipe": recipe.identity(),
        "reward": None if settings is None else settings.record(),
        "presentations": groups.n_presentations,
        "candidates": groups.numbers[0] if len(groups.numbers) == 1 else list(groups.numbers),
        "samples": recipe.rollout.samples,
        "data": {
            "fingerprint": groups.fingerprint,
            "trained": fingerprint(groups.items),
            "evaluation": recipe.data.evaluation and fingerprint(groups.held_out),
            **dataclasses.asdict(groups.counts),
        },
        "prompt_fingerprint": prompt_fingerprint(prompt_settings(recipe.prompt)),
        "processes": sharding.processes,
        "packages": versions_of(tuple(_PACKAGES.split())),
    }


def differing_fields(old: Record, new: Record) -> dict[str, tuple[object, object]]:
    """Return the fields in which two runs differ that may not differ in one run, with both values."""
    before, now = _comparable(old), _comparable(new)
    if before["data.trained"] == now["data.trained"]:
        ignored = {*_RUNS_ON, "data.fingerprint", "recipe.data.held_out"}
    else:
        ignored = {*_RUNS_ON, "data.trained"}
    if str(new.get("model")).endswith(OPEN):
        ignored.add("model")
    may_grow = now.get("recipe.optimiser.schedule") == "constant"
    return {
        key: (before.get(key), now.get(key))
        for key in {**before, **now}
        if key not in ignored
        and before.get(key) != now.get(key)
        and not (may_grow and key.removeprefix("recipe.") in _GROWS)
    }


def _comparable(record: Record) -> dict[str, object]:
    flat: dict[str, object] = {
        key: record.get(key)
        for key in ("kind", "presentations", "candidates", "prompt_fingerprint")
    }
    flat["engine"] = record.get("engine", "trl")  # the only one of records that name none
    flat["model"] = str(record.get("model")).rpartition("@")[2]  # what it is, not where it lies
    data = _table(record, "data")
    flat["data.fingerprint"] = data.get("fingerprint")
    flat["data.trained"] = data.get("trained") or data.get("fingerprint")
    recipe, reward = _table(record, "recipe"), _table(record, "reward")
    rewards = {k.removeprefix("reward."): v for k, v in _ADDED.items() if k.startswith("reward.")}
    for table, fields in (
        ("recipe", {**_ADDED, **recipe} if recipe else recipe),
        ("reward", {**rewards, **reward} if reward else reward),
    ):
        for key, value in fields.items():
            flat[f"{table}.{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def _table(record: Record, name: str) -> Mapping[str, Any]:
    table = record.get(name)
    return table if isinstance(table, Mapping) else {}  # also of a damaged record
