"""Encode chats and labels as token ids with a model's tokenizer and chat template."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from unswayed.backends import BackendSettings
from unswayed.backends.own_prompts import OwnPrompt
from unswayed.base.errors import TemplateError, UsageError
from unswayed.model.items import Message
from unswayed.model.parsing.symbols import Symbols, symbols_of
from unswayed.prompts.limits import check_limits
from unswayed.prompts.template import RENDERING_ERRORS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBE: Final = "unswayed-probe"
LONGEST_MARK: Final = 40
"""Characters; what is longer is a sentence that a template adds."""

CONTEXT_CHARACTERS: Final = 32
"""Prompts that end alike to this length go on with the same tokens."""
BEGINS: Final = -3
"""`Symbols.token` codes the beginning of label k as `-3 - k`."""

Ids = tuple[tuple[int, ...], ...]
"""Token ids that stand for each label."""
Sets = list[set[int]]


class Written(NamedTuple):
    """One prompt as the model reads it."""

    text: str  # the rendered chat, up to where the answer begins
    tokens: list[int]  # its token ids


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

    `arguments` are what the template is told beside the chat, such as `enable_thinking` (Qwen3); without
    that one it is left to each chat.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        model: str,
        arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.tokenizer = tokenizer
        self.model = model
        self.arguments = arguments
        self.has_template = tokenizer.chat_template is not None
        if not self.has_template:
            warnings.warn(
                f"{model} has no chat template: prompts are sent as plain text ending in "
                '"Answer:". It answers as a model that was not trained on chats.',
                stacklevel=2,
            )
        else:
            self._check_template()
        self._takes_system = self.has_template and self._renders_system()
        self._control = _control_tokens(tokenizer, self._turn_marks() if self.has_template else ())

    def write(self, chats: Sequence[Sequence[Message]], *, thinking: bool) -> list[Written]:
        """Render and tokenise; see `render`."""
        texts = self.render(chats, thinking=thinking)
        encoded = self.encode(texts)
        return [Written(text, tokens) for text, tokens in zip(texts, encoded, strict=True)]

    def render(self, chats: Sequence[Sequence[Message]], *, thinking: bool) -> list[str]:
        """Return the chats as texts, up to where the answer begins.

        Where a reply has no place for reasoning (`thinking`), templates that know the switch are asked for
        an answer without it, unless `arguments` say otherwise.
        """
        if not chats:
            return []
        rows = [self._rows(chat) for chat in chats]
        if self.has_template:
            return self._rendered(rows, thinking=thinking)
        return ["\n\n".join(turn["content"] for turn in row) + "\n\nAnswer:" for row in rows]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of rendered chats (a template writes the first token itself)."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            verbose=False,  # what is too long is found, and said, by who asks
            add_special_tokens=not self.has_template,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [list(tokens) for tokens in encoded["input_ids"]]

    def encode_placed(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text, and the characters that each stands for; of a fast tokenizer."""
        encoded = self.tokenizer(
            text, add_special_tokens=not self.has_template, return_offsets_mapping=True
        )
        return list(encoded["input_ids"]), list(encoded["offset_mapping"])

    def broken_up(self, text: str) -> str:
        """Return a text without control tokens and marks of turns."""
        return self._control.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)

    def _rows(self, chat: Sequence[Message]) -> list[dict[str, str]]:
        rows = [
            {"role": message.role, "content": self.broken_up(message.content)} for message in chat
        ]
        if self._takes_system or rows[0]["role"] != "system" or len(rows) == 1:
            return rows
        system, first, *rest = rows
        merged = f"{system['content']}\n\n{first['content']}"
        return [{"role": first["role"], "content": merged}, *rest]

    def _rendered(self, rows: list[list[dict[str, str]]], *, thinking: bool) -> list[str]:
        # variables that a template does not know are ignored by it
        import jinja2

        told = {**thinking_switch(None if thinking else False), **self.arguments}
        try:
            texts = self.tokenizer.apply_chat_template(
                rows, tokenize=False, add_generation_prompt=True, **told
            )
        except (jinja2.TemplateError, *RENDERING_ERRORS) as error:
            raise UsageError(
                f"{self.model}: its chat template cannot write this chat: "
                f"{error or type(error).__name__}. Fix chat_template.jinja, or choose another "
                "model."
            ) from None
        return [str(text) for text in texts]

    def _check_template(self) -> None:
        rows = _turns("user")
        tokens = {name: str(token) for name, token in self.tokenizer.special_tokens_map.items()}
        fields = {**tokens, "messages": rows, "add_generation_prompt": True, "tools": None}
        try:
            source = self.tokenizer.get_chat_template()
            check_limits(source, fields, where=f"{self.model}: its chat template")
        except (TemplateError, ValueError) as error:
            raise UsageError(str(error)) from None

    def _renders_system(self) -> bool:
        try:
            (text,) = self._rendered([_turns("system", "user")], thinking=True)
        except UsageError:
            return False  # templates refuse a role with exceptions of their own
        return text.count(PROBE) > 1

    def _turn_marks(self) -> set[str]:
        """Return the lines that the template puts between one turn's text and the next one's."""
        try:
            (text,) = self._rendered([_turns("user", "assistant", "user")], thinking=True)
        except UsageError:
            return set()
        between = text.split(PROBE)[1:-1]
        lines = {line.strip() for part in between for line in part.splitlines()}
        return {line for line in lines if len(line) <= LONGEST_MARK and not line.isalnum()}


def thinking_switch(on: bool | None) -> dict[str, Any]:
    """Return the argument that switches thinking on or off; None leaves it out."""
    return {} if on is None else {"enable_thinking": on}


def template_arguments(settings: BackendSettings, own: OwnPrompt, *, name: str) -> dict[str, Any]:
    """Return what a model's chat template is told: `extra_body` over its own prompt; refuse other fields."""
    extra = json.loads(settings.extra_body or "{}")
    arguments: object = extra.pop("chat_template_kwargs", {})
    if extra or not isinstance(arguments, dict):
        raise UsageError(
            f"{name}: extra_body of a local model takes only the object "
            f"chat_template_kwargs{f', not {min(extra)}' if extra else ''}. Leave out the rest."
        )
    return {**thinking_switch(own.enable_thinking), **arguments}


def may_think(*, answer_only: bool, has_schema: bool) -> bool:
    """Return True if a reply has a place for reasoning: not if it is a label or fits a schema."""
    return not answer_only and not has_schema


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


class LabelTokens:
    """Token ids of a label at the start of an answer, found once and remembered.

    Two sources, joined. *By text*: every token of the vocabulary that the parser would read as the
    label in a server's top-k list ("A", " A", "a", "**A"), so that a model behind a server and the
    same model here get the same probabilities. *In context*: the prompt is tokenised with and
    without the label behind it, and the id that follows the prompt's own counts, which finds the
    first piece of a label that the tokenizer splits ("Al" + "ice"). The probabilities of all are
    summed. Other pieces that a label may begin with count only where there is nothing else.
    """

    def __init__(self, writer: ChatWriter) -> None:
        self._writer = writer
        self._texts: dict[int, str] | None = None
        self._by_text: dict[tuple[str, ...], tuple[Sets, Sets]] = {}
        self._ids: dict[tuple[tuple[str, ...], str], Ids] = {}

    def ids(self, labels: tuple[str, ...], prompt: str) -> Ids:
        """Return the ids of each label behind a prompt, in label order; no id stands for two labels.

        A label of several tokens counts with its first where no other label begins with the same.
        """
        key = (labels, prompt[-CONTEXT_CHARACTERS:])
        if key not in self._ids:
            self._ids[key] = self._find(labels, prompt)
        return self._ids[key]

    def _find(self, labels: tuple[str, ...], prompt: str) -> Ids:
        if labels not in self._by_text:
            self._by_text[labels] = self._read_vocabulary(symbols_of(labels))
        spelled, begun = self._by_text[labels]
        in_context = self._first_tokens(labels, prompt)
        claimed = [text | context for text, context in zip(spelled, in_context, strict=True)]
        ids_by_label: list[tuple[int, ...]] = []
        for number, label in enumerate(labels):
            others = set[int]().union(*claimed[:number], *claimed[number + 1 :])
            ids = (spelled[number] | (in_context[number] - others)) or begun[number] - others
            if not ids:
                raise UsageError(
                    f"{self._writer.model}: its tokenizer has no token that begins {label!r} and no "
                    f"other of the labels {', '.join(labels)}. Choose other labels; single "
                    "letters work with nearly every model."
                )
            ids_by_label.append(tuple(sorted(ids)))
        return tuple(ids_by_label)

    def _read_vocabulary(self, symbols: Symbols) -> tuple[Sets, Sets]:
        """Per label, the ids of all tokens that say it, and that begin it, by the parser's rule."""
        initials = {form[0] for label in symbols.labels for form in (label, label.casefold())}
        spelled: Sets = [set() for _ in symbols.labels]
        begun: Sets = [set() for _ in symbols.labels]
        for token, text in self._vocabulary().items():
            if len(text) > symbols.longest + 8 or initials.isdisjoint(text + text.casefold()):
                continue
            code = symbols.token(text)
            if code >= 0:
                spelled[code].add(token)
            elif code <= BEGINS:
                begun[BEGINS - code].add(token)
        return spelled, begun

    def _vocabulary(self) -> dict[int, str]:
        if self._texts is None:
            tokenizer = self._writer.tokenizer
            ids = sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))
            texts = tokenizer.batch_decode([[token] for token in ids])
            self._texts = dict(zip(ids, texts, strict=True))
        return self._texts

    def _first_tokens(self, labels: tuple[str, ...], prompt: str) -> list[set[int]]:
        """Per label, the ids that follow the prompt when the label is written behind it."""
        spaces = ("", " ")
        texts = [f"{prompt}{space}{label}" for label in labels for space in spaces]
        own, *continued = self._writer.encode([prompt, *texts])
        unknown = self._writer.tokenizer.unk_token_id
        firsts: list[set[int]] = [set() for _ in labels]
        for number, tokens in enumerate(continued):
            grew = len(tokens) > len(own) and tokens[: len(own)] == own
            if grew and tokens[len(own)] != unknown:
                firsts[number // len(spaces)].add(tokens[len(own)])
        return firsts
