"""The memory estimate: exact counts, worked terms, and the peak of real training steps."""

import dataclasses
import functools
import json
import math
import weakref
from pathlib import Path

import pytest
from small_models import WORDS, save_word_model, small_plan, small_recipe

from training_memory import cells, published_config
from unswayed.training import memory
from unswayed.training.architecture import Architecture, build_skeleton, shape_of
from unswayed.training.devices import Device
from unswayed.training.memory import (
    MEASURED,
    REMEDIES,
    Demand,
    Pass,
    advice,
    described,
    estimate_memory,
    phases_of,
)
from unswayed.training.processes import Sharding
from unswayed.training.table import OBJECTIVES

GB = 10**9
ROOT = Path(__file__).parents[2]


@functools.cache
def shape_by_name(name, **changes):
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(published_config(name))
    return shape_of(model, small_recipe(2, **changes), sampled=True)


def demand(shape, **changes):
    """A judge's run of 4 x (4096 + 2048) tokens on an assumed GPU, under an adapter in bfloat16."""
    contents = {name: changes.pop(name) for name in Pass._fields if name in changes}
    usual = Demand(
        shape=shape,
        sharding=Sharding(),
        largest=Pass(4, 2048)._replace(**contents),
        prompt=4096,
        sampled_at_once=0,
        fused=True,
        keeps_reference=False,
        checkpointing=True,
        loaded=2,
        computed=2,
        device=Device(),
    )
    return dataclasses.replace(usual, **changes)


TINY = Architecture(
    parameters=1000,
    adapter=0,
    layers=2,
    hidden=8,
    intermediate=16,
    heads=4,
    kv_heads=2,
    head_dim=2,
    vocabulary=10,
    largest_layer=300,
    ends=400,
    normed=16,
    adapted=0,
    largest_rank=0,
    context=None,
)


# --- counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "billions", "adapter"),
    [
        ("Llama-3.1-8B", 8.03, 83_886_080),
        ("Qwen3-8B", 8.19, 87_293_952),
        ("Qwen3-32B", 32.76, 268_435_456),
    ],
)
def test_published_models_have_their_published_size(name, billions, adapter):
    shape = shape_by_name(name, lora="{rank = 32, alpha = 64}")
    assert round(shape.parameters / 1e9, 2) == billions
    assert shape.adapter == shape.trained == adapter
    assert shape_by_name(name).trained == shape.parameters


def save_larger_model(folder, kind, *, hidden=128):
    """A model of some layers with the words of the tests."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

    save_word_model(folder)
    torch.manual_seed(0)
    config = {"llama": LlamaConfig, "qwen3": Qwen3Config}[kind](
        vocab_size=len(WORDS),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=hidden // 8 if kind == "llama" else hidden // 4,
        max_position_embeddings=256,
        tie_word_embeddings=kind == "qwen3",
        bos_token_id=None,
        eos_token_id=4,
        pad_token_id=0,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("lora", [{}, {"lora": "{rank = 4, alpha = 8}"}], ids=["full", "lora"])
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_counts_equal_those_of_the_loaded_model(tmp_path, kind, lora):
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM

    from unswayed.training.trainer_arguments import lora_config

    folder = save_larger_model(tmp_path / "model", kind)
    recipe = small_recipe(2, **lora)
    shape = shape_of(build_skeleton(folder), recipe, sampled=True)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())
    if lora:
        model = get_peft_model(model, lora_config(recipe))
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    assert shape.trained == trained


# --- terms, by hand ---------------------------------------------------------------------------


LASTING = ("weights", "gradients", "states", "reference", "vllm")


def lasting(demand):
    """The terms that are in every phase of a step, in the order of `LASTING`."""
    phases = phases_of(demand)
    shared = set.intersection(*(set(phases[name]) for name in ("learning", "updating", "sampling")))
    assert shared == set(LASTING)
    return tuple(phases["updating"][name] for name in LASTING)


def test_what_lasts_is_cut_into_its_parts():
    full = demand(TINY, loaded=4, keeps_reference=True, vllm=0.5)
    assert lasting(full) == (4000, 4000, 8000, 4000, 40 * GB)
    parts = Sharding(name="ZeRO-3", processes=4, weights=4, gradients=4, states=4)
    cut = dataclasses.replace(full, sharding=parts, vllm=0.0)
    assert lasting(cut) == (1000, 1000, 2000, 1000, 0)
    doubled = dataclasses.replace(full, sharding=Sharding(processes=4))
    assert lasting(doubled)[1] == 8000


def test_an_adapter_has_gradients_and_states_of_its_own_alone():
    shape = dataclasses.replace(TINY, adapter=50, adapted=60)
    assert lasting(demand(shape)) == (2200, 200, 400, 0, 0)


def test_what_passes_follows_the_formula():
    full = demand(TINY, sequences=3, prompt=3, response=2, sampled_at_once=7, loaded=4)
    passing = {
        phase: {name: size for name, size in terms.items() if name not in LASTING}
        for phase, terms in phases_of(full).items()
    }
    tokens = 15
    layer = 2 * 3 * 25 + tokens * (8 * 16 + 2 * (2 * 8 + 16) + 2 * (4 * 8) + 2 * (3 * 16))
    assert passing["learning"] == {
        "casts": 2000,  # bfloat16 copies of float32 weights
        "gathered": 0,
        "activations": 2 * 4 * tokens * 8 + layer + 2 * 2 * tokens * 16,
        "logits": 2 * 6 * 32768 + 4 * 6 * 8,
    }
    assert passing["updating"] == {"update": 4000}
    assert passing["sampling"] == {"gathered": 0, "cache": 4 * (2 * 2 * 2 * 2) * 7 * 5}
    assert {name for terms in phases_of(full).values() for name in terms} == set(REMEDIES)


def test_checkpointing_fusion_and_small_batches_save_memory():
    usual = estimate_memory(demand(shape_by_name("Qwen3-8B", lora="{}"))).peak
    for costly in ({"checkpointing": False}, {"fused": False}, {"sequences": 8}):
        assert estimate_memory(demand(shape_by_name("Qwen3-8B", lora="{}"), **costly)).peak > usual


# --- against real steps -----------------------------------------------------------------------


def peak_of(run):
    """Most bytes of tensors alive at once beyond those alive before, by following every storage."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    alive = set()
    held = most = 0

    def release(key, size):
        nonlocal held
        alive.remove(key)
        held -= size

    class Followed(TorchDispatchMode):
        def __torch_dispatch__(self, operation, _types, given=(), named=None):
            nonlocal held, most
            known = {
                leaf.untyped_storage()._cdata
                for leaf in tree_leaves((given, named))
                if isinstance(leaf, torch.Tensor)
            }
            result = operation(*given, **(named or {}))
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    storage = leaf.untyped_storage()
                    key = storage._cdata
                    if key not in known and key not in alive:
                        size = storage.nbytes()
                        alive.add(key)
                        held += size
                        weakref.finalize(storage, release, key, size)
            most = max(most, held)
            return result

    with Followed():
        run()
    return most


def size_of(model):
    return sum(weight.numel() * weight.element_size() for weight in model.parameters())


@pytest.mark.parametrize(
    ("kind", "lora", "checkpointing", "micro"),
    [
        ("llama", False, False, 16),  # the highest ratio
        ("qwen3", True, True, 1),  # sampling needs most
    ],
)
def test_the_estimate_is_near_the_peak_of_real_steps(
    tmp_path, monkeypatch, kind, lora, checkpointing, micro
):
    import trl.trainer.utils

    # trl's block of logits would outweigh a small model, and so hide the other terms.
    monkeypatch.setattr(trl.trainer.utils, "_CHUNKED_LOGPROB_CHUNK_SIZE", 64)
    monkeypatch.setattr(memory, "TILE_VOCABULARY", 64)
    plan = small_plan(
        save_larger_model(tmp_path / "model", kind),
        run_micro_batch=str(micro),
        run_gradient_checkpointing=str(checkpointing).lower(),
        run_precision="float32",
        prompt_max_response_tokens="32",
        optimiser_steps="1" if lora else "2",  # what the optimiser holds comes after the first
        **({"lora": "{rank = 8, alpha = 16}"} if lora else {}),
    )
    trainer = OBJECTIVES.load("pa-grpo").build(plan, tmp_path / "out")
    trainer.generation_config.min_new_tokens = plan.groups.max_tokens  # the longest, as estimated
    models = size_of(trainer.model) + (size_of(trainer.ref_model) if trainer.ref_model else 0)
    estimate = estimate_memory(plan.demand)
    assert estimate.phase == ("sampling" if micro == 1 else "learning")
    lowest, highest = MEASURED
    ratio = estimate.peak / (models + peak_of(trainer.train))
    assert lowest < ratio < highest


@pytest.mark.parametrize(
    ("objective", "kind", "lora", "checkpointing", "precision"),
    [
        ("rl-exact", "llama", False, False, "float32"),
        ("distill", "llama", True, False, "float32"),
        ("sft", "qwen3", False, True, "bfloat16"),
    ],
)
def test_the_estimate_is_near_the_peak_where_nothing_is_sampled(
    tmp_path, objective, kind, lora, checkpointing, precision
):
    plan = small_plan(
        save_larger_model(tmp_path / "model", kind),
        objective,
        16,
        run_micro_batch="32",
        run_gradient_checkpointing=str(checkpointing).lower(),
        run_precision=precision,
        optimiser_items_per_step="16",
        data_layouts="coupled",
        **({"lora": "{rank = 8, alpha = 16}"} if lora else {}),
    )
    trainer = OBJECTIVES.load(objective).build(plan, tmp_path / "out")
    assert plan.demand.largest.sequences == 32
    estimate = estimate_memory(plan.demand)
    assert estimate.phase == "learning"
    lowest, highest = MEASURED
    ratio = estimate.peak / (size_of(trainer.model) + peak_of(trainer.train))
    assert lowest < ratio < highest


# --- advice -----------------------------------------------------------------------------------


def test_the_32b_model_needs_shards():
    shape = shape_by_name("Qwen3-32B", lora="{rank = 32, alpha = 64}")
    whole = demand(shape, sequences=2, vllm=0.4, tensor_parallel=4)
    assert not estimate_memory(whole).fits
    assert advice(whole).startswith("does not fit: about 117 GB per GPU of 80 GB")
    assert "Largest terms: weights 66.6 GB: shard over more GPUs (the ship" in advice(whole)
    parts = Sharding(name="FSDP2", processes=8, weights=8, gradients=8, states=8)
    sharded = dataclasses.replace(whole, sharding=parts)
    assert estimate_memory(sharded).fits
    assert advice(sharded).startswith("fits: about ")
    assert whole.vllm_sequences > 1


def test_the_base_answers_whole_on_the_first_process():
    shape = shape_by_name("Qwen3-32B", lora="{rank = 32, alpha = 64}")
    parts = Sharding(name="FSDP2", processes=8, weights=8, gradients=8, states=8)
    shared = demand(shape, sharding=parts, sequences=2, answered=1)
    asking = dataclasses.replace(shared, largest=shared.largest._replace(asks=True))
    assert estimate_memory(shared).peak < 30e9
    assert estimate_memory(asking).peak == pytest.approx(65.5e9, rel=0.01)
    assert "on the first process before training, where the base answers" in advice(asking)
    small = dataclasses.replace(asking, device=asking.device._replace(size=40 * 10**9))
    assert "GB: use a smaller model: sharding does not divide this." in advice(small)


def test_documented_memory_is_that_of_the_estimate():
    kept = json.loads((ROOT / "docs/evidence/data/performance.json").read_text(encoding="utf-8"))
    rows = kept["tables"]["training-memory"]["rows"]
    assert [cells(row[0]) for row in rows] == rows


def test_advice_names_what_lowers_the_largest_terms():
    text = advice(demand(shape_by_name("Qwen3-8B", lora="{rank = 32, alpha = 64}"), sequences=32))
    _, _, named = text.partition(" Largest terms: ")
    assert [term.split()[0] for term in named.split("; ")] == ["activations", "weights"]
    assert "GB: lower run.micro_batch, and set run.gradient_checkpointing = true;" in named


def test_vllm_without_room_for_sequence_is_reported():
    shape = shape_by_name("Qwen3-8B", lora="{}")
    crowded = demand(shape, vllm=0.2)  # 16 GB for 16.4 GB of weights
    assert crowded.vllm_sequences < 1
    assert "raise rollout.gpu_memory" in advice(crowded)
    assert "raise rollout.gpu_memory" not in advice(demand(shape, vllm=0.3))


def test_a_plan_shows_the_estimate_as_plain_values(planned):
    plan = planned()
    shown = plan.described()["memory"]
    assert shown == described(plan.demand)
    assert shown["parameters"] == shown["trained_parameters"] == plan.demand.shape.parameters
    assert shown["sequences"] == 8
    assert shown["tokens_of_a_sequence"] == 17 + 1
    assert shown["fits"]
    assert "of main memory" in shown["advice"]
    assert math.isclose(shown["peak_gb"], estimate_memory(plan.demand).peak / GB, abs_tol=5e-4)


def test_a_run_that_does_not_fit_is_warned_of(planned, monkeypatch):
    monkeypatch.setattr(memory, "device_of", lambda _recipe: Device(10**4, "per GPU of 10 kB"))
    assert any(warning.startswith("memory: does not fit") for warning in planned().warnings)
