"""Two gloo processes with weights sharded by FSDP2 learn what one process learns."""

import json
import shutil
from pathlib import Path

import pytest
from commands import run_processes
from small_models import colour_items, save_word_model

from unswayed.training.launch_files import launch_file, launch_names

SCRIPT = Path(__file__).with_name("several.py")
LORA = {"lora": "{rank = 4, alpha = 8}"}
PIF = {"pif_separator": " : "}
ITEMS, SLOW = 6, "1e-4"


def launch_environment(name):
    """What `accelerate launch` makes of a shipped file, by accelerate's own code."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_multi_gpu_env

    file = str(launch_file(name))
    asked = launch_command_parser().parse_args(
        ["--config_file", file, "--num_processes", "2", "train"]
    )
    return prepare_multi_gpu_env(_validate_launch_command(asked)[0])


def run(model, out, n_processes, settings, environment=None):
    """The program in processes of a launcher; what each wrote down, and said on stderr."""
    said = run_processes(
        SCRIPT, model, out, json.dumps(settings), processes=n_processes, launch=environment
    )
    assert ("stopping" in said[0][1]) == ("stop_in" in settings)
    records = [json.loads((out / f"rank{rank}.json").read_text()) for rank in range(n_processes)]
    return [{**record, "said": told} for record, (_, told) in zip(records, said, strict=True)]


def weights(folder):
    from safetensors.torch import load_file

    (file,) = folder.glob("*.safetensors")
    return load_file(file)


def largest_difference(one, other):
    """Over the weights that both have: tied ones are saved once or twice."""
    return max((one[key].float() - other[key].float()).abs().max() for key in one)


def measured(base, out, adapter):
    """Accuracy and consistency of the result, on the items it was trained on."""
    from unswayed.api import audit

    name = f"hf/{base}+lora={out}" if adapter else f"hf/{out}"
    result = audit(name, colour_items(ITEMS), methods="direct", resamples=100)
    row = result.metrics["methods"]["direct"]
    return {name: row[name]["value"] for name in ("accuracy", "consistency")}


@pytest.mark.parametrize(
    ("kind", "adapter"), [("llama", LORA), ("qwen3", {})], ids=["llama lora", "qwen3 full"]
)
def test_sharded_weights_learn_what_whole_ones_learn(tmp_path, kind, adapter):
    tied = kind == "qwen3"  # as its small models are
    model = save_word_model(tmp_path / "model", kind=kind, tied=tied)
    settings = {
        "items": ITEMS,
        "scripted": True,
        "optimiser_steps": "3",
        "optimiser_learning_rate": SLOW,
        **adapter,
    }
    (alone,) = run(model, tmp_path / "one", 1, settings)
    both = run(model, tmp_path / "two", 2, settings, launch_environment("fsdp2"))
    traces = (record["batches"] for record in (alone, *both))
    for batch, first, second in zip(*traces, strict=True):  # the same responses, split
        for key in ("rows", "ids"):
            assert batch[key] == first[key] + second[key]
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert largest_difference(one, two) < 1e-5
    if adapter:
        assert max(value.abs().max() for name, value in two.items() if "lora_B" in name) > 2e-4
    else:
        assert largest_difference(weights(model), two) > 2e-4
    assert measured(model, tmp_path / "one", adapter) == measured(model, tmp_path / "two", adapter)
    log = [json.loads(line) for line in (tmp_path / "two/train.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [1, 2, 3]


@pytest.mark.parametrize(
    ("launch", "changes"),
    [("fsdp2", LORA), (None, {}), (None, {"objective": "pif", **PIF})],
    ids=["sharded lora", "whole", "whole pif"],
)
def test_two_processes_resume_bit_for_bit(word_model, tmp_path, launch, changes):
    # Six items are three steps an epoch: step 4 is the first of the second epoch.
    environment = launch_environment(launch) if launch else None
    settings = {"items": ITEMS, "run_save_every": "4", "optimiser_steps": "5", **changes}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(word_model, whole, 2, settings, environment)
    shutil.copytree(whole / "checkpoint-4", cut / "checkpoint-4")
    run(word_model, cut, 2, settings, environment)
    log = [json.loads(line)["step"] for line in (cut / "train.jsonl").open()]
    assert log == [5]
    straight, resumed = weights(whole), weights(cut)
    assert all(straight[name].equal(resumed[name]) for name in straight)


def test_sigterm_saves_a_sharded_run_that_resumes_exactly(word_model, tmp_path):
    settings = {"items": ITEMS, "optimiser_steps": "3"}
    launch = launch_environment("fsdp2")
    run(word_model, tmp_path / "cut", 2, {**settings, "stop_in": 2}, launch)
    assert [path.name for path in (tmp_path / "cut").glob("checkpoint-*")] == ["checkpoint-1"]
    for folder in ("cut", "whole"):
        run(word_model, tmp_path / folder, 2, settings, launch)
    cut, whole = weights(tmp_path / "cut"), weights(tmp_path / "whole")
    assert all(whole[name].equal(cut[name]) for name in whole)


def test_an_adapter_in_float32_trains_over_weights_in_bfloat16(word_model, tmp_path):
    import torch

    settings = {
        "items": ITEMS,
        "scripted": True,  # so that the first pass is the reference's, as with vLLM
        "run_precision": "bfloat16",
        "run_gradient_checkpointing": "true",
        "optimiser_steps": "2",
        **LORA,
    }
    run(word_model, tmp_path, 2, settings, launch_environment("fsdp2"))
    adapter = weights(tmp_path)
    assert {value.dtype for value in adapter.values()} == {torch.float32}
    assert max(value.abs().max() for name, value in adapter.items() if "lora_B" in name) > 1e-3


def test_the_recipe_decides_the_precision_and_what_is_recomputed():
    assert set(launch_names()) == {"ddp", "fsdp2", "zero3"}
    for name in ("ddp", "fsdp2"):
        assert launch_environment(name)["ACCELERATE_MIXED_PRECISION"] == "no"
    fsdp2 = launch_environment("fsdp2")
    assert fsdp2["FSDP_VERSION"] == "2"
    assert fsdp2["FSDP_ACTIVATION_CHECKPOINTING"] == "false"
    assert fsdp2["FSDP_STATE_DICT_TYPE"] == "SHARDED_STATE_DICT"
