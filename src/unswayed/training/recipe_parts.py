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

from unswayed.model.items import Task
from unswayed.training.reward_settings import RewardSettings

Count = Annotated[int, Meta(ge=0, lt=2**31)]
Positive = Annotated[int, Meta(ge=1, lt=2**31)]
Weight = Annotated[float, Meta(ge=0)]
AboveZero = Annotated[float, Meta(gt=0)]
Temperature = Annotated[float, Meta(ge=1e-9)]
Share = Annotated[float, Meta(gt=0, lt=1)]

Layouts = Literal["coupled", "all"]
"""Parts that move with a presentation: candidates through the labels; or also labels alone, and candidates
with their labels. Invariance is learned for what is shown."""


Plain = bool | int | float | str
EngineTable = dict[str, Plain | list[Plain]]
"""An engine's own settings by name, such as `"trainer.nnodes" = 2`."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a recipe."""


class DataTable(_Part, frozen=True):
    """Training data."""

    # set of orders that makes a permutation group; None for the paper's: swap for two candidates,
    # structured for more
    orders: str | None = None
    layouts: Layouts | None = None  # None for the objective's own
    order_seed: int = 0  # of `random:K` orders
    held_out: Count = 0  # items kept apart to follow consistency during training
    # items file that is followed in their place and never trained on
    evaluation: str | None = None
    # an item with a longer prompt in any presentation is dropped as a whole
    max_prompt_tokens: Positive = 4096
    # at an item whose gold names no candidate, or all of them
    without_gold: Literal["stop", "drop"] = "stop"
    shuffle: bool = True  # whether groups are shuffled, anew in each epoch


class PromptTable(_Part, frozen=True):
    """Prompt of an item."""

    style: str = "direct"  # a prompt of `unswayed.prompts`
    # path of a template file; None for the model's own (a `prompt_template.jinja` in its folder, as
    # the tiny judge has) or else the style's
    template: str | None = None
    labels: tuple[str, ...] | None = None  # None for A, B, ...
    # tags that well-formed reasoning answers use
    think_tags: tuple[str, str] = ("<think>", "</think>")
    answer_tags: tuple[str, str] = ("<answer>", "</answer>")
    max_response_tokens: Positive | None = None  # None takes the prompt's own


class Rollout(_Part, frozen=True):
    """Sampling of responses."""

    samples: Annotated[int, Meta(ge=1, le=4096)] = 8  # N, responses per presentation
    temperature: AboveZero = 1.0
    # transformers, or vLLM in the training processes or on a server of its own
    engine: Literal["transformers", "vllm-colocate", "vllm-server"] = "transformers"
    server_url: str | None = None
    server_timeout: AboveZero = 240.0  # seconds to wait until the server is up; trl's default
    gpu_memory: Share = 0.3  # share of GPU memory for vLLM in the training processes
    tensor_parallel: Positive = 1  # GPUs per vLLM model in the training processes
    # whether vLLM in the training processes gives its memory back while a step is trained (trl's
    # `vllm_enable_sleep_mode`); waking and sending all weights costs time
    sleep: bool = False
    # importance-sampling correction for vLLM, whose probabilities are not quite the trainer's (other
    # kernels; an adapter merged in bfloat16). The paper has none; "none" trains as if responses were
    # the policy's own. The others are trl's: ratios cut off or left out above `correction_cap`, by
    # token or by sequence
    correction: Literal[
        "none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"
    ] = "none"
    correction_cap: AboveZero = 3.0


class Optimiser(_Part, frozen=True):
    """The update."""

    items_per_step: Positive = 16  # permutation groups per optimiser step, over all processes
    # learning_rate, weight_decay, max_grad_norm: AdamW and gradient clipping
    learning_rate: AboveZero = 1e-5
    weight_decay: Weight = 0.01
    max_grad_norm: Weight = 1.0
    schedule: Literal["constant", "linear", "cosine"] = "constant"  # after `warmup_steps`
    warmup_steps: Count = 0
    epochs: AboveZero = 2.0
    steps: Positive | None = None  # decides in the place of `epochs`
    inner_updates: Positive = 1  # optimiser steps per batch of responses
    # How tokens are weighed. grpo is the paper's (Eq. 14 is a mean over responses: each counts the
    # same, whatever its length); the others are trl's and let long responses weigh more, so `pa-grpo`
    # and `grpo` refuse them and `rl` takes them
    loss: Literal["grpo", "dapo", "bnpo", "dr_grpo"] = "grpo"
    clip: AboveZero = 0.2  # eta of the clipped objective
    beta: Weight = 0.001  # weight of the KL term to the untrained model
    # weight of the entropy bonus, trl's: its mean is over the tokens of a backward pass, so long
    # responses weigh more in it, whatever `loss` says
    entropy: Weight = 0.001


class Lora(_Part, frozen=True):
    """Low-rank adapters; a recipe without this table trains all weights."""

    rank: Positive = 32
    alpha: Positive = 64
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    target: str = "all-linear"


class Pif(_Part, frozen=True):
    """The PIF-style loss; see `unswayed.training.pif`."""

    negatives: Count = 3  # wrong content x random symbol pairs per example
    # symbol_weight, content_weight: of the two positive terms
    symbol_weight: float = 1.0
    content_weight: float = 1.0
    separator: str = ". "  # between symbol and content


class Target(_Part, frozen=True):
    """Target of answers of one label, for `rl-exact`, `distill` and `sft`."""

    distill: Weight = 0.5  # rl-exact: of the pull towards the model's own average before training
    invariance: Weight = 0.0  # sft: of the variance over presentations
    # of that average; None for what the gold there is speaks for, or else 1
    temperature: Temperature | None = None
    # sft: "auto" estimates how much of the gold is wrong, and weighs it against that average
    gold_noise: Literal["none", "auto"] = "none"


class Chat(_Part, frozen=True):
    """Arguments of the chat template."""

    # False for models whose thinking mode is on by default (Qwen3); None leaves it out
    enable_thinking: bool | None = None


class RunTable(_Part, frozen=True):
    """Place and manner of a run; nothing here changes what is learned, except seed and precision."""

    seed: int = 0  # of sampling, shuffling and adapters
    # auto is bfloat16 on a GPU and float32 on a CPU
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu"] = "auto"
    # in the words of transformers (sdpa, flash_attention_2, eager); None for its own choice
    attention: str | None = None
    # sequences per process and backward pass: responses, or prompts with an answer
    micro_batch: Positive = 8
    gradient_checkpointing: bool = True  # trade time for memory
    # compute each distinct prompt of a step once (`shared_prompts`); auto: on a CPU, where it was measured
    share_prompts: Literal["auto"] | bool = "auto"
    # Steps between checkpoints (auto for about ten in a run, and one in fifty steps at least), log
    # lines and checks of the held-out items. 0 is never; the end is always saved and checked. A
    # check asks at most a quarter as many responses as are trained on between two
    save_every: Count | Literal["auto"] = "auto"
    log_every: Positive = 1
    check_every: Count = 0
    keep: Positive = 2  # checkpoints kept
    loggers: tuple[str, ...] = ("tensorboard",)  # where metrics go beside the log file


class Recipe(_Part, frozen=True):
    """A whole recipe."""

    name: str  # for run directories and model cards
    task: Task  # that it is for
    model: str | None = None  # that it was made for; what is trained is chosen by the caller
    data: DataTable = DataTable()
    prompt: PromptTable = PromptTable()
    reward: RewardSettings = RewardSettings()
    rollout: Rollout = Rollout()
    optimiser: Optimiser = Optimiser()
    lora: Lora | None = None
    pif: Pif = Pif()
    target: Target = Target()
    chat: Chat = Chat()
    run: RunTable = RunTable()
    engine: dict[str, EngineTable] = {}  # tables of engines by their names; an engine reads its own

    def identity(self) -> dict[str, object]:
        """Everything that decides what is learned, flat: `{"reward.lam": 1.0, ...}`.

        Without the paths of template and evaluation set, which differ between machines: fingerprints of
        their content are recorded beside this.
        """
        return {
            key: value
            for key, value in _flattened(msgspec.to_builtins(self))
            if key not in {"prompt.template", "data.evaluation"}
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
