"""Which token ids stand for a label where the answer begins.

Two sources, joined. *By text*: every token of the vocabulary that the parser would read as the
label in a server's top-k list ("A", " A", "a", "**A"), so that a model behind a server and the
same model here get the same probabilities. *In context*: the prompt is tokenised with and without
the label behind it, and the id that follows the prompt's own counts, which finds the first piece
of a label that the tokenizer splits ("Al" + "ice"). The probabilities of all are summed. Other
pieces that a label may begin with count only where there is nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from unswayed.errors import UsageError
from unswayed.parsing.symbols import Symbols, symbols_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["LabelTokens"]

CONTEXT_CHARACTERS: Final = 32
"""Prompts that end alike to this length go on with the same tokens."""

BEGINS: Final = -3
"""`Symbols.token` codes the beginning of label k as `-3 - k`."""

Ids = tuple[tuple[int, ...], ...]
Sets = list[set[int]]


class LabelTokens:
    """Finds and remembers label ids.

    Args:
        tokenizer: Of the model.
        encode: Token ids of rendered prompts, as the model is given them.
        model: Name for messages.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        encode: Callable[[Sequence[str]], list[list[int]]],
        *,
        model: str,
    ) -> None:
        self._tokenizer = tokenizer
        self._encode = encode
        self._model = model
        self._texts: dict[int, str] | None = None
        self._by_text: dict[tuple[str, ...], tuple[Sets, Sets]] = {}
        self._known: dict[tuple[tuple[str, ...], str], Ids] = {}

    def ids(self, labels: tuple[str, ...], prompt: str) -> Ids:
        """The ids of each label behind a prompt, in label order; no id stands for two labels.

        A label of several tokens counts with its first where no other label begins with the same.

        Raises:
            UsageError: If a label has no token that begins it and no other.
        """
        key = (labels, prompt[-CONTEXT_CHARACTERS:])
        if key not in self._known:
            self._known[key] = self._found(labels, prompt)
        return self._known[key]

    def _found(self, labels: tuple[str, ...], prompt: str) -> Ids:
        if labels not in self._by_text:
            self._by_text[labels] = self._read_vocabulary(symbols_of(labels))
        spelled, begun = self._by_text[labels]
        in_context = self._first_tokens(labels, prompt)
        found: list[tuple[int, ...]] = []
        for number, label in enumerate(labels):
            others: set[int] = set()
            for other in range(len(labels)):
                if other != number:
                    others |= spelled[other] | in_context[other]
            ids = (spelled[number] | (in_context[number] - others)) or begun[number] - others
            if not ids:
                raise UsageError(
                    f"{self._model}: its tokenizer has no token that begins {label!r} and no "
                    f"other of the labels {', '.join(labels)}. Choose other labels; single "
                    "letters work with nearly every model."
                )
            found.append(tuple(sorted(ids)))
        return tuple(found)

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
        """The text of every token that is not a control token."""
        if self._texts is None:
            special = set(self._tokenizer.all_special_ids)
            ids = sorted(set(self._tokenizer.get_vocab().values()) - special)
            texts = self._tokenizer.batch_decode([[token] for token in ids])
            self._texts = dict(zip(ids, texts, strict=True))
        return self._texts

    def _first_tokens(self, labels: tuple[str, ...], prompt: str) -> list[set[int]]:
        """Per label, the ids that follow the prompt when the label is written behind it."""
        spaces = ("", " ")
        texts = [f"{prompt}{space}{label}" for label in labels for space in spaces]
        own, *continued = self._encode([prompt, *texts])
        unknown = self._tokenizer.unk_token_id
        firsts: list[set[int]] = [set() for _ in labels]
        for number, tokens in enumerate(continued):
            grew = len(tokens) > len(own) and tokens[: len(own)] == own
            if grew and tokens[len(own)] != unknown:
                firsts[number // len(spaces)].add(tokens[len(own)])
        return firsts
