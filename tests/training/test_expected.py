"""The exact objective: its identity, its gradients, and the sampled one that it is the mean of."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.training import rewards
from unswayed.training.expected import distillation_loss, expected_reward
from unswayed.training.reward_settings import REWARDS, RewardSettings
from unswayed.training.rewards import Samples
from unswayed.training.rewards.blocks import elsewhere
from unswayed.training.targets import GoldNoise, gold_target, noise_of_gold, own_average

torch.set_num_threads(1)

WITH_EXPECTATION = sorted(
    name for name in REWARDS if REWARDS.load(name).expected and not REWARDS.load(name).pairs_only
)


@st.composite
def distributions(draw):
    """Probabilities of n candidates in P presentations that leave something for other tokens."""
    n, p = draw(st.integers(2, 5)), draw(st.integers(2, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    drawn = np.random.default_rng(seed).dirichlet(np.full(n + 1, 0.7), size=p)
    return drawn[:, :n]


def logits_of(p, rest):
    """Free logits whose softmax has `p` in front and one other token."""
    return torch.tensor(np.log(np.concatenate([p, rest], axis=-1))).requires_grad_()


def label_log_probs(logits):
    return torch.log_softmax(logits, -1)[..., :-1]


@given(distributions())
def test_agreement_is_sharpness_less_variance(p):
    presentations = len(p)
    pairs = [p[s] @ p[t] for s, t in itertools.permutations(range(presentations), 2)]
    mean = p.mean(axis=0)
    variance = ((p - mean) ** 2).sum(axis=1).mean()
    identity = mean @ mean - variance / (presentations - 1)
    assert np.mean(pairs) == pytest.approx(identity, abs=1e-12)
    assert (p * elsewhere(p)).sum(axis=1).mean() == pytest.approx(identity, abs=1e-12)


@settings(max_examples=50)
@given(distributions(), st.floats(0.1, 3.0))
def test_the_force_of_inv_is_that_of_less_variance(p, lam):
    presentations, n = p.shape
    logits = logits_of(p, 1 - p.sum(-1, keepdims=True) + 1e-9)
    right = np.zeros((1, n), dtype=bool)
    right[0, 0] = True
    # accuracy and format are there for "none" too: the difference is the consistency reward alone
    force = [
        torch.autograd.grad(
            expected_reward(
                label_log_probs(logits)[None], right, RewardSettings(consistency=name, lam=lam)
            ),
            logits,
        )[0]
        for name in ("inv", "none")
    ]
    now = label_log_probs(logits).exp()
    variance = ((now - now.mean(0)) ** 2).sum(1).mean()
    (wanted,) = torch.autograd.grad(variance, logits)
    ratio = lam * presentations / (presentations - 1)
    np.testing.assert_allclose(force[0] - force[1], -ratio * wanted, atol=1e-12)


SIZES = [(2, 2), (3, 2), (2, 3)]


@pytest.mark.parametrize(
    ("name", "presentations", "n"),
    [*((name, *size) for name in WITH_EXPECTATION for size in SIZES), ("con", 2, 3)],
)
def test_the_exact_gradient_is_the_mean_of_sampled_gradients(name, presentations, n):
    samples = 2
    rng = np.random.default_rng(presentations * 10 + n)
    p = rng.dirichlet(np.ones(n + 1), size=presentations)
    logits = logits_of(p[:, :n], p[:, n:])
    right = np.arange(n) == 1
    chosen = RewardSettings(consistency=name, lam=0.7)
    (exact,) = torch.autograd.grad(
        expected_reward(label_log_probs(logits)[None], right[None], chosen), logits
    )
    log_p = torch.log_softmax(logits, -1)
    weights = torch.zeros(presentations, n + 1, dtype=torch.float64)
    for outcome in itertools.product(range(n + 1), repeat=presentations * samples):
        tokens = np.array(outcome).reshape(presentations, samples)
        choices = np.where(tokens < n, tokens, -1)
        block = Samples(
            choices=choices,
            right=right,
            well_formed=choices >= 0,
            reasoning_chars=np.zeros_like(choices),
        )
        total = rewards.score(block, chosen).total
        likelihood = np.prod([p[t, token] for t in range(presentations) for token in tokens[t]])
        for t in range(presentations):
            for i in range(samples):
                weights[t, tokens[t, i]] += likelihood * total[t, i] / total.size
    # E[sum of r * grad log p] as the gradient of a weighted sum of log-probabilities
    (sampled,) = torch.autograd.grad((weights * log_p).sum(), logits)
    np.testing.assert_allclose(exact, sampled, atol=1e-12)


@given(distributions())
def test_without_bias_inv_pushes_nowhere_and_pair_sharpens(p):
    same = np.broadcast_to(p[:1], p.shape)
    right = np.zeros(p.shape[-1], dtype=bool)
    assert np.abs(REWARDS.load("inv").expectation(same, right)).max() < 1e-15
    pair = REWARDS.load("pair").expectation(same, right)
    np.testing.assert_allclose(pair, 2 * same - 1, atol=1e-12)


@pytest.mark.parametrize("name", WITH_EXPECTATION)
def test_expectations_equal_simulated_means(name):
    presentations, n, samples, groups = 5, 4, 8, 20_000
    rng = np.random.default_rng(11)
    p = rng.dirichlet(np.full(n + 1, 2.0), size=presentations)
    edges = p.cumsum(axis=-1)[:, None, :-1]
    drawn = (rng.random((groups, presentations, samples))[..., None] > edges).sum(axis=-1)
    choices = np.where(drawn < n, drawn, -1)
    right = np.arange(n) == 1
    values = REWARDS.load(name).sampled(choices, np.broadcast_to(right, (groups, n)))
    means = [
        [values[:, t][choices[:, t] == k].mean() for k in range(n)] for t in range(presentations)
    ]
    expected = REWARDS.load(name).expectation(p[:, :n], right)
    np.testing.assert_allclose(means, expected, atol=0.03)
    assert np.abs(means - expected).mean() < 0.01


@pytest.mark.parametrize("name", WITH_EXPECTATION)
def test_expectations_follow_a_renaming_of_the_candidates(name):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(5), size=(7, 4))[..., :4]
    right = rng.random((7, 4)) < 0.4
    order = rng.permutation(4)
    reward = REWARDS.load(name)
    found = reward.expectation(p[..., order], right[:, order])
    np.testing.assert_allclose(found, reward.expectation(p, right)[..., order], atol=1e-12)


def test_distillation_is_cross_entropy_to_one_target():
    log_p = torch.tensor([[[0.6, 0.3], [0.2, 0.7]]], dtype=torch.float64).log()
    target = torch.tensor([[0.25, 0.75]], dtype=torch.float64)
    by_hand = -(0.25 * np.log(0.6) + 0.75 * np.log(0.3) + 0.25 * np.log(0.2) + 0.75 * np.log(0.7))
    assert distillation_loss(log_p, target).item() == pytest.approx(by_hand / 2)


def test_additive_biases_cancel_in_the_mean_of_logits():
    rng = np.random.default_rng(0)
    content, slot = rng.normal(size=4), rng.normal(size=4) * 3
    rotations = [np.roll(np.arange(4), -shift) for shift in range(4)]
    shown = np.array([content[order] + slot for order in rotations])  # by position
    by_candidate = np.array(
        [row[np.argsort(order)] for row, order in zip(shown, rotations, strict=True)]
    )
    plain = np.exp(content) / np.exp(content).sum()
    np.testing.assert_allclose(own_average(by_candidate), plain, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.35])
@pytest.mark.parametrize("n", [2, 4])
def test_the_share_of_wrong_gold_is_recovered(epsilon, n):
    rng = np.random.default_rng(7)
    logits = rng.normal(size=(20_000, n)) * 2
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    wrong = rng.random(len(truth)) < epsilon
    gold = np.where(wrong, (truth + rng.integers(1, n, len(truth))) % n, truth)
    assert noise_of_gold(logits, gold) == GoldNoise(1.0, epsilon)


def test_doubtful_gold_is_weighed_against_the_average():
    found = gold_target(1, np.array([0.9, 0.1]), epsilon=0.2)
    np.testing.assert_allclose(found, [0.18 / 0.26, 0.08 / 0.26])  # 0.1 * 0.8 against 0.9 * 0.2
    found = gold_target(1, np.array([0.5, 0.5]), epsilon=0.2)
    np.testing.assert_allclose(found, [0.2, 0.8])
    sure = gold_target(1, np.array([1.0, 0.0]), epsilon=0.0)
    assert sure.tolist() == [0.0, 1.0]  # gold without noise stands against any average
