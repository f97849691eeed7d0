"""Check library versions, task, labels and the model's context before a model is loaded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean, require
from unswayed.model.items import Item
from unswayed.training.architecture import Architecture
from unswayed.training.chats import ChatTokens
from unswayed.training.groups import Groups
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import RewardSettings

TRL_VERSIONS: Final = ((1, 8), (2, 0))
"""Lowest version, and the first that is too new. Before 1.8 there is no entropy bonus."""

_HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "_get_train_sampler": ("self", "dataset"),
    "_tokenize_prompts": ("self", "prompts"),
    "_calculate_rewards": ("self", "inputs", "prompts", "completions", "completion_ids_list"),
    "_generate_and_score_completions": ("self", "inputs"),
}
"""Parameters of the methods of trl's trainer that are overridden; they are not public API."""

_PASSED_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "_get_per_token_logps_and_entropies": ("self", "model"),
    "_prepare_inputs": ("self", "generation_batch"),
}
"""First parameters of those whose others are passed on; one that trl does not have is not needed."""


def check_trl(trainer: type | None = None, version: str | None = None) -> None:
    """Check that trl is installed, of a known version, with the hooks that are overridden."""
    for module in ("torch", "trl", "peft", "datasets"):
        require(module, extra="train", feature="training")
    if version is None:
        from importlib.metadata import version as installed

        version = installed("trl")
    lowest, too_new = TRL_VERSIONS
    number = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if not lowest <= number < too_new:
        wanted = f">={lowest[0]}.{lowest[1]},<{too_new[0]}"
        raise UsageError(
            f"trl {version} is not supported; training needs trl{wanted}. "
            f'Install it with: pip install "trl{wanted}"'
        )
    if trainer is None:
        from trl.trainer.grpo_trainer import GRPOTrainer

        trainer = GRPOTrainer
    for name, expected in (*_HOOKS.items(), *_PASSED_ON.items()):
        method = getattr(trainer, name, None)
        if method is None and name in _PASSED_ON:
            continue
        taken = tuple(inspect.signature(method).parameters) if method is not None else ()
        compared = taken[: len(expected)] if name in _PASSED_ON else taken
        if compared != expected:
            raise UsageError(
                f"trl {version} has changed {name}: it takes ({', '.join(taken)}) where "
                f"({', '.join(expected)}) was expected, so the training could not be trusted. "
                'Install a version that is known to work: pip install "trl==1.16.0"'
            )


def check_labels(chat: ChatTokens, groups: Groups) -> None:
    """Check that every label is one known token where the answer begins.

    Only for prompts whose answer is the label alone: there the label's probability is the answer,
    and a label of several tokens would be rewarded for its beginning.
    """
    if not groups.answer_only:
        return
    tokenizer = chat.tokenizer
    text = chat.text(groups.rows[0].messages)
    before = chat.ids_of(text)
    for symbol in groups.symbols:
        tails = []
        for spaced in (symbol, f" {symbol}"):
            ids = chat.ids_of(text + spaced)
            tails.append(ids[len(before) :] if ids[: len(before)] == before else [])
        whole = [tail for tail in tails if len(tail) == 1 and tail[0] != tokenizer.unk_token_id]
        if not whole:
            pieces = tokenizer.convert_ids_to_tokens(tails[0] or tails[1])
            raise UsageError(
                f"the tokenizer does not have label {symbol!r} as one token where the answer "
                f"begins; it reads {pieces}. Choose other labels (prompt.labels), or a reasoning "
                "prompt."
            )


def check_context(shape: Architecture, groups: Groups, response: int) -> None:
    """Check that the longest prompt and its response fit the model's context."""
    context, longest = shape.context, groups.counts.longest_prompt
    if context is not None and longest + response > context:
        remedy = "Lower prompt.max_response_tokens"
        if response < context:
            remedy = f"Lower data.max_prompt_tokens to {context - response} or prompt.max_response_tokens"
        raise UsageError(
            f"the longest prompt has {longest} tokens and a response up to {response}, "
            f"together more than the {context} of the model. {remedy}, or take another model."
        )


def check_vocabulary(shape: Architecture, chat: ChatTokens, groups: Groups) -> None:
    """Check that the model has a row for the tokens of the first group and for padding."""
    tokenizer = chat.tokenizer
    first = groups.rows[: groups.n_presentations]
    used = {token for row in first for token in chat.ids(row.messages)} | {tokenizer.pad_token_id}
    if max(used) >= shape.vocabulary:
        token = tokenizer.convert_ids_to_tokens(max(used))
        raise UsageError(
            f"the tokenizer writes token {max(used)} ({token!r}), and the model knows "
            f"{shape.vocabulary}: they do not belong together. Take both from one model."
        )


def check_task(items: Sequence[Item], recipe: Recipe) -> None:
    """Check that the items are of the recipe's task."""
    for item in items:
        if item.task is not recipe.task:
            raise UsageError(
                f"{item.id}: recipe {recipe.name} is for task {recipe.task.value}, the item is "
                f"{item.task.value}. Choose a recipe for {item.task.value}, or take this one for it: "
                f"--set task={item.task.value}, and data.orders for its number of candidates."
            )


WHOLE: Final = (("all",), ("none",))
"""Words of transformers for every logger that is installed, and for none."""

UNLISTED: Final = frozenset({"flyte", "azure_ml"})
"""Loggers that transformers leaves out of its list of the installed ones, or may leave out."""


def check_loggers(names: Sequence[str]) -> None:
    """Check that every logger exists and that its package is installed."""
    from transformers.integrations import integration_utils

    untyped: Any = integration_utils
    if tuple(names) in WHOLE:
        return
    callbacks = untyped.INTEGRATION_TO_CALLBACK
    usable = UNLISTED.union(untyped.get_available_reporting_integrations())
    for name in names:
        if name not in callbacks:
            raise UnknownNameError(
                f"run.loggers: unknown logger {name!r}. {did_you_mean(name, callbacks)}"
            )
        if name == "tensorboard":
            require("tensorboard", extra="train", feature='run.loggers = ["tensorboard"]')
        elif name not in usable:
            raise UsageError(
                f"run.loggers: {name} cannot be used: its package is not installed or not set up. "
                f"Install it (pip install {name.replace('_', '-')}), or take it out of run.loggers."
            )


def check_reward(
    objective: str,
    recipe: Recipe,
    settings: RewardSettings | None,
    asked: str | None,
    sampled: bool,
) -> None:
    """Check that there are responses where the recipe pays for them, and a reward where one was asked for."""
    if recipe.reward.response is not None and not sampled:
        raise UsageError(
            f"{objective} samples no responses to reward. Remove reward.response, or use train rl."
        )
    if settings is None and asked is not None:
        raise UsageError(
            f"train {objective} has no reward and no advantage; use train rl for those."
        )
