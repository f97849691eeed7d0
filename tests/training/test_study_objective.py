"""What the arms of the study minimise, from the package's own rewards, expectations and targets."""

import copy
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from studied import loss_of, pool_of, setting_of

from unswayed.training.reward_settings import RewardSettings


def test_a_step_without_advantages_moves_to_the_reference(study, base):
    # With zero advantages the loss is beta * KL - entropy bonus: at the reference, KL is 0.
    setting = setting_of(study, "judge-noisy")
    pool = pool_of(study, base, setting)
    batch = np.arange(4)
    still = RewardSettings(delta=100.0)
    prompts = torch.from_numpy(pool.prompts[batch].reshape(8, -1))
    log_p = study["world"].answer_log_probs(base, prompts).view(4, 2, -1)
    arm = study["arms"].ARMS["PA-GRPO"]
    loss = study["objective"].reward_loss(log_p, log_p, pool, batch, still, arm, n_samples=8)
    entropy = -(log_p.exp() * log_p).sum(-1).mean().item()
    assert loss.item() == pytest.approx(-1e-3 * entropy, rel=1e-4)


@pytest.mark.parametrize("name", ["judge-noisy", "mcq-noisy"])
def test_the_unpaid_invariance_reduces_variance_over_orders(study, base, name):
    setting = setting_of(study, name)
    pool = pool_of(study, base, setting)
    n, presented = pool.orders.shape[1], pool.orders.shape[0]
    labels = torch.from_numpy(study["world"].label_ids(n))
    tokens = torch.randn(3, presented, 200, generator=torch.Generator().manual_seed(1))

    def gradient(value):
        leaf = tokens.double().clone().requires_grad_(True)
        value(leaf.log_softmax(-1)).backward()
        return leaf.grad

    def unpaid(log_p):
        arm = study["arms"].ARMS["inv only"]
        settings = RewardSettings(consistency=arm.reward)
        return study["objective"]._expected(log_p, pool, np.arange(3), settings, arm)

    def variance(log_p):
        place = torch.from_numpy(pool.orders.argsort(axis=1)).expand(3, presented, n)
        p = log_p[..., labels].gather(-1, place).exp()
        over_presentations = ((p - p.mean(dim=1, keepdim=True)) ** 2).sum(-1).mean()
        return -presented / (presented - 1) * over_presentations

    torch.testing.assert_close(gradient(unpaid), gradient(variance), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["judge-noisy", "mcq-noisy"])
def test_arms_read_gold_exactly_where_they_say_so(study, base, name):
    setting = setting_of(study, name)
    pool = pool_of(study, base, setting, 60)
    other = (pool.gold + 1) % pool.orders.shape[1]
    items = tuple(
        msgspec.structs.replace(item, gold=int(gold))
        for item, gold in zip(pool.items, other, strict=True)
    )
    model = copy.deepcopy(base).requires_grad_(True)

    def gradient(some, arm):
        loss = loss_of(study, model, some, setting, arm)(np.arange(8))
        return torch.autograd.grad(loss, model.lm_head.weight)[0]

    for arm in setting.arms:
        with_gold = gradient(pool, arm)
        with_other = gradient(replace(pool, gold=other, items=items), arm)
        # where answers are not paid their reward is added and taken away again: rounding
        differs = (with_gold - with_other).norm() > 1e-4 * with_gold.norm()
        assert bool(differs) == study["arms"].ARMS[arm].reads_gold, arm


def test_random_pairs_are_as_many_rows_as_groups(study, base):
    setting = setting_of(study, "mcq-noisy")
    pool = pool_of(study, base, setting)
    items, shown = study["objective"]._rows(pool, np.arange(16), np.random.default_rng(0))
    assert items.shape == shown.shape == (16 * 5, 1)
    assert set(shown.ravel()) == set(range(5))


def test_the_weight_of_gold_follows_its_noise(study, base):
    """On clean gold the target is the gold itself; on flipped gold it is weighed."""
    arm = study["arms"].ARMS["weighed gold"]
    certain = {}
    for name in ("judge-clean", "judge-flips"):
        pool = pool_of(study, base, setting_of(study, name), 800)
        targets = study["objective"].targets_of(base, pool, arm)
        np.testing.assert_allclose(targets.sum(axis=1), 1)
        certain[name] = targets[np.arange(800), pool.gold].mean()
    assert certain["judge-clean"] > 0.99
    assert 0.55 < certain["judge-flips"] < 0.8


def test_the_learned_average_is_of_both_orders_in_all_layouts(study, base):
    arm = study["arms"].ARMS["distill"]
    targets = []
    for name in ("judge-noisy", "judge-layouts"):
        pool = pool_of(study, base, setting_of(study, name))
        targets.append(study["objective"].targets_of(base, pool, arm))
    assert pool.orders.shape == (4, 2)
    np.testing.assert_array_equal(*targets)


@pytest.mark.parametrize("name", ["judge-noisy", "mcq-noisy"])
def test_permuted_sft_is_the_cross_entropy_on_the_gold_label(study, base, name):
    world, setting = study["world"], setting_of(study, name)
    pool = pool_of(study, base, setting)
    batch = np.array([3, 0, 17])
    loss = loss_of(study, base, pool, setting, "permuted SFT")(batch)
    prompts = torch.from_numpy(pool.prompts[batch].reshape(-1, pool.prompts.shape[-1]))
    label = (pool.orders[None] == pool.gold[batch][:, None, None]).argmax(axis=2).ravel()
    gold = torch.from_numpy(world.label_ids(pool.orders.shape[1])[label])
    expected = torch.nn.functional.nll_loss(world.answer_log_probs(base, prompts), gold)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    taught = loss_of(study, base, pool, setting, "PIF")(batch)
    assert taught.item() > loss.item()  # content and negatives come on top


def test_gold_as_a_target_is_permuted_sft(study, base):
    arms, setting = study["arms"], setting_of(study, "mcq-noisy")
    pool = pool_of(study, base, setting)
    batch = np.array([3, 0, 17])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(arms.ARMS, "target alone", arms.Arm(target="gold"))
        target = loss_of(study, base, pool, setting, "target alone")(batch)
    supervised = loss_of(study, base, pool, setting, "permuted SFT")(batch)
    assert target.item() == pytest.approx(supervised.item(), rel=1e-5)


def test_supervised_arms_learn_the_noisy_gold_of_rewarded_ones(study, base):
    setting = setting_of(study, "judge-noisy")
    items, kept = study["world"].inconsistent_items(base, setting, 0, wanted=200)
    pool = study["world"].make_pool(items, kept, setting, 0)
    assert [item.gold for item in pool.items] == pool.gold.tolist()
    assert [item.gold for item in pool.items] != [item.gold for item in items]
