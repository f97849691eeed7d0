"""Reward of one response, in verl's reward workers. Registers nothing."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from unswayed.model.items import Task, decode_item
from unswayed.model.presentation import Presentation
from unswayed.training.recipe_parts import PromptTable
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rewards import SampleKey
from unswayed.training.scoring import SampleReader, score_rows


class VerlRun(msgspec.Struct):
    """Settings of a run that workers and driver read, as JSON."""

    prompt: PromptTable
    answer_only: bool
    task: Task
    presentations: int  # P
    reward: RewardSettings


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **_: Any
) -> dict[str, float]:
    """Return the reward of a response without its consistency, and its features for the driver.

    verl finds the function by name. `extra_info` is that of `epochs.rows_of`.
    """
    read, settings = _run(extra_info["run"])
    shown = Presentation(*(tuple(map(int, extra_info[name])) for name in ("order", "labels")))
    symbols, gold = tuple(extra_info["symbols"]), tuple(extra_info["gold"])
    item = decode_item(extra_info["item"])
    features = read.features(shown, symbols, gold, solution_str, item)
    alone = score_rows([SampleKey("", 0, 0)], [features], settings, (1, 1))
    return {"score": float(alone.total[0]), **features._asdict()}


@functools.cache
def _run(text: str) -> tuple[SampleReader, RewardSettings]:
    run = msgspec.json.decode(text, type=VerlRun)
    read = SampleReader.of(
        run.prompt, answer_only=run.answer_only, task=run.task, response=run.reward.response
    )
    return read, dataclasses.replace(run.reward, consistency="none")
