"""Memory that a training run needs on each GPU, from sizes alone: an estimate with its formula.

Bytes per GPU. r is the size of a number as weights are loaded (2 for bfloat16 under an adapter, 4 for
float32), c as it is computed with (2 in bfloat16), S the sequences of a backward pass, L their tokens,
T = S x L; h, f, q, k are the widths of a layer, its feed-forward part, its queries and its keys.

    weights      r x parameters / parts, and 4 x adapter / parts
    gradients    4 x trained / parts, twice where processes exchange whole gradients in buckets
    states       8 x trained / parts: two float32 numbers of AdamW for each
    reference    4 x parameters / parts: full training with beta > 0; an adapter is switched off instead
    casts        2 x parameters: bfloat16 copies of whole float32 weights, kept from forward to backward
    gathered     c x (2 largest layers + ends) of sharded weights, put together where they are used
    activations  without checkpointing: layers x A; with it: layers x r x T x h, and one A. A is
                   c x S x L^2   the mask
                 + T x (4 + r) x norms   what the layer normalises (2h, and q + k in Qwen3), in float32
                     and normalised; T x 4 x norms under an adapter, whose norms are frozen
                 + c x T x (2h + f)   inputs of linear layers; under an adapter in bfloat16 the
                     inputs of all adapted layers, each of which casts its own
                 + c x T x 4q   queries, keys and values as often as queries, and their answer
                 + c x T x 3f   the gate, its activation, and what it multiplies
                 and once 2c x T x f, the gradients of the layer that backward is in
    logits       fused (trl): c x min(S x response, 4096) x 32768, and 4 x S x response x h
                 whole: S x L x vocabulary x (c + 3 x 4), L being 1 where the answer is one token
    update       4 x trained / parts: what AdamW computes with, after activations are gone
    cache        r x 2 x layers x kv heads x head width x (prompt + response) x responses sampled at
                 once, in rollouts by transformers; vLLM's lies in its share
    vllm         rollout.gpu_memory x the GPU's memory, in rollouts by vllm-colocate

    asking       c x parameters + 4 x S x vocabulary, before training, where the untrained model answers:
                 whole, on the first process alone, with nothing of the run loaded yet

Weights, gradients, states, reference and vllm stay; of cache, update, and what forward and backward
hold (casts, gathered, activations, logits) only the largest counts. Parameter counts are exact. The
rest was compared with the peak of the tensors alive in training steps on a CPU: see `MEASURED`. The
CUDA context, the libraries' buffers and fragmentation are not in it, so a tenth of the GPU must stay
free.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from unswayed.training.architecture import Architecture
from unswayed.training.devices import BYTES, Device, computed_in, device_of, loaded_in
from unswayed.training.groups import Groups
from unswayed.training.processes import Sharding
from unswayed.training.recipe_parts import Recipe

GB: Final = 10**9
NODE: Final = 8
"""GPUs that advice to shard counts on, where a run has fewer processes."""

USABLE: Final = 0.9
"""Share of a GPU that a run may plan with."""

TILE_TOKENS, TILE_VOCABULARY = 4096, 32768
"""Size of the block of logits that trl's fused output layer holds (trl 1.16, `kernels`)."""

MEASURED: Final = (0.8, 1.25)
"""Estimated over measured peak of training steps: the lowest and highest ratio that
tests/training/test_memory.py admits (0.90 to 1.18 were seen), over Llama and Qwen3, all weights and adapters, with and
without checkpointing, in float32 and bfloat16."""


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
    sequences: int  # of one backward pass
    # prompt, response: most tokens of each
    prompt: int
    response: int
    answered: int | None = None  # tokens of a sequence whose logits are computed; None for all
    asks: bool = False  # whether the untrained model answers before training
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
        return self.prompt + self.response

    @property
    def vllm_sequences(self) -> int:
        """Sequences of full length whose cache fits beside the weights in vLLM's share, in bfloat16."""
        free = self.vllm * self.device.size - 2 * self.shape.parameters / self.tensor_parallel
        return int(free // (2 * self.shape.cache_values * self.length / self.tensor_parallel))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes that one GPU needs."""

    lasting: Mapping[str, int]  # what stays, by name
    # what comes and goes, by name, for each phase of a step; the largest phase counts
    passing: Mapping[str, Mapping[str, int]]
    asking: int  # of the untrained model, before anything else is loaded; 0 where it is not asked
    device: int  # memory of the GPU in bytes

    @property
    def phase(self) -> str:
        """The phase of a step that needs most."""
        return max(self.passing, key=lambda name: sum(self.passing[name].values()))

    @property
    def training(self) -> int:
        """Most bytes during a step."""
        return sum(self.lasting.values()) + sum(self.passing[self.phase].values())

    @property
    def peak(self) -> int:
        """Most bytes at any time."""
        return max(self.training, self.asking)

    @property
    def time(self) -> str:
        """When the peak is reached, after "the peak"."""
        if self.asking > self.training:
            return "on the first process before training, where the base answers"
        return f"while {self.phase}"

    @property
    def fits(self) -> bool:
        """True if the peak leaves a tenth of the GPU free."""
        return self.peak <= USABLE * self.device


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
    return Demand(
        shape=shape,
        sharding=sharding,
        sequences=min(largest.sequences, share) if sampled else largest.sequences,
        prompt=groups.counts.longest_prompt,
        response=largest.response,
        answered=largest.answered,
        asks=largest.asks,
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


def estimate_memory(demand: Demand) -> MemoryEstimate:
    """Estimate what one GPU needs; the formula is that of this file."""
    shape, sharding = demand.shape, demand.sharding
    loaded, computed, trained = demand.loaded, demand.computed, shape.trained
    whole = sharding.weights == 1
    gathered = 0 if whole else computed * (2 * shape.largest_layer + shape.ends)
    return MemoryEstimate(
        lasting={
            "weights": (loaded * shape.parameters + 4 * shape.adapter) // sharding.weights,
            "gradients": (1 + sharding.copies_gradients) * 4 * trained // sharding.gradients,
            "states": 8 * trained // sharding.states,
            "reference": demand.keeps_reference * loaded * shape.parameters // sharding.weights,
            "vllm": int(demand.vllm * demand.device.size),
        },
        passing={
            "learning": {
                "casts": computed * shape.parameters if whole and computed < loaded else 0,
                "gathered": gathered,
                "activations": _activations(demand),
                "logits": _logits(demand),
            },
            "updating": {"update": 4 * trained // sharding.states},
            "sampling": {
                "gathered": gathered,
                "cache": loaded * shape.cache_values * demand.sampled_at_once * demand.length,
            },
        },
        asking=demand.asks
        * (computed * shape.parameters + 4 * demand.sequences * shape.vocabulary),
        device=demand.device.size,
    )


def described(demand: Demand) -> dict[str, Any]:
    """Return the estimate as plain values: what it rests on, GB of each term, and a sentence of advice."""
    estimate, shape, sharding = estimate_memory(demand), demand.shape, demand.sharding
    return {
        "parameters": shape.parameters,
        "trained_parameters": shape.trained,
        "processes": sharding.processes,
        "sharding": sharding.name,
        "sequences": demand.sequences,
        "tokens_of_a_sequence": demand.length,
        "device_gb": _gb(demand.device.size),
        "lasting_gb": {name: _gb(size) for name, size in estimate.lasting.items()},
        "passing_gb": {
            phase: {name: _gb(size) for name, size in terms.items()}
            for phase, terms in estimate.passing.items()
        },
        "asking_gb": _gb(estimate.asking),
        "peak_gb": _gb(estimate.peak),
        "fits": estimate.fits,
        "advice": advice(demand),
    }


def advice(demand: Demand) -> str:
    """State if the run fits its GPU, and which changes would make it fit, in one or two sentences."""
    estimate = estimate_memory(demand)
    need = f"about {_gb(estimate.peak):.3g} GB {demand.device.text}, the peak {estimate.time}"
    crowded = ""
    if demand.vllm and demand.vllm_sequences < 1:
        crowded = (
            f" vLLM's share of {_gb(int(demand.vllm * demand.device.size)):.3g} GB holds its weights and no "
            "sequence: raise rollout.gpu_memory or rollout.tensor_parallel, or use vllm-server."
        )
    if estimate.fits:
        return f"fits: {need}.{crowded}"
    if estimate.asking > USABLE * estimate.device:
        return f"does not fit: {need}. Sharding does not divide it; use a smaller model.{crowded}"
    steps, changed = [], demand
    for text, change in _remedies(demand):
        alone, before = dataclasses.replace(demand, **change), estimate_memory(changed).peak
        if estimate_memory(alone).fits:
            steps, changed = [text], alone
            break
        changed = dataclasses.replace(changed, **change)
        saved = before - estimate_memory(changed).peak
        if saved > 0:
            steps.append(f"{text} (saves {_gb(saved):.3g} GB)")
        if estimate_memory(changed).fits:
            break
    after = estimate_memory(changed)
    result = f"then about {_gb(after.peak):.3g} GB" + ("" if after.fits else ", still too much")
    if not steps:
        return f"does not fit: {need}. Use a smaller model or an adapter (table lora).{crowded}"
    changes = "; ".join(steps)
    return f"does not fit: {need}. {changes[0].upper()}{changes[1:]}: {result}.{crowded}"


def _remedies(demand: Demand) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield changes that lower the demand, the cheapest first: what to write, and what it changes."""
    if not demand.checkpointing:
        yield "set run.gradient_checkpointing = true", {"checkpointing": True}
    if demand.sequences > 1:
        yield "set run.micro_batch = 1", {"sequences": 1}
    if demand.sharding.weights == 1:
        parts = max(demand.sharding.processes, NODE)
        sharding = Sharding(
            name="FSDP2", processes=parts, weights=parts, gradients=parts, states=parts
        )
        yield f"shard it over {parts} GPUs (the shipped FSDP2 launch file)", {"sharding": sharding}
    if demand.vllm:
        yield 'sample on other GPUs (rollout.engine = "vllm-server")', {"vllm": 0.0}
    if demand.sampled_at_once:
        yield (
            'sample with vLLM on other GPUs (rollout.engine = "vllm-server")',
            {"sampled_at_once": 0},
        )


def _activations(demand: Demand) -> int:
    """Count the bytes that forward leaves for backward, and the layer that backward is in."""
    shape, computed = demand.shape, demand.computed
    tokens = demand.sequences * demand.length
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    inputs = 2 * shape.hidden + shape.intermediate
    if shape.adapter:  # frozen layers keep nothing; adapters copy what is not in their precision
        inputs = shape.adapted if computed < 4 else min(inputs, shape.adapted)
    layer = computed * demand.sequences * demand.length**2 + tokens * (
        (4 if shape.adapter else 4 + demand.loaded) * shape.normed
        + computed * (inputs + 3 * shape.intermediate + 2 * queries + 2 * max(queries, keys))
    )
    in_backward = 2 * computed * tokens * shape.intermediate
    if demand.checkpointing:
        return shape.layers * demand.loaded * tokens * shape.hidden + layer + in_backward
    return shape.layers * layer + in_backward


def _logits(demand: Demand) -> int:
    if not demand.fused:
        answered = demand.length if demand.answered is None else demand.answered
        tokens = demand.sequences * answered
        return tokens * demand.shape.vocabulary * (demand.computed + 3 * 4)
    scored = demand.sequences * demand.response
    block = demand.computed * min(scored, TILE_TOKENS) * TILE_VOCABULARY
    return block + 4 * scored * demand.shape.hidden


def _gb(size: int) -> float:
    return round(size / GB, 3)
