"""Recipes: every number of a training run, in one TOML file, checked before anything is loaded.

A recipe says how to train; the kind of training (`pa-grpo`, `grpo`, `rl`, `pif`) says what with.
`pa-grpo` and `grpo` are the papers' combinations of reward and advantage and cannot be changed by
a recipe; `rl` takes any combination. Shipped recipes lie in `recipes/`; each number there names
the place of the paper it comes from, or whose default it is.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from unswayed.errors import UnknownNameError, UsageError
from unswayed.items import Task
from unswayed.registry import did_you_mean
from unswayed.rewards import Advantage, Consistency, RewardSettings

__all__ = [
    "KINDS",
    "Chat",
    "Data",
    "Kind",
    "Lora",
    "Optimiser",
    "Pif",
    "Prompt",
    "Recipe",
    "RewardNumbers",
    "Rollout",
    "Run",
    "load_recipe",
    "recipe_names",
    "reward_settings",
    "with_changes",
]

Kind = Literal["pa-grpo", "grpo", "rl", "pif"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_PRESETS: Final[Mapping[str, tuple[Consistency, Advantage]]] = {
    "pa-grpo": ("con", "group"),
    "grpo": ("none", "prompt"),
}


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a recipe."""


class Data(_Part, frozen=True):
    """What is trained on.

    Attributes:
        orders: Set of orders that makes a permutation group; None for the paper's: swap for two
            candidates, structured for more.
        order_seed: Seed of `random:K` orders.
        held_out: Items kept apart to follow consistency during training; 0 for none.
        max_prompt_tokens: An item with a longer prompt in any presentation is dropped as a whole.
        without_gold: "stop" at an item without a right candidate, or "drop" and count.
        shuffle: Whether groups are shuffled, anew in each epoch.
    """

    orders: str | None = None
    order_seed: int = 0
    held_out: int = 0
    max_prompt_tokens: int = 4096
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
    max_response_tokens: int | None = None


class RewardNumbers(_Part, frozen=True):
    """Numbers of the reward and the advantage; see `unswayed.rewards.RewardSettings`.

    Attributes:
        consistency, advantage: For `rl` only; None takes the kind's own (`rl`: con, group).
    """

    consistency: Consistency | None = None
    advantage: Advantage | None = None
    lam: float = 1.0
    epsilon: float = 1e-6
    delta: float = 1e-6
    ddof: int = 1
    format_size: float = 0.3
    length_size: float = 0.1
    length_band: tuple[int, int] | None = None


class Rollout(_Part, frozen=True):
    """How responses are sampled.

    Attributes:
        samples: N, responses per presentation.
        temperature: Sampling temperature.
        engine: transformers, or vLLM in the training processes or on a server of its own.
        server_url: Address of the vLLM server.
        gpu_memory: Share of GPU memory for vLLM in the training processes.
        tensor_parallel: GPUs per vLLM model.
    """

    samples: int = 8
    temperature: float = 1.0
    engine: Literal["transformers", "vllm-colocate", "vllm-server"] = "transformers"
    server_url: str | None = None
    gpu_memory: float = 0.3
    tensor_parallel: int = 1


class Optimiser(_Part, frozen=True):
    """The update.

    Attributes:
        items_per_step: Permutation groups per optimiser step, over all processes.
        learning_rate, weight_decay, max_grad_norm: AdamW and gradient clipping.
        schedule: Learning-rate schedule; `warmup_steps` come first.
        epochs: Passes over the data; `steps`, if given, decides instead.
        inner_updates: Optimiser steps per batch of responses.
        clip: eta of the clipped objective.
        beta: Weight of the KL term to the untrained model.
        entropy: Weight of the entropy bonus.
    """

    items_per_step: int = 16
    learning_rate: float = 1e-5
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: int = 0
    epochs: float = 2.0
    steps: int | None = None
    inner_updates: int = 1
    clip: float = 0.2
    beta: float = 0.001
    entropy: float = 0.001


class Lora(_Part, frozen=True):
    """Low-rank adapters; a recipe without this table trains all weights."""

    rank: int = 32
    alpha: int = 64
    dropout: float = 0.0
    target: str = "all-linear"


class Pif(_Part, frozen=True):
    """The PIF-style loss; see `unswayed.training.pif`.

    Attributes:
        negatives: Wrong content x random symbol pairs per example.
        symbol_weight, content_weight: Weights of the two positive terms.
        separator: Text between symbol and content.
    """

    negatives: int = 3
    symbol_weight: float = 1.0
    content_weight: float = 1.0
    separator: str = ". "


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
        micro_batch: Sampled responses per process and backward pass.
        gradient_checkpointing: Trade time for memory.
        save_every, log_every, check_every: Steps between checkpoints, log lines, and checks of the
            held-out items; 0 for never (the end is always saved and checked).
        keep: Checkpoints kept.
        loggers: Where metrics go beside the log file.
    """

    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu"] = "auto"
    micro_batch: int = 8
    gradient_checkpointing: bool = True
    save_every: int = 50
    log_every: int = 1
    check_every: int = 0
    keep: int = 2
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
    reward: RewardNumbers = RewardNumbers()
    rollout: Rollout = Rollout()
    optimiser: Optimiser = Optimiser()
    lora: Lora | None = None
    pif: Pif = Pif()
    chat: Chat = Chat()
    run: Run = Run()

    def identity(self) -> dict[str, object]:
        """Everything that decides what is learned, flat: `{"reward.lam": 1.0, ...}`."""
        built = msgspec.to_builtins(self)
        flat = dict(_flatten(built))
        return {
            key: value
            for key, value in flat.items()
            if not key.startswith("run.") or key in {"run.seed", "run.precision"}
        }

    def fingerprint(self) -> str:
        """sha256 over `identity`, as `sha256:<hex>`."""
        encoded = msgspec.json.encode(self.identity(), order="deterministic")
        return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def recipe_names() -> tuple[str, ...]:
    """The shipped recipes."""
    folder = resources.files("unswayed.training") / "recipes"
    return tuple(
        sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))
    )


def load_recipe(name: str | Path) -> Recipe:
    """Read a shipped recipe by name, or a TOML file by path.

    Raises:
        UnknownNameError: If there is no such recipe, or it has an unknown field.
        UsageError: If the file is not valid TOML or a value is out of range.
    """
    text, where = _read(name)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not valid TOML ({error}).") from None
    raw.setdefault("name", Path(str(name)).name.removesuffix(".toml"))
    return _build(raw, where)


def with_changes(recipe: Recipe, changes: Mapping[str, str]) -> Recipe:
    """The recipe with some fields set, such as `{"reward.lam": "0.5", "data.orders": "cyclic"}`.

    Args:
        recipe: The recipe to start from.
        changes: Dotted field to a TOML value; bare words are taken as strings.

    Raises:
        UnknownNameError: If a field does not exist.
        UsageError: If a value does not fit.
    """
    raw: dict[str, object] = {k: v for k, v in msgspec.to_builtins(recipe).items() if v is not None}
    for field, value in changes.items():
        table, _, key = field.rpartition(".")
        target = raw
        if table:
            inner = raw.setdefault(table, {})
            if not isinstance(inner, dict):
                raise UnknownNameError(f"recipe field {field!r}: {table} has no fields.")
            target = inner
        target[key] = _toml_value(value)
    return _build(raw, "the recipe as changed")


def reward_settings(
    kind: Kind,
    recipe: Recipe,
    *,
    consistency: Consistency | None = None,
    advantage: Advantage | None = None,
) -> RewardSettings:
    """The reward of a kind of training.

    Args:
        kind: `pa-grpo` and `grpo` fix reward and advantage; `rl` takes them from the arguments,
            then from the recipe, then from PA-GRPO.
        recipe: The numbers.
        consistency: `--reward`.
        advantage: `--advantage`.

    Raises:
        UsageError: If a preset is asked to be something else, or a number is out of range.
    """
    numbers = recipe.reward
    asked = (consistency or numbers.consistency, advantage or numbers.advantage)
    fixed = _PRESETS.get(kind)
    if fixed is not None:
        for what, wanted, own in zip(("reward", "advantage"), asked, fixed, strict=True):
            if wanted is not None and wanted != own:
                raise UsageError(
                    f"{kind} is the paper's preset with {what} {own!r}; {wanted!r} is another "
                    f"method. Use: train rl --reward {asked[0] or fixed[0]} "
                    f"--advantage {asked[1] or fixed[1]}."
                )
        chosen = fixed
    else:
        chosen = (asked[0] or "con", asked[1] or "group")
    return RewardSettings(
        consistency=chosen[0],
        advantage=chosen[1],
        lam=numbers.lam,
        epsilon=numbers.epsilon,
        delta=numbers.delta,
        ddof=numbers.ddof,
        format_size=numbers.format_size,
        length_size=numbers.length_size,
        length_band=numbers.length_band,
    )


def _read(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    if path.suffix == ".toml" or path.parent != Path():
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except OSError as error:
            raise UsageError(f"cannot read recipe {path}: {error.strerror or error}.") from None
    if str(name) not in recipe_names():
        raise UnknownNameError(
            f"unknown recipe {str(name)!r}. {did_you_mean(str(name), recipe_names())} "
            "A recipe of your own is given as a path ending in .toml."
        )
    file = resources.files("unswayed.training") / "recipes" / f"{name}.toml"
    return file.read_text(encoding="utf-8"), f"recipe {name}"


def _build(raw: Mapping[str, object], where: str) -> Recipe:
    _check_fields(raw, where)
    try:
        recipe = msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$")
        raise UsageError(f"{where}: {at.strip('`.') or 'recipe'}: {reason}.") from None
    _check_values(recipe, where)
    return recipe


_TABLES: Final[Mapping[str, type[_Part]]] = {
    "data": Data,
    "prompt": Prompt,
    "reward": RewardNumbers,
    "rollout": Rollout,
    "optimiser": Optimiser,
    "lora": Lora,
    "pif": Pif,
    "chat": Chat,
    "run": Run,
}


def _check_fields(raw: Mapping[str, object], where: str) -> None:
    known = set(Recipe.__struct_fields__)
    for key, value in raw.items():
        if key not in known:
            raise UnknownNameError(f"{where}: unknown field {key!r}. {did_you_mean(key, known)}")
        if key in _TABLES and isinstance(value, Mapping):
            fields = _TABLES[key].__struct_fields__
            for name in value:
                if name not in fields:
                    raise UnknownNameError(
                        f"{where}: unknown field {key}.{name}. {did_you_mean(name, fields)}"
                    )


def _check_values(recipe: Recipe, where: str) -> None:
    optimiser, rollout, run = recipe.optimiser, recipe.rollout, recipe.run
    at_least: tuple[tuple[str, float, float], ...] = (
        ("rollout.samples", rollout.samples, 1),
        ("optimiser.items_per_step", optimiser.items_per_step, 1),
        ("optimiser.inner_updates", optimiser.inner_updates, 1),
        ("optimiser.beta", optimiser.beta, 0),
        ("optimiser.entropy", optimiser.entropy, 0),
        ("optimiser.steps", 1 if optimiser.steps is None else optimiser.steps, 1),
        ("data.held_out", recipe.data.held_out, 0),
        ("data.max_prompt_tokens", recipe.data.max_prompt_tokens, 1),
        ("run.micro_batch", run.micro_batch, 1),
        ("run.save_every", run.save_every, 0),
        ("run.log_every", run.log_every, 1),
        ("run.keep", run.keep, 1),
        ("pif.negatives", recipe.pif.negatives, 0),
    )
    for name, value, lowest in at_least:
        if not value >= lowest:
            raise UsageError(f"{where}: {name}: {value} is too small; the least is {lowest}.")
    above_zero = (
        ("optimiser.learning_rate", optimiser.learning_rate),
        ("optimiser.epochs", optimiser.epochs),
        ("optimiser.clip", optimiser.clip),
        ("rollout.temperature", rollout.temperature),
    )
    for name, value in above_zero:
        if not value > 0:
            raise UsageError(f"{where}: {name}: {value} must be above 0.")
    if rollout.engine == "vllm-server" and rollout.server_url is None:
        raise UsageError(f"{where}: rollout.engine vllm-server needs rollout.server_url.")
    if run.save_every % optimiser.inner_updates:
        raise UsageError(
            f"{where}: run.save_every {run.save_every} must be a multiple of "
            f"optimiser.inner_updates {optimiser.inner_updates}: a checkpoint between two updates "
            "of the same responses could not be resumed exactly."
        )
    reward_settings("rl", recipe)  # checks the reward's own ranges


def _flatten(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
