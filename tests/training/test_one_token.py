"""Answers of one label through the real trainers: probabilities, losses, gradients, whole steps."""

import inspect
import random

import numpy as np
import pytest
import torch
from small_models import COLOURS, save_word_model, small_plan

from unswayed.backends.local_passes import LabelScorer
from unswayed.model.items import Item, Task
from unswayed.training.expected import variance_over_presentations
from unswayed.training.one_token import Example, LabelPrompt, collate, label_log_probs
from unswayed.training.sampling import GroupSampler
from unswayed.training.table import OBJECTIVES

ALONE = {"optimiser_beta": "0", "optimiser_entropy": "0", "target_distill": "0"}
MIXED = {"data_orders": "random:2", "optimiser_items_per_step": "6"}


def mixed_items(count, *, seed=0):
    """Items of 2, 3 and 4 candidates whose prompts differ in length."""
    draw = random.Random(seed)
    items = []
    for number in range(count):
        n = 2 + number % 3
        question = " ".join(str(draw.randrange(10)) for _ in range(1 + number % 5))
        chosen = tuple(draw.sample(COLOURS, n))
        gold = draw.randrange(n)
        items.append(
            Item(id=f"m{number}", task=Task.MCQ, prompt=question, candidates=chosen, gold=gold)
        )
    return items


def built(model, out, *, objective="rl-exact", items=None, n=4, **changes):
    """The objective's own trainer, with weights."""
    plan = small_plan(model, objective, items or mixed_items(12), n, **changes)
    return OBJECTIVES.load(objective).build(plan, out)


def gradients(trainer, examples):
    """The loss and its gradient for some of a trainer's examples."""
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, trainer.data_collator(examples))
    loss.backward()
    return loss.item(), {
        name: weight.grad.clone()
        for name, weight in trainer.model.named_parameters()
        if weight.grad is not None
    }


def largest_difference(one, other):
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def largest(gradient):
    return max(value.abs().max().item() for value in gradient.values())


def log_p_of(trainer, examples):
    inputs = trainer.data_collator(examples)
    log_p = label_log_probs(trainer.model, inputs, takes=trainer.takes)
    return log_p.view(len(examples), -1, log_p.shape[-1])


# --- probabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("left_out", [(), ("logits_to_keep",)], ids=["last token", "all tokens"])
def test_a_trainer_computes_the_probabilities_of_an_audit(tmp_path, kind, left_out):
    model = save_word_model(tmp_path / "model", kind=kind, tied=kind == "qwen3")
    trainer = built(model, tmp_path / "out", **MIXED)
    examples = trainer.train_dataset
    lengths = {len(prompt.ids) for example in examples for prompt in example.prompts}
    assert len(lengths) > 3
    assert {len(example.right) for example in examples} == {2, 3, 4}
    inputs = trainer.data_collator(examples)
    assert (inputs["attention_mask"] == 0).any()
    takes = set(trainer.takes) - set(left_out)
    with torch.no_grad():
        log_p = label_log_probs(trainer.model, inputs, takes=takes).view(len(examples), 2, 4)
    for example, row in zip(examples, log_p.numpy(), strict=True):
        n = len(example.right)
        np.testing.assert_allclose(row[:, :n], example.base, atol=1e-5)  # asked of the hf backend
        assert (row[:, n:] < -1000).all()
        assert np.isfinite(row).all()


def test_spellings_of_a_label_are_summed_as_in_an_audit(word_model):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(word_model).eval()
    prompts = [[2, 12, 13, 3], [2, 14, 3], [2, 12, 15, 16, 17, 3]]
    labels = [((5, 20), (6,)), ((5,), (6, 21, 22)), ((5, 20), (6,), (7, 8))]
    examples = [
        Example([LabelPrompt(ids, spelled)], np.ones(len(spelled), dtype=bool))
        for ids, spelled in zip(prompts, labels, strict=True)
    ]
    inputs = collate(examples, pad=0)
    log_p = label_log_probs(model, inputs, takes={"input_ids", "attention_mask", "position_ids"})
    (asked,) = LabelScorer(model, pad=0).score(prompts, labels)
    for row, wanted in zip(log_p.detach().numpy(), asked, strict=True):
        np.testing.assert_allclose(row[: len(wanted)], wanted, atol=1e-5)
    log_p[:, :2].sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


@pytest.mark.parametrize("kind", ["bloom", "gpt2"])
def test_positions_are_told_to_models_that_ask_for_them(kind):
    from transformers import BloomConfig, BloomForCausalLM, GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 30, "n_layer": 2, "n_head": 2}
    torch.manual_seed(0)
    model = {
        "bloom": lambda: BloomForCausalLM(BloomConfig(hidden_size=16, **sizes)),
        "gpt2": lambda: GPT2LMHeadModel(GPT2Config(n_embd=16, n_positions=8, **sizes)),
    }[kind]().eval()
    takes = inspect.signature(model.forward).parameters
    assert ("position_ids" in takes) == (kind == "gpt2")
    prompts, labels = [[2, 12, 13, 14, 3], [2, 14, 3]], [((5,), (6,))] * 2
    examples = [Example([LabelPrompt(ids, labels[0])], np.ones(2, dtype=bool)) for ids in prompts]
    with torch.no_grad():
        log_p = label_log_probs(model, collate(examples, pad=0), takes=takes)
    (asked,) = LabelScorer(model, pad=0).score(prompts, labels)
    np.testing.assert_allclose(log_p, asked, atol=1e-5)


# --- the loss and its gradient ----------------------------------------------------------------


def test_the_gradient_of_inv_reduces_variance(word_model, tmp_path):
    changes = {**ALONE, **MIXED}
    with_lam = [
        gradients(trainer, trainer.train_dataset)[1]
        for lam in ("1.5", "0")
        for trainer in [built(word_model, tmp_path / lam, reward_lam=lam, **changes)]
    ]
    trainer = built(word_model, tmp_path / "plain", **changes)
    (1.5 * variance_over_presentations(log_p_of(trainer, trainer.train_dataset))).backward()
    less = {name: weight.grad for name, weight in trainer.model.named_parameters()}
    force = {name: with_lam[0][name] - with_lam[1][name] for name in less}
    assert largest(less) > 1e-2
    assert largest_difference(force, less) < 1e-5


def test_the_loss_is_that_of_its_formula(word_model, tmp_path):
    changes = {
        "optimiser_beta": "0.3",
        "optimiser_entropy": "0.2",
        "target_distill": "0.4",
        "target_temperature": "0.7",
        **MIXED,
    }
    trainer = built(word_model, tmp_path, **changes)
    with torch.no_grad():  # or the distance from the base would be 0
        for weight in trainer.model.parameters():
            weight += 0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    examples = trainer.train_dataset
    loss, _ = gradients(trainer, examples)
    log_p = log_p_of(trainer, examples).detach().double().numpy()
    expected = []
    for example, row in zip(examples, log_p, strict=True):
        n = len(example.right)
        own = np.exp(row[:, :n])
        mean = own.mean(0)
        worth = np.where(example.right, 1.3, -0.7) + 2 * ((mean * 2 - own) - own)
        gain = ((own * worth).sum(1) + (1 - own.sum(1)) * -1.4).mean()
        pull = -(example.target * row[:, :n]).sum(1).mean()
        now, then = (np.c_[part, 1 - part.sum(1)] for part in (own, np.exp(example.base)))
        distance = (now * np.log(now / then)).sum(1).mean()
        spread = -(now * np.log(now)).sum(1).mean()
        expected.append(-gain + 0.4 * pull + 0.3 * distance - 0.2 * spread)
    assert loss == pytest.approx(np.mean(expected), abs=1e-5)
    target = np.exp(examples[0].base.mean(0) / 0.7)  # two candidates: both orders were shown
    np.testing.assert_allclose(examples[0].target, target / target.sum(), atol=1e-12)


def test_sft_adds_the_variance_to_the_cross_entropy(word_model, tmp_path):
    trainer = built(word_model, tmp_path, objective="sft", target_invariance="0.6", **MIXED)
    examples = trainer.train_dataset
    loss, _ = gradients(trainer, examples)
    expected = []
    for example, row in zip(examples, log_p_of(trainer, examples).detach().numpy(), strict=True):
        own = row[:, : len(example.right)]
        apart = -(example.right / example.right.sum() * own).sum(1).mean()
        expected.append(apart + 0.6 * np.exp(own).var(0, ddof=1).sum())
    assert loss == pytest.approx(np.mean(expected), abs=1e-5)


@pytest.mark.parametrize("objective", ["rl-exact", "distill", "sft"])
def test_items_of_other_sizes_change_nothing_for_an_item(word_model, tmp_path, objective):
    extra = {"target_invariance": "0.5"} if objective == "sft" else {}
    trainer = built(word_model, tmp_path, objective=objective, **MIXED, **extra)
    examples = trainer.train_dataset
    together, _ = gradients(trainer, examples)
    alone = [gradients(trainer, [example])[0] for example in examples]
    assert together == pytest.approx(np.mean(alone), abs=1e-5)


def test_what_is_not_weighed_is_not_asked(word_model, tmp_path):
    for name, changes in {"nothing": ALONE, "averages": {**ALONE, "target_distill": "1"}}.items():
        trainer = built(word_model, tmp_path / name, **MIXED, **changes)
        assert all(example.base is None for example in trainer.train_dataset)
        assert (tmp_path / name / "base_answers").exists() == (name == "averages")
        assert np.isfinite(gradients(trainer, trainer.train_dataset)[0])


# --- whole steps ------------------------------------------------------------------------------


def weights_of(trainer):
    return {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}


@pytest.mark.parametrize("objective", ["rl-exact", "distill", "sft"])
def test_a_step_is_the_same_however_it_is_divided(word_model, tmp_path, objective):
    learned = []
    for micro in ("1", "1000"):  # 13 items: one is left out of each epoch of two steps
        trainer = built(
            word_model,
            tmp_path / micro,
            objective=objective,
            items=mixed_items(13),
            run_micro_batch=micro,
            optimiser_steps="3",
            optimiser_learning_rate="1e-4",  # AdamW makes steps of noise where a gradient is 0
            **MIXED,
        )
        before = weights_of(trainer)
        trainer.train()
        learned.append(weights_of(trainer))
        assert largest_difference(before, learned[-1]) > 1e-4
    assert largest_difference(*learned) < 1e-6


def test_items_are_drawn_anew_in_each_epoch_or_come_as_they_are(word_model, tmp_path):
    def drawn(out, **changes):
        trainer = built(word_model, tmp_path / out, items=mixed_items(13), **MIXED, **changes)
        sampler = trainer._get_train_sampler()
        epochs = []
        for epoch in range(2):
            sampler.set_epoch(epoch)
            epochs.append(list(sampler))
        return epochs

    as_they_are = drawn("plain", data_shuffle="false")
    assert [sorted(epoch[:6]) for epoch in as_they_are] == [list(range(6))] * 2
    assert [sorted(epoch) for epoch in as_they_are] == [list(range(12))] * 2
    first, second = drawn("shuffled")
    assert set(first[:6]) != set(second[:6])
    assert drawn("other", run_seed="1")[0] != first


def test_the_groups_of_a_batch_come_by_length():
    lengths = [9, 2, 7, 4, 1, 8]
    shape = {"n_groups": 6, "n_presentations": 1, "n_samples": 1, "groups_per_batch": 3}
    plain = GroupSampler(**shape, repeats=1, shuffle=True, seed=3)
    by_length = GroupSampler(**shape, repeats=1, shuffle=True, seed=3, lengths=lengths)
    for start in (0, 3):
        batch = list(plain)[start : start + 3]
        assert list(by_length)[start : start + 3] == sorted(batch, key=lengths.__getitem__)
