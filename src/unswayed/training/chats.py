"""Chats as the trained model reads them: tokenizer, chat template and its arguments in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.errors import UsageError
from unswayed.items import Message
from unswayed.training.recipe_parts import Recipe

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["ChatTokens", "load_chat"]


@dataclass(frozen=True, slots=True)
class ChatTokens:
    """Writes chats for one model.

    Attributes:
        tokenizer: Pads on the left, as sampling needs it.
        arguments: What the chat template is given beside the messages.
    """

    tokenizer: PreTrainedTokenizerBase
    arguments: Mapping[str, Any]

    def text(self, messages: Sequence[Message]) -> str:
        """A chat with the answer about to begin."""
        chat = [{"role": message.role, "content": message.content} for message in messages]
        return str(
            self.tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True, **self.arguments
            )
        )

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """The token ids of a chat with the answer about to begin."""
        return self.ids_of(self.text(messages))

    def ids_of(self, text: str) -> list[int]:
        """The token ids of a text that is written out already."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def count(self, messages: Sequence[Message]) -> int:
        """The number of tokens of a chat."""
        return len(self.ids(messages))


def load_chat(folder: Path, recipe: Recipe) -> ChatTokens:
    """The chats of a model.

    Raises:
        UsageError: If there is no tokenizer, or it has no chat template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            str(folder), padding_side="left", truncation_side="left"
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot load a tokenizer from {folder}: {str(error).splitlines()[0]} "
            "Give the path of a model folder or a model id of the Hugging Face hub."
        ) from None
    if not tokenizer.chat_template:
        raise UsageError(
            f"{folder} has no chat template, so a prompt cannot be put to it as a chat. Use the "
            "instruction-tuned model, or add chat_template.jinja to the model folder."
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    thinking = recipe.chat.enable_thinking
    return ChatTokens(tokenizer, {} if thinking is None else {"enable_thinking": thinking})
