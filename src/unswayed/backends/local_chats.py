"""From chat messages to the token ids a local model reads, through its own chat template."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from unswayed.errors import TemplateError, UsageError
from unswayed.items import Message
from unswayed.prompts.limits import check_limits
from unswayed.prompts.template import RENDERING_ERRORS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["ChatWriter", "Written"]

PROBE: Final = "unswayed-probe"
LONGEST_MARK: Final = 40
"""Characters; what is longer is a sentence that a template adds."""


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
    its first character, so that no candidate can end the turn and answer in the judge's place; so
    do the lines of plain text that the template itself puts between turns ("[/INST]",
    "### Assistant:"), in any case. Marks of other models' templates stay as they are, and where
    there is no template nothing but control tokens is broken up.

    Raises:
        UsageError: If the template needs too much time or memory, or cannot write a chat.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, model: str) -> None:
        self.tokenizer = tokenizer
        self._model = model
        self.has_template = tokenizer.chat_template is not None
        if not self.has_template:
            warnings.warn(
                f"{model} has no chat template: prompts are sent as plain text ending in "
                '"Answer:". Its answers are those of a model that was not trained on chats.',
                stacklevel=2,
            )
        else:
            self._check_template()
        self._takes_system = self.has_template and self._renders_system()
        self._control = _control_tokens(tokenizer, self._turn_marks() if self.has_template else ())

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
        import jinja2

        switch: dict[str, Any] = {} if thinking else {"enable_thinking": False}
        try:
            texts = self.tokenizer.apply_chat_template(
                rows, tokenize=False, add_generation_prompt=True, **switch
            )
        except (jinja2.TemplateError, *RENDERING_ERRORS) as error:
            raise UsageError(
                f"{self._model}: its chat template cannot write this chat: "
                f"{error or type(error).__name__}. Mend chat_template.jinja or choose another model."
            ) from None
        return [str(text) for text in texts]

    def _check_template(self) -> None:
        rows = _turns("user")
        tokens = {name: str(token) for name, token in self.tokenizer.special_tokens_map.items()}
        fields = {**tokens, "messages": rows, "add_generation_prompt": True, "tools": None}
        try:
            source = self.tokenizer.get_chat_template()
            check_limits(source, fields, where=f"{self._model}: its chat template")
        except (TemplateError, ValueError) as error:
            raise UsageError(str(error)) from None

    def _renders_system(self) -> bool:
        try:
            (text,) = self._rendered([_turns("system", "user")], thinking=True)
        except UsageError:
            return False  # templates refuse a role with exceptions of their own
        return text.count(PROBE) > 1

    def _turn_marks(self) -> set[str]:
        """The lines that the template puts between one turn's text and the next one's."""
        try:
            (text,) = self._rendered([_turns("user", "assistant", "user")], thinking=True)
        except UsageError:
            return set()
        between = text.split(PROBE)[1:-1]
        lines = {line.strip() for part in between for line in part.splitlines()}
        return {line for line in lines if len(line) <= LONGEST_MARK and not line.isalnum()}


def _turns(*roles: str) -> list[dict[str, str]]:
    return [{"role": role, "content": PROBE} for role in roles]


def _control_tokens(
    tokenizer: PreTrainedTokenizerBase, turn_marks: Iterable[str]
) -> re.Pattern[str]:
    added = tokenizer.added_tokens_decoder.values()
    tokens = {token.content for token in added if token.special} | set(tokenizer.all_special_tokens)
    tokens.update(mark for mark in turn_marks if not any(token in mark for token in tokens))
    written = sorted((token for token in tokens if len(token) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, written)) or r"(?!)", re.IGNORECASE)


def _broken_up(match: re.Match[str]) -> str:
    return f"{match[0][0]} {match[0][1:]}"


def _plain(rows: list[dict[str, str]]) -> str:
    return "\n\n".join(row["content"] for row in rows) + "\n\nAnswer:"
