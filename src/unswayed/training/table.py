"""Objectives and engines; one line registers each. Nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unswayed.base.registry import Registry

if TYPE_CHECKING:
    from unswayed.training.protocol import Engine, Objective

OBJECTIVES: Registry[Objective] = Registry(
    "objective",
    {
        "distill": "unswayed.training.own_labels:DISTILL",
        "grpo": "unswayed.training.pa_grpo:GRPO",
        "pa-grpo": "unswayed.training.pa_grpo:PA_GRPO",
        "pif": "unswayed.training.pif:PIF",
        "rl": "unswayed.training.pa_grpo:RL",
        "rl-exact": "unswayed.training.own_labels:RL_EXACT",
        "sft": "unswayed.training.own_labels:SFT",
    },
)

ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "trl": "unswayed.training.trl_engine:TRL",
        "verl": "unswayed.training.verl.engine:VERL",
    },
)
