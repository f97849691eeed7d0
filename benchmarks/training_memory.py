"""Estimate the memory of a GPU that trains a published model, for the table of docs/train-on-gpus.md.

    python benchmarks/training_memory.py [--write]

The sizes of the models are those of their config.json; no weights are loaded. A sequence has the most
tokens that the shipped recipes allow, on a GPU of 80 GB.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, Final

from evidence_table import Table, add_write
from unswayed.training.architecture import shape_of
from unswayed.training.devices import Device
from unswayed.training.memory import Demand, Pass, estimate_memory
from unswayed.training.processes import Sharding
from unswayed.training.recipe import load_recipe

RECIPES: Final = {
    "Llama-3.1-8B": "pa-grpo-judge-llama-3.1-8b",
    "Qwen3-8B": "pa-grpo-judge-qwen3-8b",
    "Qwen3-32B": "pa-grpo-judge-qwen3-32b",
}
VLLM: Final = 0.4
"""Share of a GPU that vLLM takes beside training: `rollout.gpu_memory` of the recipes."""


def published_config(name: str) -> Any:
    """Return the sizes of a published model, as its config.json states them."""
    from transformers import LlamaConfig, Qwen3Config

    small = {"hidden_size": 4096, "num_attention_heads": 32}
    llama = {"vocab_size": 128256, "intermediate_size": 14336, "num_hidden_layers": 32}
    qwen = {"vocab_size": 151936, "head_dim": 128}
    middle = {"intermediate_size": 12288, "num_hidden_layers": 36}
    large = {
        "hidden_size": 5120,
        "num_attention_heads": 64,
        "intermediate_size": 25600,
        "num_hidden_layers": 64,
    }
    kind, sizes = {
        "Llama-3.1-8B": (LlamaConfig, {**small, **llama}),
        "Qwen3-8B": (Qwen3Config, {**small, **qwen, **middle}),
        "Qwen3-32B": (Qwen3Config, {**qwen, **large}),
    }[name]
    return kind(**sizes, num_key_value_heads=8, tie_word_embeddings=False)


def demand_of_step(name: str) -> Demand:
    """Return the load of one process that trains a published model by its recipe."""
    import torch
    from transformers import AutoModelForCausalLM

    recipe = load_recipe(RECIPES[name])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(published_config(name))
    return Demand(
        shape=shape_of(model, recipe, sampled=True),
        sharding=Sharding(),
        largest=Pass(recipe.run.micro_batch, recipe.prompt.max_response_tokens),
        prompt=recipe.data.max_prompt_tokens,
        sampled_at_once=0,
        fused=True,
        keeps_reference=False,
        checkpointing=recipe.run.gradient_checkpointing,
        vllm=VLLM,
        tensor_parallel=recipe.rollout.tensor_parallel,
        loaded=2,
        computed=2,
        device=Device(),
    )


def sharded(processes: int) -> Sharding:
    """Return the sharding of FSDP2 over processes, which is that of ZeRO-3."""
    return Sharding(
        name="FSDP2", processes=processes, weights=processes, gradients=processes, states=processes
    )


def cells(name: str) -> list[str]:
    """Return the row of a model: terms of one process, then its peak by launcher."""
    one = demand_of_step(name)
    apart = replace(one, vllm=0.0)

    def peak(demand: Demand, sharding: Sharding) -> str:
        estimate = estimate_memory(replace(demand, sharding=sharding))
        return f"{estimate.peak / 1e9:.1f}{'' if estimate.fits else ', no'}"

    terms = estimate_memory(one).terms
    kept = sum(terms[name] for name in ("weights", "gradients", "states"))
    every = (kept, terms["vllm"], terms["activations"] + terms["logits"])
    return [
        name,
        str(one.largest.sequences),
        *(f"{size / 1e9:.1f}" for size in every),
        peak(one, Sharding()),
        peak(one, Sharding(name="DDP", processes=8)),
        *(peak(demand, sharded(count)) for demand, count in ((one, 8), (apart, 8), (apart, 4))),
    ]


COLUMNS: Final = (
    "model",
    "`run.micro_batch`",
    "weights, gradients, states",
    "vLLM",
    "activations, logits",
    "1 process",
    "8, `ddp`",
    "8, `fsdp2` or `zero3`",
    "8, vLLM elsewhere",
    "4, vLLM elsewhere",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_write(parser, "performance")
    arguments = parser.parse_args()
    table = Table(COLUMNS)
    for name in RECIPES:
        table.add(*cells(name))
    if arguments.write:
        table.keep("performance", "training-memory")


if __name__ == "__main__":
    main()
