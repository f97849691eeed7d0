"""The texts that a local model writes, in batches.

`transformers` draws from one random stream per batch, so an answer would depend on its neighbours.
Here a draw is the argmax of logits / temperature + Gumbel noise from a generator seeded by the
request: the same request gives the same text in any batch, up to rounding.

Where llguidance is installed (extra: structured), texts are held to their JSON schemas: before each token a
grammar says which tokens the text may go on with, and the others are ruled out. What was measured before
choosing the library: design/structured-output.md.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from unswayed.base.registry import install_command
from unswayed.model.calls import Request, key_of

if TYPE_CHECKING:
    import torch
    from llguidance import LLMatcher, LLTokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast


SPACES: Final = r"\n? {0,12}"
"""Between the parts of an object: room for indented text, none for blank lines without end."""


class Generated(NamedTuple):
    """Generated texts."""

    text: str  # without special tokens
    tokens: int  # how many were generated, the end token included
    finish_reason: str  # "stop", or "length" if the cap cut it off


def seed_of(request: Request) -> int:
    """Return the same request draws the same answer; another sample index draws another."""
    return int.from_bytes(key_of(request)[:7])


class GumbelDraw:
    """Turns greedy search into sampling, row by row (a logits processor of transformers)."""

    def __init__(self, requests: Sequence[Request], device: torch.device) -> None:
        import torch

        self._temperatures = [request.temperature for request in requests]
        self._generators = [
            torch.Generator(device=device).manual_seed(seed_of(request)) for request in requests
        ]
        self._finite: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores whose argmax is a draw; shape (rows, vocabulary) as given."""
        import torch

        drawn = scores.float()
        # not-a-number spreads to the maximum; minus infinity is a token that is ruled out
        self._finite.append(drawn.amax(dim=-1).isfinite())
        for row, temperature in enumerate(self._temperatures):
            if temperature > 0:
                noise = torch.empty_like(drawn[row]).exponential_(generator=self._generators[row])
                drawn[row] = drawn[row] / temperature - noise.log()
        return drawn

    def finite_steps(self) -> list[int]:
        """Count the tokens of each row that were drawn before the scores ceased to be numbers."""
        import torch

        return torch.stack(self._finite).int().cumprod(dim=0).sum(dim=0).tolist()


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[list[int]],
    requests: Sequence[Request],
    *,
    pad: int,
    held: Sequence[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = (),
) -> list[Generated | None]:
    """Generate a text for every prompt of a batch; all run to the largest cap of the batch.

    `held` rule tokens out before one is drawn: scores from token ids and scores. The text is None
    where a token was chosen by scores that are not numbers.
    """
    import torch
    from transformers import GenerationConfig, LogitsProcessorList

    longest = max(map(len, prompts))
    padding = [longest - len(prompt) for prompt in prompts]
    tokens = [[pad] * k + prompt for k, prompt in zip(padding, prompts, strict=True)]
    mask = [[0] * k + [1] * (longest - k) for k in padding]
    ends = end_ids(model, tokenizer)
    # a fresh configuration: a model's own may sample, cut the tail or penalise repetition
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max(request.max_tokens for request in requests),
        do_sample=False,
        repetition_penalty=1.0,
        eos_token_id=sorted(ends) or None,
        pad_token_id=pad,
    )
    draw = GumbelDraw(requests, model.device)
    with torch.inference_mode():
        output = model.generate(  # type: ignore[operator]
            input_ids=torch.tensor(tokens, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            generation_config=config,
            logits_processor=LogitsProcessorList([*held, draw]),
        )
    texts: list[Generated | None] = []
    rows = output[:, longest:].tolist()
    for row, request, finite in zip(rows, requests, draw.finite_steps(), strict=True):
        written = row[: request.max_tokens]
        end = next((place for place, token in enumerate(written) if token in ends), None)
        text = str(tokenizer.decode(written[:end], skip_special_tokens=True))
        length = len(written) if end is None else end + 1
        reason = "length" if end is None else "stop"
        texts.append(Generated(text, length, reason) if length <= finite else None)
    return texts


def end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that ends an answer: the model's own list and the tokenizer's."""
    own = getattr(model.generation_config, "eos_token_id", None)
    ids = own if isinstance(own, list) else [own]
    return {end for end in (*ids, tokenizer.eos_token_id) if isinstance(end, int)}


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
