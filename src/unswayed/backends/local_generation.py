"""Text generation in batches, each prompt's randomness its own.

`transformers` draws from one random stream per batch, so an answer would depend on its
neighbours. Here a draw is the argmax of logits / temperature + Gumbel noise from a generator
seeded by the request: the same request gives the same text in any batch, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Generated", "Wanted", "generate"]


class Wanted(NamedTuple):
    """One text to generate.

    Attributes:
        tokens: The prompt.
        max_tokens: Cap on generated tokens.
        temperature: 0 for the likeliest token each time.
        seed: Seed of the draws.
    """

    tokens: list[int]
    max_tokens: int
    temperature: float
    seed: int


class Generated(NamedTuple):
    """What came out.

    Attributes:
        text: Without special tokens.
        tokens: How many were generated, the end token included.
        finite: Whether every token was chosen by scores that are numbers.
        finish_reason: "stop", or "length" if the cap cut it off.
    """

    text: str
    tokens: int
    finish_reason: str
    finite: bool = True


class GumbelDraw:
    """Turns greedy search into sampling, row by row (a logits processor of transformers)."""

    def __init__(self, batch: Sequence[Wanted], device: torch.device) -> None:
        import torch

        self._temperatures = [wanted.temperature for wanted in batch]
        self._generators = [
            torch.Generator(device=device).manual_seed(wanted.seed) for wanted in batch
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
        """How many tokens of each row were drawn before the scores ceased to be numbers."""
        import torch

        steps: list[int] = torch.stack(self._finite).int().cumprod(dim=0).sum(dim=0).tolist()
        return steps


def generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batch: Sequence[Wanted], *, pad: int
) -> list[Generated]:
    """Generate a text for every prompt of a batch; all run to the largest cap of the batch."""
    import torch
    from transformers import GenerationConfig, LogitsProcessorList

    longest = max(len(wanted.tokens) for wanted in batch)
    padding = [longest - len(wanted.tokens) for wanted in batch]
    tokens = [[pad] * k + wanted.tokens for k, wanted in zip(padding, batch, strict=True)]
    mask = [[0] * k + [1] * (longest - k) for k in padding]
    ends = _end_ids(model, tokenizer)
    # a fresh configuration: a model's own may sample, cut the tail or penalise repetition
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max(wanted.max_tokens for wanted in batch),
        do_sample=False,
        repetition_penalty=1.0,
        eos_token_id=sorted(ends) or None,
        pad_token_id=pad,
    )
    draw = GumbelDraw(batch, model.device)
    with torch.inference_mode():
        output = model.generate(  # type: ignore[operator]
            input_ids=torch.tensor(tokens, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            generation_config=config,
            logits_processor=LogitsProcessorList([draw]),
        )
    rows = output[:, longest:].tolist()
    read = [_read(row, wanted, tokenizer, ends) for row, wanted in zip(rows, batch, strict=True)]
    return [
        text._replace(finite=text.tokens <= steps)
        for text, steps in zip(read, draw.finite_steps(), strict=True)
    ]


def _end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that ends an answer: the model's own list and the tokenizer's."""
    own = getattr(model.generation_config, "eos_token_id", None)
    ids = own if isinstance(own, list) else [own]
    return {end for end in (*ids, tokenizer.eos_token_id) if isinstance(end, int)}


def _read(
    row: list[int], wanted: Wanted, tokenizer: PreTrainedTokenizerBase, ends: set[int]
) -> Generated:
    row = row[: wanted.max_tokens]
    end = next((place for place, token in enumerate(row) if token in ends), None)
    kept = row if end is None else row[:end]
    return Generated(
        text=str(tokenizer.decode(kept, skip_special_tokens=True)),
        tokens=len(kept) + (end is not None),
        finish_reason="length" if end is None else "stop",
    )
