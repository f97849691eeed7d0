"""Chats as the trained model reads them: those that an audit of it sends, token for token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.backends.local_chats import ChatWriter, may_think, thinking_switch
from unswayed.base.errors import UsageError, first_line
from unswayed.model.items import Message
from unswayed.prompts import Rendered

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class ChatTokens:
    """The chats of one run, whose replies are all of one kind."""

    writer: ChatWriter  # renders and tokenises, here as in the `hf` backend
    thinking: bool  # whether the replies have a place for reasoning

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Pads on the left, as sampling needs it."""
        return self.writer.tokenizer

    def texts(self, chats: Sequence[Sequence[Message]]) -> list[str]:
        """Chats with the answer about to begin."""
        return self.writer.render(chats, thinking=self.thinking)

    def text(self, messages: Sequence[Message]) -> str:
        """One chat with the answer about to begin."""
        return self.texts([messages])[0]

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a chat with the answer about to begin."""
        return self.ids_of(self.text(messages))

    def ids_of(self, text: str) -> list[int]:
        """Return the token ids of a chat that is rendered already, whatever stands behind it."""
        return self.writer.encode([text])[0]


def load_chat(
    folder: Path, *, name: str, enable_thinking: bool | None, prompt: Rendered
) -> ChatTokens:
    """Return the chats of a model; any of the run's prompts tells of what kind the replies are."""
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            str(folder), padding_side="left", truncation_side="left"
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot load a tokenizer from {folder}: {first_line(error)} "
            "Give the path of a model folder or a model id of the Hugging Face hub."
        ) from None
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise UsageError(
            f"{name}: its tokenizer has neither a padding token nor one that ends an answer. Name "
            "them in tokenizer_config.json."
        )
    return ChatTokens(
        ChatWriter(tokenizer, model=name, arguments=thinking_switch(enable_thinking)),
        may_think(answer_only=prompt.answer_only, has_schema=prompt.schema is not None),
    )
