"""Recipes: every number of a training run, in one TOML file, checked before anything is loaded.

A recipe says how to train; the objective (`pa-grpo`, `distill`, ...) says what is optimised.
Limits stand with the fields' types; what concerns several fields is checked in `recipe.py`. Shipped
recipes lie in `recipes/`; each number there names the place of the paper it comes from, or whose
default it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from unswayed.items import Task
from unswayed.reward_settings import RewardSettings

Count = Annotated[int, Meta(ge=0, lt=2**31)]
Positive = Annotated[int, Meta(ge=1, lt=2**31)]
Weight = Annotated[float, Meta(ge=0)]
AboveZero = Annotated[float, Meta(gt=0)]
Temperature = Annotated[float, Meta(ge=1e-9)]
Share = Annotated[float, Meta(gt=0, lt=1)]

Layouts = Literal["coupled", "all"]
"""What moves with a presentation: candidates through the labels; or also labels alone, and candidates
with their labels. Invariance is learned for what is shown."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a recipe."""


class Data(_Part, frozen=True):
    """What is trained on.

    Attributes:
        orders: Set of orders that makes a permutation group; None for the paper's: swap for two
            candidates, structured for more.
        layouts: What moves with a presentation; None for the objective's own.
        order_seed: Seed of `random:K` orders.
        held_out: Items kept apart to follow consistency during training; 0 for none.
        max_prompt_tokens: An item with a longer prompt in any presentation is dropped as a whole.
        without_gold: "stop" at an item whose gold names no candidate, or all of them, or "drop" and
            count.
        shuffle: Whether groups are shuffled, anew in each epoch.
    """

    orders: str | None = None
    layouts: Layouts | None = None
    order_seed: int = 0
    held_out: Count = 0
    max_prompt_tokens: Positive = 4096
    without_gold: Literal["stop", "drop"] = "stop"
    shuffle: bool = True


class Prompt(_Part, frozen=True):
    """How an item is put to the model.

    Attributes:
        style: A prompt of `unswayed.prompts`: direct, reasoning, ...
        template: Path of a template file; None for the model's own (a `prompt_template.jinja` in
            its folder, as the tiny judge has) or else the style's.
        labels: The answer symbols; None for A, B, ...
        think_tags, answer_tags: Tags that well-formed reasoning answers use.
        max_response_tokens: Cap on a sampled response; None takes the prompt's own.
    """

    style: str = "direct"
    template: str | None = None
    labels: tuple[str, ...] | None = None
    think_tags: tuple[str, str] = ("<think>", "</think>")
    answer_tags: tuple[str, str] = ("<answer>", "</answer>")
    max_response_tokens: Positive | None = None


class Rollout(_Part, frozen=True):
    """How responses are sampled.

    Attributes:
        samples: N, responses per presentation.
        temperature: Sampling temperature.
        engine: transformers, or vLLM in the training processes or on a server of its own.
        server_url: Address of the vLLM server.
        server_timeout: Seconds to wait until the server is up; trl's default.
        gpu_memory: Share of GPU memory for vLLM in the training processes.
        tensor_parallel: GPUs per vLLM model in the training processes; a server has its own.
        sleep: Whether vLLM in the training processes gives its memory back while a step is
            trained (trl's `vllm_enable_sleep_mode`); waking and sending all weights costs time.
        correction: Importance-sampling correction for vLLM, whose probabilities are not quite the
            trainer's (other kernels; an adapter merged in bfloat16). The paper has none; "none"
            trains as if responses were the policy's own. The others are trl's: ratios cut off or
            left out above `correction_cap`, by token or by sequence.
    """

    samples: Annotated[int, Meta(ge=1, le=4096)] = 8
    temperature: AboveZero = 1.0
    engine: Literal["transformers", "vllm-colocate", "vllm-server"] = "transformers"
    server_url: str | None = None
    server_timeout: AboveZero = 240.0
    gpu_memory: Share = 0.3
    tensor_parallel: Positive = 1
    sleep: bool = False
    correction: Literal[
        "none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"
    ] = "none"
    correction_cap: AboveZero = 3.0


class Optimiser(_Part, frozen=True):
    """The update.

    Attributes:
        items_per_step: Permutation groups per optimiser step, over all processes.
        learning_rate, weight_decay, max_grad_norm: AdamW and gradient clipping.
        schedule: Learning-rate schedule; `warmup_steps` come first.
        epochs: Passes over the data; `steps`, if given, decides instead.
        inner_updates: Optimiser steps per batch of responses.
        loss: How tokens are weighed. grpo is the paper's (Eq. 14 is a mean over responses: each
            counts the same, whatever its length); dapo, bnpo and dr_grpo are trl's and let long responses
            weigh more, so `pa-grpo` and `grpo` refuse them and `rl` takes them.
        clip: eta of the clipped objective.
        beta: Weight of the KL term to the untrained model.
        entropy: Weight of the entropy bonus, trl's: its mean is over the tokens of a backward pass, so
            long responses weigh more in it, whatever `loss` says.
    """

    items_per_step: Positive = 16
    learning_rate: AboveZero = 1e-5
    weight_decay: Weight = 0.01
    max_grad_norm: Weight = 1.0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: Count = 0
    epochs: AboveZero = 2.0
    steps: Positive | None = None
    inner_updates: Positive = 1
    loss: Literal["grpo", "dapo", "bnpo", "dr_grpo"] = "grpo"
    clip: AboveZero = 0.2
    beta: Weight = 0.001
    entropy: Weight = 0.001


class Lora(_Part, frozen=True):
    """Low-rank adapters; a recipe without this table trains all weights."""

    rank: Positive = 32
    alpha: Positive = 64
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    target: str = "all-linear"


class Pif(_Part, frozen=True):
    """The PIF-style loss; see `unswayed.training.pif`.

    Attributes:
        negatives: Wrong content x random symbol pairs per example.
        symbol_weight, content_weight: Weights of the two positive terms.
        separator: Text between symbol and content.
    """

    negatives: Count = 3
    symbol_weight: float = 1.0
    content_weight: float = 1.0
    separator: str = ". "


class Target(_Part, frozen=True):
    """What answers of one label are trained towards, by `rl-exact`, `distill` and `sft`.

    Attributes:
        distill: rl-exact: weight of the pull towards the model's own average before training.
        invariance: sft: weight of the variance over presentations.
        temperature: Of that average; None for what the gold there is speaks for, or else 1.
        gold_noise: sft: "auto" estimates how much of the gold is wrong, and weighs it against that
            average; "none" takes it as it is.
    """

    distill: Weight = 0.5
    invariance: Weight = 0.0
    temperature: Temperature | None = None
    gold_noise: Literal["none", "auto"] = "none"


class Chat(_Part, frozen=True):
    """Arguments of the chat template.

    Attributes:
        enable_thinking: False for models whose thinking mode is on by default (Qwen3); None leaves
            the argument out.
    """

    enable_thinking: bool | None = None


class Run(_Part, frozen=True):
    """Where and how it runs; nothing here changes what is learned, except seed and precision.

    Attributes:
        seed: Seed of sampling, shuffling and adapters.
        precision: auto is bfloat16 on a GPU and float32 on a CPU.
        device: auto, or cpu.
        attention: Attention kernel, in the words of transformers (sdpa, flash_attention_2, eager);
            None for its own choice.
        micro_batch: Sequences per process and backward pass: responses, or prompts with an answer.
        gradient_checkpointing: Trade time for memory.
        share_prompts: Compute each distinct prompt of a step once; see `training.shared_prompts`.
        save_every: Steps between checkpoints; auto for about ten in a run, and one in fifty steps
            at least.
        log_every, check_every: Steps between log lines, and checks of the held-out items. 0 is
            never, here and in `save_every`; the end is always saved and checked. A check asks at
            most a quarter as many responses as are trained on between two.
        keep: Checkpoints kept.
        loggers: Where metrics go beside the log file.
    """

    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu"] = "auto"
    attention: str | None = None
    micro_batch: Positive = 8
    gradient_checkpointing: bool = True
    share_prompts: bool = True
    save_every: Count | Literal["auto"] = "auto"
    log_every: Positive = 1
    check_every: Count = 0
    keep: Positive = 2
    loggers: tuple[str, ...] = ("tensorboard",)


class Recipe(_Part, frozen=True):
    """A whole recipe.

    Attributes:
        name: For run directories and model cards.
        task: The task it is for.
        model: The model it was made for; what is trained is chosen by the caller.
    """

    name: str
    task: Task
    model: str | None = None
    data: Data = Data()
    prompt: Prompt = Prompt()
    reward: RewardSettings = RewardSettings()
    rollout: Rollout = Rollout()
    optimiser: Optimiser = Optimiser()
    lora: Lora | None = None
    pif: Pif = Pif()
    target: Target = Target()
    chat: Chat = Chat()
    run: Run = Run()

    def identity(self) -> dict[str, object]:
        """Everything that decides what is learned, flat: `{"reward.lam": 1.0, ...}`.

        Without the template's path, which differs between machines: its content is in the prompt
        fingerprint that is recorded beside this.
        """
        return {
            key: value
            for key, value in _flattened(msgspec.to_builtins(self))
            if key != "prompt.template"
            and (not key.startswith("run.") or key in {"run.seed", "run.precision"})
        }

    def fingerprint(self) -> str:
        """sha256 over `identity`, as `sha256:<hex>`."""
        encoded = msgspec.json.encode(self.identity(), order="deterministic")
        return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def _flattened(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
