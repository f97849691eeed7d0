"""PA-GRPO through trl's real trainer: advantages, logs, resuming, refusals."""

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from loss_example import loss_example
from small_models import colour_items, save_word_model, settings_of, small_plan, small_recipe
from traced import largest_error, traced_trainer

from unswayed.base.errors import RunDirectoryError, ShapeError, UsageError
from unswayed.model.items import Task
from unswayed.training import checks, pa_grpo
from unswayed.training.policy_loss import PolicyLoss
from unswayed.training.reward_settings import REWARDS, Reward
from unswayed.training.sampling import GroupSampler, check_step
from unswayed.training.scoring import GroupScorer
from unswayed.training.trl_engine import TRL

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())["cases"]
LORA = {"lora": "{rank = 4, alpha = 8}"}


def weights_of(trainer):
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


# --- the advantages that trl trains with ------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "n_samples", "micro", "adapter"), [(2, 4, "4", {}), (4, 2, "5", LORA)]
)
def test_advantages_are_those_of_the_paper(word_model, tmp_path, n, n_samples, micro, adapter):
    # Micro batches of 4 and 5 are smaller than a group of 8 and 10: groups span them.
    trainer, groups, settings = traced_trainer(
        word_model, tmp_path, n, run_micro_batch=micro, optimiser_steps="3", **adapter
    )
    trainer.train()
    errors = [largest_error(batch, groups, settings, n_samples) for batch in trainer.trace]
    assert len(errors) == 3
    assert max(worst for worst, _ in errors) < 1e-5
    assert max(different for _, different in errors) > 3  # the batches were not all alike
    assert trainer.trace[-1]["logged"] == pytest.approx(trainer.trace[-1]["advantages"], abs=1e-6)


def mixed_items(count):
    """Multiple-choice questions with two, three and four candidates in turn."""
    return [
        msgspec.structs.replace(item, id=f"{item.id}of{n}", task=Task.MCQ)
        for n in (2, 3, 4)
        for item in colour_items(count, n=n, seed=n)
    ]


def test_different_numbers_of_candidates_train_together(word_model, tmp_path):
    changes = {"data_orders": "random:2", "run_micro_batch": "4", "optimiser_steps": "3"}
    trainer, groups, settings = traced_trainer(
        word_model, tmp_path, 4, items=mixed_items(3), optimiser_items_per_step="3", **changes
    )
    assert groups.numbers == (2, 3, 4)
    trainer.train()
    sizes = {groups.rows[row].n for batch in trainer.trace for row in batch["rows"]}
    assert sizes == {2, 3, 4}
    assert max(largest_error(batch, groups, settings, 2)[0] for batch in trainer.trace) < 1e-5


@pytest.mark.parametrize("objective", ["pa-grpo", "pif"])
def test_mixed_items_are_held_out_and_checked(trained, tmp_path, objective):
    changes = {"data_orders": "random:2", "data_held_out": "6", "pif_separator": " : "}
    result = trained(tmp_path, objective, mixed_items(4), 4, run_check_every="2", **changes)
    assert result.counts.held_out == 6
    assert set(result.after) >= {"held_out/accuracy", "held_out/consistency"}
    assert json.loads((tmp_path / "training.json").read_text())["candidates"] == [2, 3, 4]


def test_a_reward_is_given_the_number_of_candidates_of_each_item(planned, monkeypatch):
    seen = []

    def by_number(choices, right):
        seen.append((choices.shape, right.shape[-1]))
        return np.full(choices.shape, float(right.shape[-1]))

    monkeypatch.setitem(REWARDS._loaded, "con", Reward("by number", sampled=by_number))
    plan = planned("pa-grpo", mixed_items(1), 4, data_orders="random:2")
    scorer = GroupScorer.of(plan.groups, plan.settings, plan.recipe)
    rows = [row for row in (2, 3, 0, 1, 4, 5) for _ in range(2)]
    seen.clear()
    # D is a label of the last item alone: in the others it is no answer.
    found, choices = scorer.rewards(scorer.features(rows, ["D"] * 12))
    assert sorted(seen) == [((1, 2, 2), n) for n in (2, 3, 4)]
    assert found.consistency[:, 0, 0].tolist() == [3.0, 2.0, 4.0]
    assert [(group >= 0).all() for group in choices] == [False, False, True]


def test_the_grpo_preset_is_what_trl_computes_by_itself(word_model, tmp_path, monkeypatch):
    # trl divides by sd + 1e-4 where we divide by sd + 1e-6; rewards are the same floats.
    from trl import GRPOTrainer

    trainer, _, _ = traced_trainer(word_model, tmp_path, 2, kind="grpo")
    ours = []
    stock = GRPOTrainer._generate_and_score_completions

    def both(self, inputs):
        scored = stock(self, inputs)
        ours.append((scored["advantages"].clone(), self._group_advantages))
        return scored

    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", both)
    trainer.train()
    for theirs, mine in ours:
        np.testing.assert_allclose(theirs.numpy(), mine, atol=2e-3)
        assert theirs.abs().max() > 0.5


@pytest.mark.parametrize("clip", ["0.2", "0.05"])
def test_loss_of_trl_is_the_formula(word_model, tmp_path, monkeypatch, clip):
    import torch

    given = {"optimiser_clip": clip, "optimiser_beta": "0.5", "optimiser_entropy": "0.5"}
    trainer, _, _ = traced_trainer(word_model, tmp_path, 2, **given)
    loss = PolicyLoss.of(small_recipe(**given), "group")
    made = loss_example(loss, entropy_over="tokens")
    values = made.new, made.entropy, None
    monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", lambda *_a, **_k: values)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    ids = torch.zeros(made.mask.shape, dtype=torch.long)
    batch = {
        "prompt_ids": ids,
        "prompt_mask": ids + 1,
        "completion_ids": ids,
        "completion_mask": made.mask,
        "advantages": made.advantages,
        "old_per_token_logps": made.old,
        "ref_per_token_logps": made.ref,
    }
    torch.testing.assert_close(trainer._compute_loss(trainer.model, batch), made.wanted)


def test_a_split_group_is_refused_with_its_item(word_model, tmp_path):
    trainer, groups, _ = traced_trainer(word_model, tmp_path, 2)
    rows = [0, 0, 0, 0, 2, 2, 2, 2]  # the first presentation of q0 and of another item
    with pytest.raises(ShapeError, match=f"{groups.rows[0].item_id}: its permutation group was"):
        trainer.scorer.rewards(trainer.scorer.features(rows, ["A"] * 8))
    with pytest.raises(ShapeError, match="not whole groups"):
        trainer.scorer.rewards(trainer.scorer.features(rows[:6], ["A"] * 6))


def test_the_reward_parts_and_group_figures_are_logged(word_model, tmp_path):
    trainer, _, _ = traced_trainer(word_model, tmp_path, 2, optimiser_steps="1")
    trainer.train()
    logged = trainer.state.log_history[0]
    scorer, batch = trainer.scorer, trainer.trace[0]
    found, choices = scorer.rewards(scorer.features(batch["rows"], batch["texts"]))
    assert logged["rewards/consistency/mean"] == pytest.approx(found.consistency.mean(), abs=1e-5)
    assert logged["rewards/accuracy/mean"] == pytest.approx(found.accuracy.mean(), abs=1e-5)
    assert logged["reward"] == pytest.approx(found.total.mean(), abs=1e-5)
    assert logged["group/unparsed"] == pytest.approx((choices == -1).mean())
    still = (found.advantages == 0).all(axis=(1, 2)).mean()
    assert logged["group/zero_advantage"] == pytest.approx(still)


@pytest.mark.parametrize(
    "case",
    [c for c in GOLDEN if "length_band" not in c["settings"] and all(map(all, c["well_formed"]))],
    ids=lambda case: case["name"],
)
def test_golden_fixture_through_the_trainers_own_hook(word_model, tmp_path, case):
    n, n_samples = case["n"], len(case["choices"][0])
    items = [
        msgspec.structs.replace(item, gold=tuple(case["gold"])) for item in colour_items(2, n=n)
    ]
    settings = {f"reward_{key}": str(value) for key, value in case["settings"].items()}
    micro = str(2 * len(case["choices"]) * n_samples)
    changes = {**settings, "rollout_samples": str(n_samples), "run_micro_batch": micro}
    trainer, groups, _ = traced_trainer(word_model, tmp_path, n, kind="rl", items=items, **changes)
    trainer.model.train()
    inputs, texts = [], []
    for t, choices in enumerate(case["choices"]):
        for choice in choices:
            shown = groups.rows[t].shown
            inputs.append({"row": t})
            texts.append("red" if choice < 0 else "ABCD"[shown.label_of_candidate(choice)])
    parts = trainer._calculate_rewards(inputs, texts, texts, [[0]] * len(texts))
    found = trainer._group_advantages.reshape(len(case["choices"]), n_samples)
    np.testing.assert_allclose(found, case["advantages"], atol=1e-9)
    weights = [1, 1, 1, case["settings"]["lam"]]
    total = (parts.numpy() * weights).sum(axis=1).reshape(found.shape)
    np.testing.assert_allclose(total, case["total"], atol=1e-5)


# --- the sampler ------------------------------------------------------------------------------


def sampler(**changes):
    arguments = {
        "n_groups": 7,
        "n_presentations": 3,
        "n_samples": 2,
        "groups_per_batch": 2,
        "repeats": 2,
        "shuffle": True,
        "seed": 5,
    }
    return GroupSampler(**{**arguments, **changes})


def test_the_sampler_yields_whole_groups_and_repeats_each_batch():
    made = sampler()
    rows = np.array(list(made)).reshape(3, 2, 2, 3, 2)  # batch, repeat, group, presentation, sample
    assert len(made) == rows.size
    assert (rows[:, 0] == rows[:, 1]).all()
    assert (rows[..., 0] == rows[..., 1]).all()
    assert (rows[..., 0] % 3 == np.arange(3)).all()
    groups = rows[:, 0, :, 0, 0] // 3
    assert len(set(groups.ravel().tolist())) == 6  # seven groups, six fit


def test_the_order_of_an_epoch_follows_from_seed_and_epoch_alone():
    first, second = sampler(), sampler()
    list(first)
    first.set_epoch(3)
    second.set_epoch(3)
    assert list(first) == list(second)
    second.set_epoch(4)
    assert list(first) != list(second)
    assert list(sampler(seed=6)) != list(sampler())


def test_without_shuffling_the_order_is_that_of_the_data():
    assert list(sampler(shuffle=False, repeats=1))[:6] == [0, 0, 1, 1, 2, 2]


def test_fewer_items_than_a_step_takes_are_refused():
    with pytest.raises(UsageError, match="1 items do not fill one step of 2"):
        check_step(1, 2)


# --- resuming ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "items"),
    [(LORA, 40), ({}, 6), ({"optimiser_inner_updates": "2"}, 40)],
    ids=["lora", "full in the second epoch", "inner updates"],
)
def test_a_resumed_run_equals_an_uninterrupted_one_exactly(trained, tmp_path, changes, items):
    # Six items are three steps an epoch: step 4 is the first of the second epoch.
    given = {"optimiser_steps": "6", "run_save_every": "4", "run_keep": "9", **changes}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    trained(whole, "pa-grpo", items, **given)
    shutil.copytree(whole / "checkpoint-4", cut / "checkpoint-4")  # all that a crash leaves
    again = trained(cut, "pa-grpo", items, **given)
    assert (again.resumed_from, again.steps) == (4, 6)
    name = "adapter_model.safetensors" if changes == LORA else "model.safetensors"
    straight, resumed, before = (
        (folder / name).read_bytes() for folder in (whole, cut, whole / "checkpoint-4")
    )
    assert straight == resumed != before


def test_a_longer_run_goes_on_from_a_shorter_one(trained, tmp_path):
    for out, count in (("whole", "4"), ("parts", "2"), ("parts", "4")):
        trained(tmp_path / out, "pa-grpo", 10, optimiser_steps=count, run_save_every="2")
    whole, parts = (
        (tmp_path / f"{out}/model.safetensors").read_bytes() for out in ("whole", "parts")
    )
    assert whole == parts


# --- refusals before any weights are loaded ---------------------------------------------------


def test_a_micro_batch_that_does_not_divide_states_the_numbers():
    with pytest.raises(UsageError, match=r"2 items x P 2 x N 4 = 16 .* 1 processes .* of 5"):
        TRL.split(small_recipe(run_micro_batch="5"), 2, 1)


def test_another_trl_is_refused():
    with pytest.raises(UsageError, match=r"trl 1\.7\.2 is not supported; training needs trl>=1\.8"):
        checks.check_trl(version="1.7.2")
    with pytest.raises(UsageError, match=r"trl 2\.0\.0 is not supported"):
        checks.check_trl(version="2.0.0")


def test_a_trl_with_changed_hooks_is_refused():
    class Changed:
        def _get_train_sampler(self, dataset=None): ...
        def _tokenize_prompts(self, prompts): ...
        def _calculate_rewards(self, inputs, prompts, completions): ...
        def _generate_and_score_completions(self, inputs): ...

    with pytest.raises(UsageError, match="has changed _calculate_rewards"):
        checks.check_trl(Changed)
    Changed._tokenize_prompts = lambda self, prompts, images: None
    with pytest.raises(UsageError, match=r"_tokenize_prompts: it takes \(self, prompts, images\)"):
        checks.check_trl(Changed)


def test_labels_that_are_not_one_token_are_refused(planned):
    with pytest.raises(UsageError, match="label 'yes' as one token"):
        planned(prompt_labels='["yes", "no"]')


def test_prompts_beyond_the_models_context_are_refused(tmp_path):
    save_word_model(tmp_path, context=12)
    with pytest.raises(UsageError, match=r"longest prompt has 17 tokens .* more than the 12"):
        small_plan(tmp_path)


def test_a_preset_cannot_be_turned_into_another_method(planned):
    with pytest.raises(UsageError, match="train rl --reward none --advantage group"):
        planned(consistency="none")
    assert settings_of("rl", small_recipe(), consistency="none").consistency == "none"


def test_a_checkpoint_of_another_recipe_is_refused(trained, tmp_path):
    given = {"optimiser_steps": "1", "run_save_every": "1"}
    trained(tmp_path, **given)
    with pytest.raises(RunDirectoryError, match=r"recipe\.reward\.lam was 1\.0 and is 0\.5"):
        trained(tmp_path, **given, reward_lam="0.5")
    with pytest.raises(RunDirectoryError, match=r"data\.fingerprint was"):
        trained(tmp_path, "pa-grpo", 5, **given)
    with pytest.raises(RunDirectoryError, match="kind was 'pa-grpo' and is 'grpo'"):
        trained(tmp_path, "grpo", **given)


# --- the configuration ------------------------------------------------------------------------


def test_nothing_that_matters_is_left_to_trls_defaults(planned, tmp_path):
    config = pa_grpo.grpo_config(planned(reward_lam="0.5"), tmp_path)
    expected = {
        "loss_type": "grpo",
        "beta": 0.001,
        "entropy_coef": 0.001,
        "epsilon": 0.2,
        "scale_rewards": "group",
        "multi_objective_aggregation": "sum_then_normalize",
        "reward_weights": [1.0, 1.0, 1.0, 0.5],
        "use_bias_correction_kl": False,
        "vllm_importance_sampling_correction": False,
        "num_generations": 4,  # N, never P x N
        "num_iterations": 1,
        "temperature": 1.0,
        "max_completion_length": 1,
        "generation_batch_size": 16,
    }
    assert {name: getattr(config, name) for name in expected} == expected


def test_thinking_is_off_by_default_for_models_that_think(tmp_path):
    chat = (
        "{% for m in messages %}<|user|> {{ m.content }} {% endfor %}<|assistant|>"
        "{% if enable_thinking is defined and not enable_thinking %} . .{% endif %}"
    )
    save_word_model(tmp_path, chat=chat)
    left_open, thinking, not_thinking = (
        small_plan(tmp_path, "grpo", **changes)
        for changes in ({}, *({"chat_enable_thinking": value} for value in ("true", "false")))
    )
    assert thinking.example.endswith("<|assistant|>")
    assert thinking.groups.counts.longest_prompt == 17
    for plan in (left_open, not_thinking):  # a label alone has no place for reasoning
        assert plan.example.endswith("<|assistant|> . .")
        assert plan.groups.counts.longest_prompt == 19
