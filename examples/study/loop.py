"""The study's own training loop for one-token answers.

Not the trainer of `unswayed train`: here the answer's distribution is
computed once per prompt instead of once per sample, so a hundred steps take seconds. Rewards and
advantages are the package's own (`unswayed.rewards`), for a whole batch at once; the clipped
objective, the KL term (exact here, sampled in trl) and the entropy bonus are the paper's.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from arms import REWARDED, Job
from supervised import supervised_loss
from torch import nn
from world import Pool, answer_log_probs, label_ids

from unswayed.decisions import UNPARSED
from unswayed.reward_settings import RewardSettings
from unswayed.rewards import Samples, score

__all__ = ["train_arm"]

CLIP, BETA, ENTROPY = 0.2, 1e-3, 1e-3
WEIGHT_DECAY, MAX_NORM = 0.01, 1.0


def train_arm(
    base: nn.Module,
    pool: Pool,
    job: Job,
    *,
    at_steps: Mapping[int, Callable[[nn.Module], None]],
) -> float:
    """Train a copy of the base model.

    Args:
        base: The untrained model, also the reference of the KL term.
        pool: Training items.
        job: Setting, arm and seed.
        at_steps: Called with the model after these steps.

    Returns:
        CPU seconds of the steps.
    """
    setting = job.setting
    torch.manual_seed(job.seed)
    rng = np.random.default_rng(30_000 + job.seed)
    device = next(base.parameters()).device
    policy, core = _policy(base, setting.lora)
    trained = [p for p in policy.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=setting.learning_rate, weight_decay=WEIGHT_DECAY)
    batch_loss = (
        functools.partial(_rewarded_loss, core, base, pool, job, device)
        if job.arm in REWARDED
        else supervised_loss(core, pool, job, device)
    )
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
    return seconds


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


def _rewarded_loss(
    core: nn.Module,
    base: nn.Module,
    pool: Pool,
    job: Job,
    device: torch.device,
    batch: np.ndarray,
) -> torch.Tensor:
    consistency, advantage = REWARDED[job.arm]
    settings = RewardSettings(consistency=consistency, advantage=advantage, lam=job.setting.lam)
    return _loss(core, base, pool, batch, settings, job.setting.samples, device)


def _loss(
    core: nn.Module,
    base: nn.Module,
    pool: Pool,
    batch: np.ndarray,
    settings: RewardSettings,
    n_samples: int,
    device: torch.device,
) -> torch.Tensor:
    prompts = torch.from_numpy(pool.prompts[batch]).to(device)
    n_items, n_presentations, length = prompts.shape
    log_p = answer_log_probs(core, prompts.view(-1, length))
    with torch.no_grad():
        reference = answer_log_probs(base, prompts.view(-1, length))
        tokens = torch.multinomial(log_p.exp(), n_samples, replacement=True)
    answers = tokens.view(n_items, n_presentations, n_samples).cpu().numpy()
    advantages = torch.from_numpy(_advantages(answers, pool, batch, settings))
    weight = advantages.to(log_p).view(-1, n_samples)
    chosen = log_p.gather(1, tokens)
    ratio = (chosen - chosen.detach()).exp()
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    surrogate = torch.minimum(ratio * weight, clipped * weight).mean()
    p = log_p.exp()
    divergence = (p * (log_p - reference)).sum(1).mean()
    entropy = -(p * log_p).sum(1).mean()
    return -surrogate + BETA * divergence - ENTROPY * entropy


def _advantages(
    answers: np.ndarray, pool: Pool, batch: np.ndarray, settings: RewardSettings
) -> np.ndarray:
    """Advantages of sampled answer tokens, shape (items, P, N)."""
    n = pool.orders.shape[1]
    label = np.full(answers.max() + 1, UNPARSED)
    ids = label_ids(n)
    known = ids[ids < len(label)]
    label[known] = np.arange(n)[ids < len(label)]
    labels = label[answers]
    presentation = np.arange(pool.orders.shape[0])[None, :, None]
    choices = np.where(labels >= 0, pool.orders[presentation, np.maximum(labels, 0)], UNPARSED)
    samples = Samples(
        choices=choices,
        right=np.eye(n, dtype=bool)[pool.gold[batch]],
        well_formed=labels >= 0,
        reasoning_chars=np.zeros_like(choices),
    )
    return score(samples, settings).advantages
