"""What a plan finds before weights are loaded, and training would meet after."""

import json
import shutil
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from small_models import small_plan, small_recipe

from unswayed.base.errors import MissingExtraError, UnknownNameError, UsageError
from unswayed.base.registry import install_command
from unswayed.training import rollout_checks
from unswayed.training.checks import TRL_VERSIONS
from unswayed.training.devices import check_device
from unswayed.training.processes import Sharding, sharding_of
from unswayed.training.rollout_checks import check_heads, check_parallel, check_rollout, check_vllm


def changed_model(word_model, folder, **config):
    """A copy of the model whose config.json says something else; None takes a field out."""
    shutil.copytree(word_model, folder)
    file = folder / "config.json"
    fields = {**json.loads(file.read_text()), **config}
    file.write_text(json.dumps({key: value for key, value in fields.items() if value is not None}))
    return folder


# --- rollouts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["pa-grpo", "grpo"])
def test_a_single_sample_is_refused_with_the_remedy(planned, objective):
    with pytest.raises(UsageError, match=r"rollout.samples is 1: .* Set rollout.samples to 2"):
        planned(objective, rollout_samples="1")


def test_pif_samples_nothing_and_needs_no_samples(planned):
    assert planned("pif", rollout_samples="1").responses_per_step == 0


@pytest.fixture
def trl_of(monkeypatch):
    """Sets what trl's metadata asks for, and which packages are installed."""

    def set_to(asked, installed):
        def version(name):
            if name not in installed:
                raise PackageNotFoundError(name)
            return installed[name]

        monkeypatch.setattr(rollout_checks, "requires", lambda _name: asked)
        monkeypatch.setattr(rollout_checks, "version", version)

    return set_to


RANGE = ['vllm<=0.31.0,>=0.22.0; extra == "vllm"', 'requests; extra == "vllm"', "numpy>=1"]
HERE = {"trl": "1.16.0", "requests": "2.32.0"}


@pytest.mark.parametrize("version", ["0.22.0", "0.31.0", "0.31.0+cu129", "0.25.0rc1"])
@pytest.mark.parametrize("engine", ["transformers", "vllm-colocate", "vllm-server"])
def test_a_vllm_that_the_installed_trl_supports_is_taken(trl_of, version, engine):
    trl_of(RANGE, {**HERE, "vllm": version})
    check_vllm(engine)


@pytest.mark.parametrize("version", ["0.21.9", "0.31.1", "0.32.0+cu129"])
@pytest.mark.parametrize("engine", ["vllm-colocate", "vllm-server"])
def test_another_vllm_is_refused_with_the_range_of_trl(trl_of, version, engine):
    trl_of(RANGE, {**HERE, "vllm": version})
    with pytest.raises(
        UsageError, match=r"vllm <=0\.31\.0,>=0\.22\.0 \(trl 1\.16\.0\), and 0\."
    ) as e:
        check_vllm(engine)
    assert install_command("vllm") in str(e.value)


def test_the_range_is_that_of_the_installed_trl(trl_of):
    trl_of(['vllm>=0.9,<0.10; extra == "vllm"'], {**HERE, "trl": "1.8.0", "vllm": "0.9.5"})
    check_vllm("vllm-colocate")


def test_a_missing_vllm_and_a_missing_client_are_named(trl_of):
    trl_of(RANGE, HERE)
    for engine in ("vllm-colocate", "vllm-server"):
        with pytest.raises(MissingExtraError, match=f"{engine} needs vllm"):
            check_vllm(engine)
    trl_of(RANGE, {"trl": "1.16.0", "vllm": "0.30.0"})
    check_vllm("vllm-colocate")  # only a server's client speaks http
    with pytest.raises(MissingExtraError, match="vllm-server needs requests"):
        check_vllm("vllm-server")


def test_the_plan_asks_for_vllm(planned, trl_of):
    trl_of(RANGE, HERE)
    with pytest.raises(MissingExtraError, match="needs vllm"):
        planned(rollout_engine="vllm-colocate")
    assert planned("pif", rollout_engine="vllm-colocate").steps == 2


def test_the_extra_takes_vllm_from_trl():
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    lowest, too_new = (".".join(map(str, number)) for number in TRL_VERSIONS)
    wanted = f"trl[vllm]>={lowest},<{too_new.removesuffix('.0')}"
    assert extras["optional-dependencies"]["vllm"] == ["unswayed[train]", wanted]


def test_gpus_of_one_vllm_divide_heads_and_processes():
    rollout = small_recipe(2, rollout_engine="vllm-colocate", rollout_tensor_parallel="3").rollout
    with pytest.raises(UsageError, match="does not divide the model's 4 attention heads"):
        check_heads(rollout, 4)
    with pytest.raises(UsageError, match="does not divide the 4 processes"):
        check_parallel(rollout, 4)
    check_heads(rollout, 6)
    check_parallel(rollout, 3)


@pytest.mark.parametrize("address", ["localhost:8000", "host", "ftp://host:1", "http://"])
def test_an_address_that_is_none_is_refused(trl_of, address):
    trl_of(RANGE, {**HERE, "vllm": "0.30.0"})
    recipe = small_recipe(2, rollout=f'{{engine = "vllm-server", server_url = "{address}"}}')
    with pytest.raises(UsageError, match="is not the address of a vLLM server"):
        check_rollout(recipe)


# --- loggers ----------------------------------------------------------------------------------


def test_an_unknown_logger_is_refused_with_a_suggestion(planned):
    with pytest.raises(UnknownNameError, match=r"'tensorbord'\. Did you mean 'tensorboard'"):
        planned(run_loggers='["tensorbord"]')


def test_a_logger_whose_package_is_missing_is_refused(planned, monkeypatch):
    from transformers.integrations import integration_utils

    monkeypatch.setattr(
        integration_utils, "get_available_reporting_integrations", lambda: ["mlflow"]
    )
    with pytest.raises(UsageError, match="wandb cannot be used: its package is not installed"):
        planned(run_loggers='["mlflow", "wandb"]')


@pytest.mark.parametrize("loggers", ["[]", '["none"]', '["all"]', '["tensorboard"]'])
def test_loggers_that_work_are_planned(planned, loggers):
    assert planned(run_loggers=loggers).steps == 2


# --- adapters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "adapter"),
    [
        ("all-linear", 2 * 4 * (4 * 32 + 3 * 48)),  # layers x rank x (inputs + outputs)
        (".*q_proj", 2 * 4 * 32),
        (".*layers.1.*_proj", 4 * (4 * 32 + 3 * 48)),
    ],
)
def test_an_adapter_is_counted_as_it_will_be(planned, target, adapter):
    plan = planned(lora=f'{{rank = 4, alpha = 8, target = "{target}"}}')
    assert plan.demand.shape.adapter == plan.demand.shape.trained == adapter


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("q_proj", "not found in the base model"),  # a text is a pattern of whole names
        ("query", "not found in the base model"),
        (".*", "Target module LlamaModel"),
        ("(q", "unterminated subpattern"),
        (".*lm_head", "its adapter would never be trained"),
    ],
)
def test_an_unsuitable_target_is_refused_with_suitable_ones(planned, target, reason):
    with pytest.raises(UsageError, match=r"linear layers down_proj, .*, v_proj: set") as error:
        planned(lora=f'{{rank = 4, alpha = 8, target = "{target}"}}')
    assert reason in str(error.value)


def test_a_rank_above_all_layers_is_remarked(planned):
    plan = planned(lora="{rank = 17, alpha = 8}")
    assert any("lora.rank 17 is above 16" in warning for warning in plan.warnings)
    assert planned(lora="{rank = 16, alpha = 8}").warnings == ()


@pytest.mark.parametrize(
    "change",
    [
        {"lora": "{rank = 0}"},
        {"lora": "{alpha = 0}"},
        {"lora": "{dropout = 1.0}"},
        {"rollout_gpu_memory": "1.5"},
        {"rollout_tensor_parallel": "0"},
        {"prompt_max_response_tokens": "0"},
        {"optimiser_warmup_steps": "-1"},
        {"optimiser_weight_decay": "-1.0"},
        {"run_check_every": "-1"},
    ],
    ids=str,
)
def test_numbers_out_of_range_are_refused_with_the_field(change):
    with pytest.raises(UsageError, match=r"Expected `(int|float)`"):
        small_recipe(2, **change)


def test_a_warm_up_as_long_as_the_run_is_remarked(planned):
    plan = planned(optimiser_warmup_steps="2")
    assert any("never reaches its value" in warning for warning in plan.warnings)


# --- the model --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"architectures": None}, "names no architectures"),
        ({"model_type": "nonsense"}, "nonsense"),
        ({"num_attention_heads": 3}, "not a multiple of the number of attention heads"),
        ({"architectures": ["BertForSequenceClassification"]}, "generates no text"),
        ({"model_type": "t5"}, "cannot build a causal language model"),
        ({"num_hidden_layers": 3}, "lack 9 of the model's weights, such as model.layers.2"),
        ({"hidden_size": 32}, r"has shape \(33, 16\) in its file and \(33, 32\)"),
        ({"max_position_embeddings": 17}, "together more than the 17 of the model"),
        ({"max_position_embeddings": 1}, r"more than the 1 of the model\. Lower prompt\.max_resp"),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            "are quantised and cannot be trained",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_model_that_would_fail_at_loading_is_refused(word_model, tmp_path, config, reason):
    with pytest.raises(UsageError, match=reason):
        small_plan(changed_model(word_model, tmp_path / "model", **config))


def test_a_weight_file_cut_short_is_refused(word_model, tmp_path):
    model = changed_model(word_model, tmp_path / "model")
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UsageError, match=r"bytes long instead of"):
        small_plan(model)
    file.write_bytes(b"not weights")
    with pytest.raises(UsageError, match="is not a safetensors file"):
        small_plan(model)


def test_a_missing_shard_is_refused(word_model, tmp_path):
    model = changed_model(word_model, tmp_path / "model")
    weights = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    with pytest.raises(UsageError, match="1 of 2 weight files are missing, such as model-00002"):
        small_plan(model)


def test_answers_longer_than_the_context_are_refused(word_model, tmp_path):
    model = changed_model(word_model, tmp_path / "model", max_position_embeddings=18)
    assert small_plan(model).steps == 2  # a sampled response has one token
    with pytest.raises(UsageError, match="together more than the 18"):
        small_plan(model, "pif")


# --- GPUs and launchers -----------------------------------------------------------------------


@pytest.fixture
def gpus(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _at: "an old GPU")


def test_several_gpus_without_a_launcher_are_refused(gpus):
    recipe = small_recipe(2, run_device="auto", run_precision="float32")
    with pytest.raises(UsageError, match="4 GPUs are visible to one process"):
        check_device(recipe, {})
    check_device(recipe, {"LOCAL_RANK": "0"})
    check_device(small_recipe(2), {})  # on the CPU


def test_bfloat16_on_a_gpu_without_it_is_refused(gpus):
    with pytest.raises(UsageError, match=r"\(an old GPU\) does not compute in bfloat16"):
        check_device(small_recipe(2, run_device="auto", run_precision="auto"), {"LOCAL_RANK": "0"})


FSDP = {"WORLD_SIZE": "8", "ACCELERATE_USE_FSDP": "true"}
ZERO = {"WORLD_SIZE": "8", "ACCELERATE_USE_DEEPSPEED": "true"}


@pytest.mark.parametrize(
    ("environment", "name", "parts"),
    [
        ({}, "one process", (1, 1, 1)),
        ({"WORLD_SIZE": "8"}, "data parallel", (1, 1, 1)),
        ({**FSDP, "FSDP_VERSION": "2"}, "FSDP2", (8, 8, 8)),
        ({**FSDP, "FSDP_VERSION": "2", "FSDP_RESHARD_AFTER_FORWARD": "false"}, "FSDP2", (1, 8, 8)),
        ({**FSDP, "FSDP_SHARDING_STRATEGY": "FULL_SHARD"}, "FSDP1", (8, 8, 8)),
        ({**FSDP, "FSDP_SHARDING_STRATEGY": "SHARD_GRAD_OP"}, "FSDP1", (1, 8, 8)),
        ({**FSDP, "FSDP_SHARDING_STRATEGY": "NO_SHARD"}, "FSDP without shards", (1, 1, 1)),
        (
            {**FSDP, "FSDP_SHARDING_STRATEGY": "HYBRID_SHARD", "LOCAL_WORLD_SIZE": "4"},
            "FSDP within each node",
            (4, 4, 4),
        ),
        ({**ZERO, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}, "ZeRO-3", (8, 8, 8)),
        (ZERO, "ZeRO-2", (1, 8, 8)),
        ({**ZERO, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "1"}, "ZeRO-1", (1, 1, 8)),
    ],
)
def test_the_launcher_says_how_a_model_is_sharded(environment, name, parts):
    sharding = sharding_of(environment)
    assert sharding.name == name
    assert (sharding.weights, sharding.gradients, sharding.states) == parts


def test_the_stage_may_stand_in_a_file(tmp_path):
    file = tmp_path / "zero.json"
    file.write_text('{"zero_optimization": {"stage": 3}}')
    environment = {**ZERO, "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(file)}
    assert sharding_of(environment).weights == 8
    file.write_text("{}")
    with pytest.raises(UsageError, match=r"states no zero_optimization\.stage"):
        sharding_of(environment)


def test_whole_gradients_are_exchanged_through_a_copy():
    assert not Sharding().copies_gradients
    assert Sharding(processes=2).copies_gradients
    assert not Sharding(processes=2, gradients=2).copies_gradients
