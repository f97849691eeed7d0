"""The parts of the verl engine that need no verl: numbers of the loss, data, rewards, refusals."""

import json
import re
from importlib.metadata import PackageNotFoundError

import pytest
from small_models import colour_items, settings_of, small_recipe

from unswayed.base.errors import MissingExtraError, ShapeError, UsageError
from unswayed.model.items import Task
from unswayed.training.planning import plan_training
from unswayed.training.policy_loss import PolicyLoss
from unswayed.training.progress import TrainingWarning
from unswayed.training.recipe import load_recipe, recipe_names, with_changes
from unswayed.training.recipe_parts import PromptTable
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rewards import SampleKey
from unswayed.training.sampling import GroupSampler
from unswayed.training.scoring import Features, score_rows
from unswayed.training.table import OBJECTIVES
from unswayed.training.verl import driver, engine, epochs, reward
from unswayed.training.verl.reward import VerlRun

VLLM = {"rollout_engine": '"vllm-colocate"'}


@pytest.fixture
def verl(monkeypatch):
    """verl as if it were installed."""
    monkeypatch.setattr(engine, "version", lambda _name: engine.VERSION)


def planned(model, objective="pa-grpo", **changes):
    recipe = small_recipe(**{**VLLM, **changes})
    return plan_training(objective, colour_items(6), model=str(model), recipe=recipe, engine="verl")


@pytest.mark.parametrize("name", recipe_names())
def test_loss_of_recipe_is_the_same_for_both_engines(name):
    recipe = load_recipe(name)
    loss = PolicyLoss.of(recipe, recipe.reward.advantage)
    trl, verl = loss.trl_arguments(), {**engine.REQUIRED, **engine.loss_overrides(loss)}
    of_verl = {key.rpartition(".")[2]: value for key, value in verl.items()}
    assert (trl["loss_type"], of_verl["loss_agg_mode"]) == ("grpo", "seq-mean-token-mean")
    assert (trl["beta"] > 0, of_verl["kl_loss_type"]) == (of_verl["use_kl_loss"], "low_var_kl")
    pairs = {
        "beta": "kl_loss_coef",
        "epsilon": "clip_ratio_low",
        "epsilon_high": "clip_ratio_high",
        "entropy_coef": "entropy_coeff",
        "num_iterations": "ppo_epochs",
    }
    assert {trl[ours]: of_verl[theirs] for ours, theirs in pairs.items()} == {
        trl[ours]: trl[ours] for ours in pairs
    }


def test_missing_verl_is_named_with_its_installation(word_model, monkeypatch):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(engine, "version", version)
    with pytest.raises(
        MissingExtraError, match=r"needs verl 0\.9\.1, which is not installed\. .* ray"
    ):
        planned(word_model)


@pytest.mark.parametrize("objective", ["distill", "sft", "pif"])
def test_objectives_without_policy_gradient_are_refused(verl, objective):
    chosen, recipe = OBJECTIVES.load(objective), small_recipe()
    with pytest.raises(
        UsageError, match=f"verl runs grpo, pa-grpo, rl; {objective} is not a policy"
    ):
        engine.VERL.check(recipe, settings_of(objective, recipe), chosen)


def test_one_error_names_all_that_verl_cannot_run(word_model, verl):
    changes = {
        "optimiser_schedule": '"linear"',
        "rollout_engine": '"transformers"',
    }
    with pytest.raises(UsageError) as raised:
        planned(word_model, **changes, engine='{verl = {"data.shuffle" = true}}')
    for part in (
        "vllm-colocate",
        "schedule linear",
        "data.shuffle in [engine.verl]",
    ):
        assert part in str(raised.value)


def test_plan_says_that_verl_is_untested_and_divides_by_its_gpus(word_model, verl):
    with pytest.warns(TrainingWarning, match="untested on GPUs"):
        plan = planned(
            word_model, engine='{verl = {"trainer.n_gpus_per_node" = 4}, other = {a = 1}}'
        )
    assert plan.split == (4, 1)
    assert plan.record["processes"] == 4
    assert plan.record["engine"] == "verl"
    assert plan.record["recipe"]["engine.verl.trainer.n_gpus_per_node"] == 4
    assert "engine.other.a" not in plan.record["recipe"]
    with pytest.raises(UsageError, match="16 responses cannot be divided among 3 GPUs"):
        planned(word_model, engine='{verl = {"trainer.n_gpus_per_node" = 3}}')
    with pytest.raises(UsageError, match="among 1 GPUs, with rollout"):
        planned(
            word_model,
            engine='{verl = {"trainer.n_gpus_per_node" = 1}}',
            rollout_tensor_parallel="2",
        )


def test_data_files_hold_the_rows_that_trl_would_draw(word_model, verl, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "own.py").write_text(
        "def own(item, text, choice):\n    return len(text) + item.n\n"
    )
    own = {"reward_response": f'"{tmp_path / "own.py"}:own"', "reward_response_size": "10"}
    plan = planned(word_model, "rl", optimiser_steps="5", **own)
    files = epochs.write_data(plan, tmp_path)
    sampler = GroupSampler(
        n_groups=6, n_presentations=2, n_samples=1, groups_per_batch=2, repeats=1, shuffle=True, seed=0
    )  # fmt: skip
    assert len(files.train) == 2  # three steps make an epoch
    for epoch, file in enumerate(files.train):
        sampler.set_epoch(epoch)
        rows = pq.read_table(file).to_pylist()
        wanted = [plan.groups.rows[number] for number in sampler]
        drawn = [(row["extra_info"]["item_id"], row["extra_info"]["presentation"]) for row in rows]
        assert drawn == [(row.item_id, row.presentation) for row in wanted]
        for row, own in zip(rows, wanted, strict=True):
            assert row["prompt"] == [{"role": "user", "content": plan.chat.text(own.messages)}]
            for text in "ABx":
                found = reward.compute_score("unswayed", text, "", row["extra_info"])
                label = own.symbols.index(text) if text in own.symbols else None
                named = -1 if label is None else own.shown.candidate_of_label(label)
                assert found["candidate"] == named
                accuracy = 1.0 if named in own.gold else -1.0
                form = 0.3 if named >= 0 else -0.3
                length = 0.0 if named >= 0 else -0.1
                assert found["score"] == pytest.approx(accuracy + form + length + 10 * (1 + 2))


def test_lost_samples_and_padding_leave_the_others_their_reward():
    run = VerlRun(PromptTable(), True, Task.PAIRWISE, 2, RewardSettings(consistency="con", lam=0.5))
    keys = ["g.p00_0_0", "g.p00_1_0", "pad1_0_0", "g.p01_1_0"]
    features = [Features(0, 1, 0, 2, 1)._asdict()] * 4
    features[2] = None
    found = driver.consistency_of(keys, features, run, 2)
    assert found.tolist() == [-0.5, 0.5, 0.0, 0.5]
    whole = [SampleKey("g", 0, 0), SampleKey("g", 0, 1), SampleKey("g", 1, 1)]
    scored = score_rows(whole, [Features(0, 1, 0, 2, 1)] * 3, run.reward, (2, 2))
    assert found[[0, 1, 3]].tolist() == (0.5 * scored.consistency).tolist()
    with pytest.raises(ShapeError, match="several outputs"):
        driver.consistency_of(["g.p00_0_1"], features[:1], run, 2)
    assert driver.consistency_of(["pad1_0_0"], [None], run, 2).tolist() == [0.0]


def test_uids_name_group_and_presentation_of_whole_groups():
    rows = [{"item_id": item, "presentation": t} for t in (1, 0) for item in ("a", "b")]
    uids = driver.uids_of(rows, 2)
    assert all(re.fullmatch(r"[0-9a-f]{32}\.p0[01]", uid) for uid in uids)
    assert [uid[-1] for uid in uids] == ["1", "1", "0", "0"]
    assert [uids[k][:32] == uids[k + 2][:32] for k in (0, 1)] == [True, True]
    with pytest.raises(ShapeError, match=r"b: a batch has presentations \[1\] of 2"):
        driver.uids_of(rows[:3], 2)


def test_checkpoint_of_verl_is_whole_if_its_folder_and_mark_are(tmp_path):
    at = tmp_path / "global_step_4"
    (at / "actor").mkdir(parents=True)
    assert engine.VERL.checkpoint_defect(at, 4) == "not named in latest_checkpointed_iteration.txt"
    (tmp_path / engine.LATEST).write_text("4")
    assert engine.VERL.checkpoint_defect(at, 4) == "no data.pt"
    (at / "data.pt").touch()
    assert engine.VERL.checkpoint_defect(at, 4) is None


def test_run_of_another_engine_is_another_run(word_model, verl, tmp_path):
    from unswayed.training.provenance import differing_fields

    recipe = with_changes(small_recipe(), {})
    trl = plan_training("pa-grpo", colour_items(6), model=str(word_model), recipe=recipe)
    old = {key: value for key, value in trl.record.items() if key != "engine"}
    assert differing_fields(old, trl.record) == {}
    assert "engine" in differing_fields(json.loads(json.dumps(old)), planned(word_model).record)


def test_log_keeps_later_figures_of_repeated_step(tmp_path):
    for begun, steps, loss in ((0, (1, 2, 3), 0.5), (2, (3, 4), 0.25)):
        lines = [{"step": step, "data": {"loss": loss, "name": "run"}} for step in steps]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (tmp_path / f"log-{begun}.jsonl").write_text(text)
    losses = {1: 0.5, 2: 0.5, 3: 0.25, 4: 0.25}
    assert engine.logged_steps(tmp_path) == {step: {"loss": loss} for step, loss in losses.items()}
