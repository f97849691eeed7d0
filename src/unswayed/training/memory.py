"""Memory that a training run needs on each GPU, from sizes alone: an estimate with its formula.

Lasting terms stay; of the phases of a step only the one with the largest terms counts. Parameter counts
are exact. The rest was compared with the peak of the tensors alive in training steps on a CPU: see
`MEASURED`. The CUDA context, the libraries' buffers and fragmentation are not in it, so a tenth of the
GPU must stay free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from unswayed.training.architecture import Architecture
from unswayed.training.devices import BYTES, Device, computed_in, device_of, loaded_in
from unswayed.training.groups import Groups
from unswayed.training.processes import Sharding
from unswayed.training.recipe_parts import Recipe

USABLE: Final = 0.9
"""Share of a GPU that a run may plan with."""

TILE_TOKENS, TILE_VOCABULARY = 4096, 32768
"""Size of the block of logits that trl's fused output layer holds (trl 1.16, `kernels`)."""

MEASURED: Final = (0.8, 1.3)
"""Estimated over measured peak of training steps: the lowest and highest ratio that
tests/training/test_memory.py admits (0.90 to 1.26 were seen), over Llama and Qwen3, all weights and adapters, with and
without checkpointing, in float32 and bfloat16."""


_ADAPTER: Final = (
    "shard over more GPUs (the shipped FSDP2 launch file), or train an adapter (table lora)"
)
REMEDIES: Final[Mapping[str, str]] = {
    "weights": "shard over more GPUs (the shipped FSDP2 launch file), or use a smaller model",
    "gradients": _ADAPTER,
    "states": _ADAPTER,
    "reference": _ADAPTER,
    "update": _ADAPTER,
    "casts": "train an adapter (table lora)",
    "gathered": "use a smaller model",
    "activations": "lower run.micro_batch, and set run.gradient_checkpointing = true",
    "logits": "lower run.micro_batch",
    "cache": 'sample with vLLM on other GPUs (rollout.engine = "vllm-server")',
    "vllm": 'lower rollout.gpu_memory, or sample on other GPUs (rollout.engine = "vllm-server")',
    "asking": "use a smaller model: sharding does not divide this",
}
"""Terms of an estimate, and what lowers each."""

NAMED: Final = 0.1
"""Share of the peak from which a term is named in the advice."""


class Pass(NamedTuple):
    """Largest contents of a backward pass."""

    sequences: int  # prompts with a response
    response: int  # tokens of a response, sampled or given
    # tokens of a sequence whose probabilities are computed; None for all
    answered: int | None = None
    asks: bool = False  # whether the untrained model answers first, on the first process


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Load of a run on one process and its GPU."""

    shape: Architecture  # the model
    sharding: Sharding  # how processes share it
    largest: Pass  # its largest backward pass
    prompt: int  # most tokens of a prompt
    sampled_at_once: int  # responses that transformers samples at once; 0 where it samples none
    fused: bool  # whether logits are computed in blocks and never held whole
    keeps_reference: bool  # whether a second model is held to measure the distance from
    checkpointing: bool  # whether activations are computed anew in backward
    # share of the GPU that vLLM takes in the training processes; 0 where it takes none
    vllm: float = 0.0
    tensor_parallel: int = 1  # GPUs that share one model of vLLM
    loaded: int  # bytes of a number as base weights are loaded
    computed: int  # bytes of a number as it is computed with
    device: Device  # what it computes on

    @property
    def length(self) -> int:
        """Most tokens of a sequence."""
        return self.prompt + self.largest.response

    @property
    def vllm_sequences(self) -> int:
        """Sequences of full length whose cache fits beside the weights in vLLM's share, in bfloat16."""
        free = self.vllm * self.device.size - 2 * self.shape.parameters / self.tensor_parallel
        return int(free // (2 * self.shape.cache_values * self.length / self.tensor_parallel))


class MemoryEstimate(NamedTuple):
    """Bytes that one GPU needs at the peak."""

    phase: str  # when the peak is reached, of `phases_of`
    terms: Mapping[str, int]  # what lies on the GPU then, by name, largest first
    peak: int  # their sum
    fits: bool  # whether the peak leaves a tenth of the GPU free


def demand_of(
    shape: Architecture,
    recipe: Recipe,
    groups: Groups,
    sharding: Sharding,
    *,
    largest: Pass,
    sampled: bool,
) -> Demand:
    """Return the load of a run on one process and its GPU."""
    device, rollout, run = device_of(recipe), recipe.rollout, recipe.run
    responses = recipe.optimiser.items_per_step * groups.n_presentations * rollout.samples
    share = -(-responses // sharding.processes)
    if sampled:
        largest = largest._replace(sequences=min(largest.sequences, share))
    return Demand(
        shape=shape,
        sharding=sharding,
        largest=largest,
        prompt=groups.counts.longest_prompt,
        sampled_at_once=share if sampled and rollout.engine == "transformers" else 0,
        fused=sampled and bool(find_spec("trl") and find_spec("trl.kernels")),
        keeps_reference=sampled and recipe.lora is None and recipe.optimiser.beta > 0,
        checkpointing=run.gradient_checkpointing,
        vllm=rollout.gpu_memory if sampled and rollout.engine == "vllm-colocate" else 0.0,
        tensor_parallel=rollout.tensor_parallel,
        loaded=BYTES[loaded_in(recipe, on_gpu=device.is_gpu)],
        computed=BYTES[computed_in(recipe, on_gpu=device.is_gpu)],
        device=device,
    )


def phases_of(demand: Demand) -> dict[str, dict[str, int]]:
    """Estimate the bytes on one GPU in each phase of a run, by name of the term."""
    shape, sharding = demand.shape, demand.sharding
    loaded, computed, trained = demand.loaded, demand.computed, shape.trained
    whole = sharding.weights == 1
    # sharded weights are put together where they are used
    gathered = 0 if whole else computed * (2 * shape.largest_layer + shape.ends)
    lasting = {
        "weights": (loaded * shape.parameters + 4 * shape.adapter) // sharding.weights,
        # twice where processes exchange whole gradients in buckets
        "gradients": (1 + sharding.copies_gradients) * 4 * trained // sharding.gradients,
        "states": 8 * trained // sharding.states,  # two float32 numbers of AdamW for each
        # of full training with beta > 0; an adapter is switched off instead
        "reference": demand.keeps_reference * loaded * shape.parameters // sharding.weights,
        "vllm": int(demand.vllm * demand.device.size),
    }
    return {
        "learning": {
            **lasting,
            # bfloat16 copies of whole float32 weights, kept from forward to backward
            "casts": computed * shape.parameters if whole and computed < loaded else 0,
            "gathered": gathered,
            "activations": _activations(demand),
            "logits": _logits(demand),
        },
        # what AdamW computes with, after activations are gone
        "updating": {**lasting, "update": 4 * trained // sharding.states},
        "sampling": {
            **lasting,
            "gathered": gathered,
            "cache": loaded * shape.cache_values * demand.sampled_at_once * demand.length,
        },
        # the untrained model whole, on the first process, with nothing of the run loaded yet
        "asking": {
            "asking": demand.largest.asks
            * (computed * shape.parameters + 4 * demand.largest.sequences * shape.vocabulary)
        },
    }


def estimate_memory(demand: Demand) -> MemoryEstimate:
    """Estimate what one GPU needs: the largest of the phases."""
    phases = phases_of(demand)
    phase = max(phases, key=lambda name: sum(phases[name].values()))
    terms = dict(sorted(phases[phase].items(), key=lambda term: -term[1]))
    peak = sum(terms.values())
    return MemoryEstimate(phase, terms, peak, peak <= USABLE * demand.device.size)


def described(demand: Demand) -> dict[str, Any]:
    """Return the estimate as plain values: what it rests on, GB of each term at the peak, and advice."""
    estimate, shape, sharding = estimate_memory(demand), demand.shape, demand.sharding
    return {
        "parameters": shape.parameters,
        "trained_parameters": shape.trained,
        "processes": sharding.processes,
        "sharding": sharding.name,
        "sequences": demand.largest.sequences,
        "tokens_of_a_sequence": demand.length,
        "device_gb": _gb(demand.device.size),
        "phase": estimate.phase,
        "terms_gb": {name: _gb(size) for name, size in estimate.terms.items()},
        "peak_gb": _gb(estimate.peak),
        "fits": estimate.fits,
        "advice": advice(demand),
    }


def advice(demand: Demand) -> str:
    """State if the run fits its GPU, and what lowers each large term if it does not."""
    phase, terms, peak, fits = estimate_memory(demand)
    when = f"while {phase}"
    if phase == "asking":
        when = "on the first process before training, where the base answers"
    text = f"about {_gb(peak):.3g} GB {demand.device.text}, the peak {when}."
    if demand.vllm and demand.vllm_sequences < 1:
        text += (
            f" vLLM's share of {_gb(int(demand.vllm * demand.device.size)):.3g} GB holds its weights and no sequence: raise "
            "rollout.gpu_memory or rollout.tensor_parallel, or use vllm-server."
        )
    if fits:
        return f"fits: {text}"
    lowered = "; ".join(
        f"{name} {_gb(size):.3g} GB: {REMEDIES[name]}"
        for name, size in terms.items()
        if size >= NAMED * peak
    )
    return f"does not fit: {text} Largest terms: {lowered}."


def _activations(demand: Demand) -> int:
    """Count the bytes that forward leaves for backward, and the layer that backward is in.

    A layer keeps its mask; what it normalises (2 widths, and queries and keys in Qwen3), in float32 and
    normalised; the inputs of its linear layers; queries, keys and values as often as queries, and their
    answer; the gate, its activation, and what it multiplies. With checkpointing all layers keep their
    input, and one keeps the rest.
    """
    shape, computed = demand.shape, demand.computed
    sequences = demand.largest.sequences
    tokens = sequences * demand.length
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    inputs = 2 * shape.hidden + shape.intermediate
    if shape.adapter:  # frozen layers keep nothing; adapters copy what is not in their precision
        inputs = shape.adapted if computed < 4 else min(inputs, shape.adapted)
    layer = computed * sequences * demand.length**2 + tokens * (
        (4 if shape.adapter else 4 + demand.loaded) * shape.normed
        + computed * (inputs + 3 * shape.intermediate + 2 * queries + 2 * max(queries, keys))
    )
    in_backward = 2 * computed * tokens * shape.intermediate
    if demand.checkpointing:
        return shape.layers * demand.loaded * tokens * shape.hidden + layer + in_backward
    return shape.layers * layer + in_backward


def _logits(demand: Demand) -> int:
    """Count the bytes of logits: a block where trl fuses the output layer, else those of all answered tokens."""
    largest = demand.largest
    if not demand.fused:
        tokens = largest.sequences * (largest.answered or demand.length)
        return tokens * demand.shape.vocabulary * (demand.computed + 3 * 4)
    scored = largest.sequences * largest.response
    block = demand.computed * min(scored, TILE_TOKENS) * TILE_VOCABULARY
    return block + 4 * scored * demand.shape.hidden


def _gb(size: int) -> float:
    return round(size / 10**9, 3)
