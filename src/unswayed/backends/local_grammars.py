"""Holds what a local model writes to a JSON schema, where llguidance is installed (extra: structured).

Before each token the grammar says which tokens the text may go on with; the others are ruled out.
What was measured before choosing the library: design/structured-output.md.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from unswayed.base.registry import install_command
from unswayed.model.calls import Request

if TYPE_CHECKING:
    import torch
    from llguidance import LLMatcher, LLTokenizer
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

SPACES: Final = r"\n? {0,12}"
"""Between the parts of an object: room for indented text, none for blank lines without end."""


class Grammars:
    """The grammars of one tokenizer, made when the first schema is met."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, ends: Collection[int]) -> None:
        self.remarks: tuple[str, ...] = ()  # why answers were not held to their schema
        self._source = tokenizer
        self._ends = sorted(ends)
        self._matchers: dict[str, LLMatcher | None] = {}

    def hold(self, requests: Sequence[Request]) -> SchemaHold | None:
        """Return the hold that keeps the texts of one batch to their schemas; None if none is needed."""
        matchers = [
            self._matcher(request.schema) if isinstance(request.schema, str) else None
            for request in requests
        ]
        return SchemaHold(matchers) if any(matchers) else None

    def _matcher(self, schema: str) -> LLMatcher | None:
        """Return a matcher at the beginning of a text; None where the schema cannot be held to."""
        if schema not in self._matchers:
            try:
                self._matchers[schema] = self._compiled(schema)
            except ValueError as error:
                self._matchers[schema] = None
                remark = f"answers are not held to their JSON schema: {error}"
                self.remarks = tuple(dict.fromkeys((*self.remarks, remark)))
        first = self._matchers[schema]
        return None if first is None else first.deep_copy()

    def _compiled(self, schema: str) -> LLMatcher:
        """Compile a schema; raise ValueError where that fails, as with a tokenizer that is not fast."""
        if importlib.util.find_spec("llguidance") is None:
            raise ValueError(f"llguidance is not installed ({install_command('structured')})")
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(
            schema, defaults={"whitespace_pattern": SPACES}
        )
        matcher = LLMatcher(self._tokens, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    @cached_property
    def _tokens(self) -> LLTokenizer:
        from llguidance.hf import from_tokenizer

        fast = cast("PreTrainedTokenizerFast", self._source)  # others raise ValueError
        return from_tokenizer(fast, eos_token=self._ends or None)


class SchemaHold:
    """Rules out what a schema does not allow, row by row (a logits processor of transformers).

    A row without a matcher is free.
    """

    def __init__(self, matchers: Sequence[LLMatcher | None]) -> None:
        self._matchers = list(matchers)
        self._begun = False

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores with minus infinity where a token is ruled out; shape (rows, vocabulary)."""
        import torch

        allowed = np.ones(scores.shape, dtype=np.bool_)
        for row, last in enumerate(input_ids[:, -1].tolist() if self._begun else ()):
            matcher = self._matchers[row]
            if matcher is not None and not matcher.is_stopped():
                matcher.consume_token(last)
        self._begun = True
        for row, matcher in enumerate(self._matchers):
            if matcher is None or matcher.is_error():
                continue  # free; what it says is read tolerantly
            bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
            columns = np.unpackbits(bits, bitorder="little")[: scores.shape[1]]
            allowed[row] = False  # outputs beyond the tokenizer's tokens stand for nothing
            allowed[row, : len(columns)] = columns
        mask = torch.from_numpy(allowed).to(scores.device)
        return scores.masked_fill(~mask, -torch.inf)
