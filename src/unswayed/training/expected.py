"""Losses of one-token answers: expected rewards instead of averages over samples.

Where the answer is one label, its probability in every presentation is known from one forward pass,
and so is what a sample of it is worth on average: nothing has to be sampled. The gradient is that of
the sampled objective without its noise, before advantages are divided by a standard deviation.

    J = mean over presentations t of  sum_k p_t(k) R_t(k) + (1 - sum_k p_t(k)) R_unparsed

R is a constant of the gradient, as a sampled reward is; 1 - sum_k p_t(k) is the probability of
anything but a label. KL term and entropy bonus are those of the answer as its reader sees it: the
labels, and everything else as one more outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unswayed.training.reward_settings import REWARDS, RewardSettings
from unswayed.training.rewards import BoolArray, FloatArray

if TYPE_CHECKING:
    import torch


def reward_of_answers(
    p: FloatArray, right: BoolArray, settings: RewardSettings
) -> tuple[FloatArray, float]:
    """R of each candidate, shape (..., P, n) as `p`, and R of an unread answer.

    A label alone is well formed and has no reasoning.
    """
    consistency = REWARDS.load(settings.consistency or "con")
    size = settings.accuracy_size
    own = np.where(right, size, -size)[..., None, :] + settings.format_size
    unread = -size - settings.format_size - settings.length_size
    return (
        own + settings.lam * consistency.expectation(p, right),
        unread + settings.lam * consistency.unparsed,
    )


def expected_reward(
    log_p: torch.Tensor, right: BoolArray, settings: RewardSettings
) -> torch.Tensor:
    """J, averaged over items: what a policy gradient climbs.

    `log_p` is the log-probability of each candidate's label among all tokens, shape (items, P, n);
    `right` marks the right candidates, shape (items, n).
    """
    import torch

    p = log_p.exp()
    values = p.detach().to("cpu", torch.float64).numpy()
    worth, unread = reward_of_answers(values, right, settings)
    weights = torch.from_numpy(worth).to(p)
    expectation: torch.Tensor = (p * weights).sum(-1) + (1.0 - p.sum(-1)) * unread
    return expectation.mean()


def distillation_loss(log_p: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of every presentation to one target per item, shape (items, n)."""
    return -(target[..., None, :] * log_p).sum(-1).mean()


def variance_over_presentations(log_p: torch.Tensor) -> torch.Tensor:
    """T/(T-1) Var of the candidates' probabilities, summed over candidates, averaged over items.

    Its gradient is minus that of the expected reward `inv`. T is at least two.
    """
    return log_p.exp().var(dim=-2, correction=1).sum(-1).mean()


def regulariser(
    log_p: torch.Tensor, base: torch.Tensor | None, *, beta: float, entropy: float
) -> torch.Tensor:
    """beta * KL(answer now || answer before) - entropy * H(answer now); no KL term without a base."""
    now = _with_rest(log_p)
    p = now.exp()
    total: torch.Tensor = entropy * (p * now).sum(-1).mean()
    if base is not None:
        total = total + beta * (p * (now - _with_rest(base))).sum(-1).mean()
    return total


def _with_rest(log_p: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities with that of everything but the labels behind them."""
    import torch

    rest = (1.0 - log_p.exp().sum(-1, keepdim=True)).clamp(min=1e-7)
    return torch.cat([log_p, rest.log()], dim=-1)
