"""What must hold before a model is loaded: library versions, tokenizer, labels, chat template."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unswayed.errors import UsageError
from unswayed.items import Message
from unswayed.registry import require
from unswayed.training.data import Groups, TokenCount
from unswayed.training.recipe import Recipe

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = [
    "TRL_VERSIONS",
    "chat_ids",
    "chat_options",
    "chat_text",
    "check_context",
    "check_labels",
    "check_reference",
    "check_trl",
    "load_tokenizer",
    "token_counter",
]

TRL_VERSIONS: Final = ((1, 8), (2, 0))
"""Lowest version, and the first that is too new. Before 1.8 there is no entropy bonus."""

_HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "_get_train_sampler": ("self", "dataset"),
    "_calculate_rewards": ("self", "inputs", "prompts", "completions", "completion_ids_list"),
    "_generate_and_score_completions": ("self", "inputs"),
}
"""Parameters of the methods of trl's trainer that are overridden; they are not public API."""


def check_trl(trainer: type | None = None, version: str | None = None) -> None:
    """Check that trl is installed, of a known version, with the hooks that are overridden.

    Args:
        trainer: `trl.GRPOTrainer`, unless another is to be checked.
        version: trl's version, unless another is to be checked.

    Raises:
        MissingExtraError: If trl or peft is not installed.
        UsageError: If its version is unknown or a hook has changed.
    """
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
    for name, expected in _HOOKS.items():
        method = getattr(trainer, name, None)
        found = tuple(inspect.signature(method).parameters) if method is not None else ()
        if found != expected:
            raise UsageError(
                f"trl {version} has changed {name}: it takes ({', '.join(found)}) where "
                f"({', '.join(expected)}) was expected, so the advantages could not be trusted. "
                'Install a version that is known to work: pip install "trl==1.16.0"'
            )


def load_tokenizer(model: str) -> PreTrainedTokenizerBase:
    """The model's tokenizer, padding on the left as sampling needs it.

    Raises:
        UsageError: If there is none, or it has no chat template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            model, padding_side="left", truncation_side="left"
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot load a tokenizer from {model}: {str(error).splitlines()[0]} "
            "Give the path of a model folder or a model id of the Hugging Face hub."
        ) from None
    if not tokenizer.chat_template:
        raise UsageError(
            f"{model} has no chat template, so a prompt cannot be put to it as a chat. Use the "
            "instruction-tuned model, or add chat_template.jinja to the model folder."
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def chat_options(recipe: Recipe) -> dict[str, Any]:
    """Extra arguments of the chat template."""
    thinking = recipe.chat.enable_thinking
    return {} if thinking is None else {"enable_thinking": thinking}


def chat_ids(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], options: Mapping[str, Any]
) -> list[int]:
    """Token ids of a chat with the answer about to begin."""
    text = chat_text(tokenizer, messages, options)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def token_counter(tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> TokenCount:
    """A function that counts the tokens of a chat."""
    return lambda messages: len(chat_ids(tokenizer, messages, options))


def check_labels(
    tokenizer: PreTrainedTokenizerBase, groups: Groups, options: Mapping[str, Any]
) -> None:
    """Check that every label is one known token where the answer begins.

    Only for prompts whose answer is the label alone: there the label's probability is the answer,
    and a label of several tokens would be rewarded for its beginning.

    Raises:
        UsageError: Naming the label and its tokens.
    """
    row = groups.rows[0]
    if not row.answer_only:
        return
    text = chat_text(tokenizer, row.messages, options)
    before = tokenizer(text, add_special_tokens=False)["input_ids"]
    for symbol in row.symbols:
        tails = []
        for spaced in (symbol, f" {symbol}"):
            ids = tokenizer(text + spaced, add_special_tokens=False)["input_ids"]
            tails.append(ids[len(before) :] if ids[: len(before)] == before else [])
        whole = [tail for tail in tails if len(tail) == 1 and tail[0] != tokenizer.unk_token_id]
        if not whole:
            pieces = tokenizer.convert_ids_to_tokens(tails[0] or tails[1])
            raise UsageError(
                f"the tokenizer does not have label {symbol!r} as one token where the answer "
                f"begins; it reads {pieces}. Choose other labels (prompt.labels), or a reasoning "
                "prompt."
            )


def check_context(model: str, groups: Groups, response_tokens: int) -> None:
    """Check that the longest prompt and its response fit the model's context.

    Raises:
        UsageError: Stating the numbers.
    """
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model)
    context = getattr(config.get_text_config(), "max_position_embeddings", None)
    longest = groups.counts.longest_prompt
    if context is not None and longest + response_tokens > context:
        raise UsageError(
            f"the longest prompt has {longest} tokens and a response up to {response_tokens}, "
            f"together more than the {context} of {model}. Lower data.max_prompt_tokens to "
            f"{max(1, context - response_tokens)} or prompt.max_response_tokens."
        )


def check_reference(model: object, recipe: Recipe) -> None:
    """Check that the KL term has something to compare with.

    With all weights trained, trl loads the reference from the model's path, and a model that
    exists only in memory has none: training would fail after the weights were loaded, or compare
    with other weights. With LoRA the reference is the model with the adapter off.

    Raises:
        UsageError: If a model in memory is to be trained in full with beta above 0.
    """
    if recipe.optimiser.beta > 0 and recipe.lora is None and not isinstance(model, str | Path):
        raise UsageError(
            f"beta is {recipe.optimiser.beta} and all weights are trained, so the untrained model "
            "must be a path: save it with save_pretrained first, or train with LoRA, or set "
            "optimiser.beta = 0."
        )


def chat_text(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], options: Mapping[str, Any]
) -> str:
    """A chat as the model reads it, with the answer about to begin."""
    chat = [{"role": message.role, "content": message.content} for message in messages]
    text = tokenizer.apply_chat_template(
        chat, tokenize=False, add_generation_prompt=True, **options
    )
    return str(text)
