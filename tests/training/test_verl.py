"""The verl engine through verl's own estimator, queue, configuration and launcher, on CPUs."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec
import numpy as np
import pytest
from small_models import colour_items, small_recipe

pytest.importorskip("verl", reason="verl is not installed: it has an environment of its own")

import ray
import torch
import transfer_queue as tq
from loss_example import loss_example
from omegaconf import OmegaConf
from tensordict import NonTensorStack, TensorDict
from transfer_queue import KVBatchMeta

from unswayed.base.errors import ShapeError, UsageError
from unswayed.model.items import Task, encode_item
from unswayed.training.planning import plan_training
from unswayed.training.recipe_parts import PromptTable
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.run_folder import RunFolder
from unswayed.training.scoring import Features, as_bits
from unswayed.training.verl import driver, engine, epochs
from unswayed.training.verl.reward import VerlRun

pytestmark = pytest.mark.filterwarnings("ignore")
GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())
WHOLE = {case["name"]: case for case in GOLDEN["cases"]}
GPUS = '{verl = {"trainer.n_gpus_per_node" = 8}}'
CHANGES = {
    "rollout_engine": '"vllm-colocate"',
    "optimiser_items_per_step": "4",
    "engine": GPUS,
}


class Batch:
    """A golden case as verl holds it: shuffled rows of random lengths, the rest lost, one of padding."""

    def __init__(self, case, seed=0):
        whole, draw = WHOLE[case["case"]], np.random.default_rng(seed)
        band = whole["settings"].get("length_band")
        settings = {**whole["settings"], "length_band": tuple(band) if band else None}
        n_presentations, self.n_samples = len(whole["choices"]), len(whole["choices"][0])
        reward = RewardSettings(**settings)
        self.run = VerlRun(PromptTable(), True, Task.PAIRWISE, n_presentations, reward)
        group = uuid.uuid4().hex
        self.uids = [f"{group}.p{t:02d}" for t, _ in case["rows"]]
        self.keys = [f"{uid}_{i}_0" for uid, (_, i) in zip(self.uids, case["rows"], strict=True)]
        self.features = [
            Features(
                whole["choices"][t][i],
                int(whole["well_formed"][t][i]),
                whole["reasoning_chars"][t][i],
                whole["n"],
                as_bits(whole["gold"]),
            )._asdict()
            for t, i in case["rows"]
        ]
        agreement = driver.consistency_of(self.keys, self.features, self.run, self.n_samples)
        self.alone = np.array(case["total"]) - agreement
        self.lengths = draw.integers(1, 9, len(self.keys) + 1)
        self.keys.append("padab12_0_0")
        self.uids.append("padab12")
        self.features.append(None)

    @property
    def algorithm(self):
        """verl's table with our settings."""
        return {
            "unswayed": msgspec.json.encode(self.run).decode(),
            "adv_estimator": driver.ESTIMATOR,
            "use_kl_in_reward": False,
            "gamma": 1.0,
            "lam": 1.0,
        }


@pytest.mark.parametrize("case", GOLDEN["incomplete"], ids=lambda case: case["name"])
def test_golden_cases_through_compute_advantage(case):
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    driver.register_estimator()
    batch = Batch(case)
    width = int(batch.lengths.max())
    mask = (torch.arange(width)[None] < torch.tensor(batch.lengths)[:, None]).float()
    rewards = torch.zeros(len(batch.uids), width)
    total = [*case["total"], 0.0]
    for row, (length, value) in enumerate(zip(batch.lengths, total, strict=True)):
        rewards[row, length - 1] = value
    found = compute_advantage(
        DataProto.from_dict(
            tensors={"token_level_rewards": rewards, "response_mask": mask},
            non_tensors={"uid": np.array(batch.uids, dtype=object)},
        ),
        adv_estimator=driver.ESTIMATOR,
        config=OmegaConf.create(batch.algorithm),
    ).batch["advantages"]
    wanted = torch.tensor([*case["advantages"], 0.0])[:, None] * mask
    torch.testing.assert_close(found, wanted, atol=5e-7, rtol=0)


@pytest.fixture(scope="module")
def queue():
    """Ray with TransferQueue; with two logical CPUs its start would wait for ever."""
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        object_store_memory=100_000_000,
        logging_level="ERROR",
        log_to_driver=False,
    )
    tq.init()
    yield
    tq.close()
    ray.shutdown()


def test_golden_cases_through_queue_and_trainer(queue):
    trainer = driver.trainer_class()
    driver.register_estimator()
    worst = 0.0
    for number, case in enumerate(GOLDEN["incomplete"]):
        batch, part = Batch(case, number), f"train{number}"
        scores = [torch.zeros(int(length)) for length in batch.lengths]
        for row, value in zip(scores, batch.alone, strict=False):
            row[-1] = value
        extra = [{"reward_extra_info": row} if row else {} for row in batch.features]
        fields = {
            "uid": NonTensorStack(*batch.uids),
            "rm_scores": nested(scores),
            "response_mask": nested([torch.ones(len(row)) for row in scores]),
            "extra_fields": NonTensorStack(*extra),
        }
        place = {"keys": batch.keys, "partition_id": part}
        tags = [{} for _ in batch.keys]
        tq.kv_batch_put(**place, fields=TensorDict(fields, len(batch.keys)), tags=tags)
        stub, metrics = object.__new__(trainer), {}
        stub.config = OmegaConf.create(
            {
                "algorithm": batch.algorithm,
                "actor_rollout_ref": {"rollout": {"n": batch.n_samples}},
            }
        )
        stub._compute_advantage(KVBatchMeta(**place, tags=tags), metrics)
        found = tq.kv_batch_get(**place, select_fields=["advantages"])["advantages"]
        for row, wanted in zip(found.unbind(), [*case["advantages"], 0.0], strict=True):
            worst = max(worst, float((row - wanted).abs().max()))
        agreement = np.array(case["total"]) - batch.alone
        assert metrics["unswayed/consistency_reward"] == pytest.approx(agreement.mean())
    assert worst < 5e-7


def nested(rows):
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


# --- configuration ----------------------------------------------------------------------------


def planned(model, **changes):
    recipe = small_recipe(**{**CHANGES, **changes})
    return plan_training("pa-grpo", colour_items(8), model=str(model), recipe=recipe, engine="verl")


def test_configuration_for_eight_gpus_is_valid(word_model, tmp_path):
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.trainer.ppo.v1 import get_trainer_cls
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
    from verl.utils.config import validate_config

    config = engine.configuration(planned(word_model), tmp_path)
    validate_config(config, need_reference_policy(config), need_critic(config))
    assert not need_critic(config)
    assert need_reference_policy(config)
    assert config.data.train_batch_size == 8
    assert config.actor_rollout_ref.rollout.n == 4
    trainer = driver.trainer_class()
    assert get_trainer_cls(config.trainer.v1.trainer_mode) is trainer
    stub = object.__new__(trainer)
    stub.config, stub.trainer_mode = config, driver.MODE
    assert type(stub._build_replay_buffer()) is ReplayBuffer
    adapted = engine.configuration(planned(word_model, lora="{rank = 4, alpha = 8}"), tmp_path)
    assert adapted.actor_rollout_ref.model.lora_rank == 4
    assert adapted.actor_rollout_ref.rollout.load_format == "safetensors"


def test_guards_name_all_that_splits_groups(word_model, tmp_path):
    config = engine.configuration(planned(word_model), tmp_path)
    for key, value in {
        "data.shuffle": True,
        "data.train_batch_size": 7,
        "data.gen_batch_size": 1,
        "algorithm.filter_groups.enable": True,
        "actor_rollout_ref.actor.loss_agg_mode": "token-mean",
        "trainer.v1.trainer_mode": "separate_async",
    }.items():
        OmegaConf.update(config, key, value)
    with pytest.raises(UsageError) as raised:
        driver.check_config(config)
    for part in (
        "data.shuffle is True instead of False",
        "data.train_batch_size 7 is not a multiple of the 2 presentations",
        "data.gen_batch_size 1 ",
        "algorithm.filter_groups.enable is True",
        "loss_agg_mode is 'token-mean' instead of 'seq-mean-token-mean'",
        "trainer_mode is 'separate_async'",
    ):
        assert part in str(raised.value)


def test_unknown_key_of_the_engine_table_is_refused(word_model, tmp_path):
    own = '{verl = {"trainer.nodes" = 2}}'
    with pytest.raises(UsageError, match=r"verl does not take trainer\.nodes = 2"):
        engine.configuration(planned(word_model, engine=own), tmp_path)


def test_verl_reads_prompts_of_audit_in_whole_groups(word_model, tmp_path):
    from transformers import AutoTokenizer
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
    from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder

    plan = planned(word_model)
    config = engine.configuration(plan, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(word_model)
    tokenizer.chat_template = epochs.TEMPLATE
    rows = RLHFDataset(list(config.data.train_files), tokenizer, config.data)
    builder = create_continuous_token_builder(tokenizer, hf_model_type="llama")
    by_place = {(row.item_id, row.presentation): row for row in plan.groups.rows}
    assert len(rows) == 16  # one epoch
    for at in range(len(rows)):
        extra = rows[at]["extra_info"]
        own = by_place[extra["item_id"], extra["presentation"]]
        ids = builder.build_initial_tokens(list(rows[at]["raw_prompt"]))
        assert list(ids) == plan.chat.ids(own.messages)
    paid = get_custom_reward_fn(config)(
        data_source="unswayed", solution_str="no label", ground_truth="", extra_info=extra
    )
    assert (paid["candidate"], paid["score"]) == (-1, pytest.approx(-1.4))
    # the trainer names whole groups of a batch, and refuses others
    stub = object.__new__(driver.trainer_class())
    stub.config = config
    batches = [collate_fn([rows[at] for at in part]) for part in (range(8), range(7))]
    stub.train_dataloader_it = iter(batches)
    fetched = stub._fetch_one_gen_batch()
    shown = [rows[at]["extra_info"]["presentation"] for at in range(8)]
    assert [int(str(uid)[-2:]) for uid in fetched["uid"]] == shown
    assert len({str(uid)[:32] for uid in fetched["uid"]}) == 4
    with pytest.raises(ShapeError, match="must stay whole"):
        stub._fetch_one_gen_batch()


def test_loss_of_verl_is_the_formula_in_any_micro_batches(word_model, tmp_path, monkeypatch):
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.utils import losses

    plan = planned(word_model, optimiser_beta="0.5", optimiser_entropy="0.5")
    config = engine.configuration(plan, tmp_path).actor_rollout_ref.actor
    actor, made = omega_conf_to_dataclass(config), loss_example(plan.loss, entropy_over="responses")
    monkeypatch.setattr(losses, "no_padding_2_padding", lambda values, _data: values)
    found = torch.zeros(())
    for part in (slice(0, 2), slice(2, 6)):
        rows = {
            "response_mask": made.mask,
            "old_log_probs": made.old,
            "ref_log_prob": made.ref,
            "advantages": made.advantages[:, None] * made.mask,
        }
        data = Rows({name: values[part] for name, values in rows.items()})
        data |= {"dp_size": 1, "batch_num_tokens": 27, "global_batch_size": 6}
        output = {"log_probs": made.new[part], "entropy": made.entropy[part]}
        found += losses.ppo_loss(actor, output, data)[0]
    torch.testing.assert_close(found, made.wanted)


class Rows(dict):
    """Padded rows in place of verl's nested ones."""

    def select(self, *names):
        return Rows({name: self[name] for name in names})

    def to_padded_tensor(self):
        return self


# --- the result ---------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"lora": "{rank = 4, alpha = 8}"}], ids=["full", "lora"])
def test_last_checkpoint_becomes_the_result(word_model, tmp_path, changes):
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plan, actor = planned(word_model, **changes), tmp_path / "verl" / "global_step_2" / "actor"
    model = AutoModelForCausalLM.from_pretrained(word_model)
    tokenizer = AutoTokenizer.from_pretrained(word_model)
    tokenizer.chat_template = epochs.TEMPLATE  # as verl has it while it trains
    for part in (model.config, model.generation_config, tokenizer):
        part.save_pretrained(actor / "huggingface")
    if changes:
        model = get_peft_model(
            model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
        )
        meta = {"r": 4, "lora_alpha": 8, "task_type": "CAUSAL_LM"}
        (actor / "lora_train_meta.json").write_text(json.dumps(meta))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not changes or "lora_" in name:
                weight.normal_(std=0.1)
    torch.save(model.state_dict(), actor / "model_world_size_1_rank_0.pt")
    (actor / "fsdp_config.json").write_text(json.dumps({"world_size": 1}))
    folder = RunFolder(tmp_path)
    engine.merge(plan, actor, folder)
    folder.check_weights()
    if changes:
        base = AutoModelForCausalLM.from_pretrained(word_model)
        found = PeftModel.from_pretrained(base, tmp_path)
        named = json.loads((tmp_path / "adapter_config.json").read_text())
        assert named["base_model_name_or_path"] == str(word_model)
    else:
        found = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.tensor([plan.chat.ids(plan.groups.rows[0].messages)])
    with torch.no_grad():
        wanted, merged = model.float().eval()(ids).logits, found.float().eval()(ids).logits
    torch.testing.assert_close(merged, wanted, atol=0.05, rtol=0.05)  # verl saves bfloat16
    kept = AutoTokenizer.from_pretrained(tmp_path)
    assert kept.chat_template == AutoTokenizer.from_pretrained(word_model).chat_template


# --- the command ------------------------------------------------------------------------------


def command(model, folder, *options):
    """`unswayed train pa-grpo` with verl, in a process of its own."""
    items = folder / "items.jsonl"
    items.write_bytes(b"".join(encode_item(item) + b"\n" for item in colour_items(8)))
    changes = {
        "rollout.engine": "vllm-colocate", "rollout.samples": "4", "optimiser.items_per_step": "4",
        "optimiser.steps": "2", "data.held_out": "0", "run.check_every": "0", "run.loggers": "[]",
        "prompt.max_response_tokens": "1", "data.max_prompt_tokens": "64",
    }  # fmt: skip
    given = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    words = ["train", "pa-grpo", items, "--recipe", "tiny-judge", "--model", model, *given]
    return subprocess.Popen(
        [sys.executable, "-m", "unswayed", *map(str, words), "--engine", "verl",
         "--out", str(folder / "out"), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "RAY_ADDRESS": "local"},
    )  # fmt: skip


def test_dry_run_prints_the_plan_without_trl(word_model, tmp_path):
    with pytest.raises(ModuleNotFoundError):
        import trl  # noqa: F401
    process = command(word_model, tmp_path, "--dry-run")
    out = process.communicate(timeout=240)[0]
    assert process.returncode == 0, out
    assert "engine verl is untested on GPUs" in out
    plan = json.loads(out[out.index("{\n") :])
    assert (plan["engine"], plan["processes"], plan["steps"]) == ("verl", 8, 2)
    other = small_recipe()
    with pytest.raises(UsageError, match="training needs trl, which is not installed"):
        plan_training("pa-grpo", colour_items(8), model=str(word_model), recipe=other)


def test_launcher_reaches_verls_count_of_gpus(word_model, tmp_path):
    # each unit of the queue takes a CPU, and so do its controller and the trainer
    units = '"transfer_queue.backend.SimpleStorage.num_data_storage_units" = 2'
    cpus = '"ray_kwargs.ray_init.num_cpus" = 8'
    process = command(word_model, tmp_path, "--set", f"engine.verl={{{units}, {cpus}}}")
    try:
        out = process.communicate(timeout=300)[0]
    finally:
        os.killpg(process.pid, 9) if process.poll() is None else None
    assert "Total available GPUs 0 is less than total desired GPUs 8" in out, out[-3000:]
    assert process.returncode != 0
    assert not (tmp_path / "out" / "model.safetensors").exists()
