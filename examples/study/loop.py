"""The study's own training loop for one-token answers.

Not the trainer of `unswayed train`: here the answer's distribution is computed once per prompt
instead of once per sample, so a hundred steps take seconds. What is minimised is in `objective.py`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from objective import objective
from settings import Job
from torch import nn
from world import Pool

WEIGHT_DECAY, MAX_NORM = 0.01, 1.0


class Seconds(NamedTuple):
    """CPU seconds of a training run.

    Attributes:
        before: Before the first step: the base's average of every item, examples of PIF.
        steps: Of the steps.
    """

    before: float
    steps: float


def train_arm(
    base: nn.Module,
    pool: Pool,
    job: Job,
    *,
    at_steps: Mapping[int, Callable[[nn.Module], None]],
) -> Seconds:
    """Train a copy of the base model.

    Args:
        base: The untrained model, also the reference of the KL term.
        pool: Training items.
        job: Setting, arm and seed.
        at_steps: Called with the model after these steps.
    """
    setting = job.setting
    torch.manual_seed(job.seed)
    rng = np.random.default_rng(30_000 + job.seed)
    device = next(base.parameters()).device
    policy, core = _policy(base, setting.lora)
    trained = [p for p in policy.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=setting.learning_rate, weight_decay=WEIGHT_DECAY)
    began = time.process_time()
    batch_loss = objective(core, base, pool, job, device)
    before = time.process_time() - began
    order: list[int] = []
    seconds = 0.0
    for step in range(1, setting.steps + 1):
        began = time.process_time()
        if len(order) < setting.items_per_step:
            order = rng.permutation(len(pool.gold)).tolist()
        batch = np.array(order[: setting.items_per_step])
        order = order[setting.items_per_step :]
        policy.train()
        loss = batch_loss(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, MAX_NORM)
        optimizer.step()
        seconds += time.process_time() - began
        if step in at_steps:
            at_steps[step](core)
    return Seconds(before, seconds)


def _policy(base: nn.Module, rank: int) -> tuple[nn.Module, nn.Module]:
    """A trainable copy, and the plain model inside it."""
    policy = copy.deepcopy(base).requires_grad_(rank == 0)
    if rank == 0:
        return policy, policy
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(
        policy, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    )
    return adapted, adapted.base_model.model
