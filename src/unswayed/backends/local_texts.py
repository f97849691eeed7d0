"""The texts that a local model writes, in batches.

`transformers` draws from one random stream per batch, so an answer would depend on its neighbours.
Here a draw is the argmax of logits / temperature + Gumbel noise from a generator seeded by the
request: the same request gives the same text in any batch, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from unswayed.model.calls import Request, key_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


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
