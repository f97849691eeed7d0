"""Loss of an arm on a batch of items: the sum of its terms.

Rewards, advantages, expectations and targets are the package's own (`unswayed.training.rewards`,
`unswayed.training.expected`, `unswayed.training.targets`), for a whole batch at once; the clipped
objective, the KL term (exact here, sampled in trl) and the entropy bonus are the paper's and belong
to every arm with a reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from arms import ARMS, Arm
from settings import Job
from supervised import supervised_loss
from torch import nn
from world import Pool, answer_log_probs, by_candidate, label_ids, label_log_probs, orders_of

from unswayed.model.decisions import UNPARSED
from unswayed.model.presentation import presentations
from unswayed.training.expected import distillation_loss, expected_reward
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rewards import Samples, score
from unswayed.training.targets import gold_target, noise_of_gold, own_average

CLIP, BETA, ENTROPY = 0.2, 1e-3, 1e-3

Loss = Callable[[np.ndarray], torch.Tensor]


def objective(core: nn.Module, base: nn.Module, pool: Pool, job: Job, device: torch.device) -> Loss:
    """The loss of a batch of items, by their numbers in the pool, in all their presentations.

    Args:
        core: The model that is trained.
        base: The untrained model: reference of the KL term, and what is averaged.
        pool: Training items.
        job: Arm, setting and seed.
        device: Where both models are.
    """
    arm = ARMS[job.arm]
    if arm.pif is not None:
        return supervised_loss(core, pool, job, arm.pif, device)
    targets = None if arm.target is None else targets_of(base, pool, arm)
    settings = _settings(job, arm)
    places = np.random.default_rng(40_000 + job.seed)

    def loss(batch: np.ndarray) -> torch.Tensor:
        items, shown = _rows(pool, batch, places if arm.pairs else None)
        prompts = torch.from_numpy(pool.prompts[items, shown]).to(device)
        log_p = answer_log_probs(core, prompts.flatten(0, 1)).unflatten(0, prompts.shape[:2])
        total = torch.zeros((), device=device)
        if arm.reward is not None:
            with torch.no_grad():
                reference = answer_log_probs(base, prompts.flatten(0, 1)).view_as(log_p)
            total = reward_loss(
                log_p, reference, pool, batch, settings, arm, n_samples=job.setting.samples
            )
        if targets is not None:
            target = torch.from_numpy(targets[items[:, 0]]).to(log_p)
            total = total + arm.weight * distillation_loss(
                _candidates(log_p, pool.orders[shown]), target
            )
        if arm.divergence:
            total = total + arm.divergence * _divergence(_candidates(log_p, pool.orders[shown]))
        return total

    return loss


def reward_loss(
    log_p: torch.Tensor,
    reference: torch.Tensor,
    pool: Pool,
    batch: np.ndarray,
    settings: RewardSettings,
    arm: Arm,
    *,
    n_samples: int,
) -> torch.Tensor:
    """Minus what is climbed, with the KL term and the entropy bonus.

    Args:
        log_p: Log-probability of every token as the answer, shape (items, P, vocabulary).
        reference: The same of the untrained model.
        pool: Training items.
        batch: Which of them.
        settings: Which reward.
        arm: Whether it is sampled, and whether right answers are paid for.
        n_samples: N.
    """
    if arm.advantage is None:
        climbed = _expected(log_p, pool, batch, settings, arm)
    else:
        climbed = _surrogate(log_p.flatten(0, 1), pool, batch, settings, n_samples)
    p = log_p.exp()
    divergence = (p * (log_p - reference)).sum(-1).mean()
    entropy = -(p * log_p).sum(-1).mean()
    return -climbed + BETA * divergence - ENTROPY * entropy


def targets_of(base: nn.Module, pool: Pool, arm: Arm) -> np.ndarray:
    """Return the targets of every training item's answers, shape (items, n)."""
    n = pool.orders.shape[1]
    if arm.target == "gold":
        return np.eye(n)[pool.gold]
    shown = presentations("swap" if n == 2 else "cyclic", n)
    orders = orders_of(shown)
    log_p = by_candidate(label_log_probs(base, pool.items, shown), orders).double().numpy()
    if arm.target == "own":
        return own_average(log_p, temperature=arm.tau)
    noise = noise_of_gold(log_p.mean(axis=1), pool.gold.tolist())
    own = own_average(log_p, temperature=noise.temperature)
    pairs = zip(pool.gold.tolist(), own, strict=True)
    return np.stack([gold_target(gold, prior, epsilon=noise.wrong_gold) for gold, prior in pairs])


def _settings(job: Job, arm: Arm) -> RewardSettings:
    return RewardSettings(
        consistency=arm.reward,
        advantage=arm.advantage,
        lam=job.setting.lam if arm.lam is None else arm.lam,
    )


def _rows(
    pool: Pool, batch: np.ndarray, places: np.random.Generator | None
) -> tuple[np.ndarray, np.ndarray]:
    """Items and presentations of a batch, both (rows, presentations): groups, or random pairs."""
    items, per_item = pool.prompts.shape[:2]
    if places is None:
        shown = np.arange(per_item)
        return np.broadcast_arrays(batch[:, None], shown[None])
    rows = len(batch) * per_item
    return (
        places.integers(0, items, (rows, 1)),
        places.integers(0, per_item, (rows, 1)),
    )


def _candidates(log_p: torch.Tensor, orders: np.ndarray) -> torch.Tensor:
    """Log-probability of each candidate's label, shape (items, P, n).

    Args:
        log_p: As in `reward_loss`.
        orders: Candidate at each label, shape (items, P, n).
    """
    labels = torch.from_numpy(label_ids(orders.shape[-1])).to(log_p.device)
    return by_candidate(log_p[..., labels], orders)


def _expected(
    log_p: torch.Tensor, pool: Pool, batch: np.ndarray, settings: RewardSettings, arm: Arm
) -> torch.Tensor:
    """J; without what right answers are paid, where the arm says so: J is linear in the reward."""
    candidates = _candidates(log_p, np.broadcast_to(pool.orders, (len(batch), *pool.orders.shape)))
    right = np.eye(pool.orders.shape[1], dtype=bool)[pool.gold[batch]]
    whole = expected_reward(candidates, right, settings)
    if arm.paid:
        return whole
    return whole - expected_reward(candidates, right, replace(settings, consistency="none"))


def _divergence(candidates: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence of the presentations' distributions over the candidates."""
    log_p = candidates.log_softmax(-1)
    p = log_p.exp()
    mean = p.mean(dim=1, keepdim=True).clamp(min=1e-9)
    return (p * (log_p - mean.log())).sum(-1).mean()


def _surrogate(
    log_p: torch.Tensor, pool: Pool, batch: np.ndarray, settings: RewardSettings, n_samples: int
) -> torch.Tensor:
    """The clipped objective of sampled answers, from log-probabilities of shape (items * P, V)."""
    with torch.no_grad():
        tokens = torch.multinomial(log_p.exp(), n_samples, replacement=True)
    answers = tokens.view(len(batch), -1, n_samples).cpu().numpy()
    advantages = torch.from_numpy(_advantages(answers, pool, batch, settings))
    weight = advantages.to(log_p).view(-1, n_samples)
    chosen = log_p.gather(1, tokens)
    ratio = (chosen - chosen.detach()).exp()
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    return torch.minimum(ratio * weight, clipped * weight).mean()


def _advantages(
    answers: np.ndarray, pool: Pool, batch: np.ndarray, settings: RewardSettings
) -> np.ndarray:
    """Advantages of sampled answer tokens, shape (items, P, N)."""
    n = pool.orders.shape[1]
    label = np.full(answers.max() + 1, UNPARSED)
    ids = label_ids(n)
    present = ids < len(label)
    label[ids[present]] = np.arange(n)[present]
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
