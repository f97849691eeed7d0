"""From chat messages to the token ids a local model reads, through its own chat template."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from unswayed.items import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["ChatWriter", "Written"]

PROBE: Final = "unswayed-probe"


class Written(NamedTuple):
    """One prompt as the model reads it.

    Attributes:
        text: The rendered chat, up to where the answer begins.
        tokens: Its token ids.
    """

    text: str
    tokens: list[int]


class ChatWriter:
    """Renders and tokenises chats for one model.

    A template without a system role (or one that drops it) gets the system text at the head of
    the first user message. A tokenizer without a chat template gets plain text that ends in
    "Answer:", with a warning: such a model was not trained on chats.

    A control token written out in the content ("<|im_end|>" in a candidate) gets a space after
    its first character, so that no candidate can end the turn and answer in the judge's place.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, model: str) -> None:
        self.tokenizer = tokenizer
        self.has_template = tokenizer.chat_template is not None
        if not self.has_template:
            warnings.warn(
                f"{model} has no chat template: prompts are sent as plain text ending in "
                '"Answer:". Its answers are those of a model that was not trained on chats.',
                stacklevel=2,
            )
        self._control = _control_tokens(tokenizer)
        self._takes_system = self.has_template and self._renders_system()

    def write(self, chats: Sequence[Sequence[Message]], *, thinking: bool) -> list[Written]:
        """Render and tokenise.

        Args:
            chats: The messages of each prompt.
            thinking: False asks templates that know the switch (Qwen3) for an answer without
                reasoning.
        """
        if not chats:
            return []
        rows = [self._rows(chat) for chat in chats]
        if self.has_template:
            texts = self._rendered(rows, thinking=thinking)
        else:
            texts = [_plain(row) for row in rows]
        encoded = self.encode(texts)
        return [Written(text, tokens) for text, tokens in zip(texts, encoded, strict=True)]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of rendered chats (a template writes the first token itself)."""
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=not self.has_template,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [list(tokens) for tokens in encoded["input_ids"]]

    def _rows(self, chat: Sequence[Message]) -> list[dict[str, str]]:
        rows = [
            {"role": message.role, "content": self._control.sub(_broken_up, message.content)}
            for message in chat
        ]
        if self._takes_system or rows[0]["role"] != "system" or len(rows) == 1:
            return rows
        system, first, *rest = rows
        merged = f"{system['content']}\n\n{first['content']}"
        return [{"role": first["role"], "content": merged}, *rest]

    def _rendered(self, rows: list[list[dict[str, str]]], *, thinking: bool) -> list[str]:
        # variables that a template does not know are ignored by it
        switch: dict[str, Any] = {} if thinking else {"enable_thinking": False}
        texts = self.tokenizer.apply_chat_template(
            rows, tokenize=False, add_generation_prompt=True, **switch
        )
        return [str(text) for text in texts]

    def _renders_system(self) -> bool:
        from jinja2 import TemplateError

        rows = [{"role": "system", "content": PROBE}, {"role": "user", "content": "question"}]
        try:
            (text,) = self._rendered([rows], thinking=True)
        except (TemplateError, TypeError, ValueError, KeyError):
            return False  # templates refuse a role with exceptions of their own
        return PROBE in text


def _control_tokens(tokenizer: PreTrainedTokenizerBase) -> re.Pattern[str]:
    added = tokenizer.added_tokens_decoder.values()
    tokens = {token.content for token in added if token.special} | set(tokenizer.all_special_tokens)
    written = sorted((token for token in tokens if len(token) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, written)) or r"(?!)")


def _broken_up(match: re.Match[str]) -> str:
    return f"{match[0][0]} {match[0][1:]}"


def _plain(rows: list[dict[str, str]]) -> str:
    return "\n\n".join(row["content"] for row in rows) + "\n\nAnswer:"
