"""AlpacaEval annotations: one order per item, with the label tokens' log-probabilities where recorded.

The judge sees the two outputs once, in an order drawn by a hash that the file does not keep, and
answers "m" for the first shown or "M" for the second. `preference` - 1 is the probability that
output_2 is better, already switched back, so comparing it with P("M") tells the order; where the two
are equally likely (within 1e-6) it cannot be told, and the record is left out. A label outside the
returned top-k gets the smallest returned log-probability and the decision is marked `censored`.

Without logprobs (AlpacaEval 1, and annotators that answer with a rank) only the choice is known: 1 for
output_1, 2 for output_2, 1.5 or 0 for a draw. The order shown is not; such decisions stand in the own
order and are counted as `order not recorded`: figures by position say nothing about them. Equal
outputs were never judged. There is no gold.

Source: tatsu-lab/alpaca_eval, `results/*/annotations.json`, `results/*/*/annotations.json`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.digests import digest
from unswayed.importers.protocol import Importer, Judged, Source, has, pair_decision
from unswayed.items import BadFieldError, Item
from unswayed.presentation import X0, X2, Presentation

LABELS: Final = ("m", "M")

ORDER_UNKNOWN: Final = "order not recorded (no log-probabilities): figures by position mean nothing for these decisions"

_EVEN: Final = 1e-6
"""P("M") closer to one half than this does not tell the order."""
_LARGEST: Final = 1e-6
"""Log-probability of what is certain, with the rounding of files."""
_MATCH: Final = 1e-4
"""How far `preference` may lie from either reading; the files print ten digits."""


class _Annotation(msgspec.Struct):
    instruction: str
    output_1: str
    output_2: str
    preference: float | None = None
    generator_1: str | None = None
    generator_2: str | None = None
    dataset: str | None = None
    annotator: str | None = None
    first_token_logprobs: Any = None
    raw_completion: Any = None
    raw_text: str | None = None


def _read(row: _Annotation, source: Source) -> Judged:
    """One pair and its one call."""
    item = Item(
        id=f"alpaca-{digest(row.instruction, row.output_1, row.output_2).hex()[:16]}",
        prompt=row.instruction,
        candidates=(row.output_1, row.output_2),
        group=row.dataset,
        meta={"generators": [row.generator_1, row.generator_2]},
    )
    if row.preference is None:
        return Judged(item, (), left_out="no preference was recorded")
    logprobs = _by_token(row.first_token_logprobs) or _first_token(row.raw_completion)
    if not logprobs and row.output_1 == row.output_2:
        return Judged(item, (), left_out="the outputs are equal: they were not judged")
    if not logprobs:
        return Judged(item, (_choice_alone(item, row, row.preference),), remarks=(ORDER_UNKNOWN,))
    if not any(label in logprobs for label in LABELS):
        return Judged(item, (), left_out="neither label is among the returned tokens")
    if not max(logprobs.values()) <= _LARGEST:
        raise BadFieldError("first_token_logprobs", "are no log-probabilities")
    floor = min(logprobs.values())
    first, second = (math.exp(logprobs.get(label, floor)) for label in LABELS)
    if first + second == 0:
        return Judged(item, (), left_out="neither label has any probability")
    p_second = second / (first + second)
    if abs(p_second - 0.5) < _EVEN:
        return Judged(item, (), left_out="both labels are equally likely: the order is unknown")
    shown = X2 if _swapped(row.preference, p_second) else X0
    by_position = (1.0 - p_second, p_second)
    probs = tuple(by_position[shown.position_of_candidate(c)] for c in (0, 1))
    decision = msgspec.structs.replace(
        _call(item, shown, int(probs[1] > probs[0]), row),
        probs=probs,
        label_mass=min(first + second, 1.0),
        censored=any(label not in logprobs for label in LABELS),
    )
    return Judged(item, (decision,))


def _choice_alone(item: Item, row: _Annotation, preference: float) -> Decision:
    """What was preferred, in the own order for want of the one shown."""
    draw = preference in (0, 1.5)
    if not draw and not 1 <= preference <= 2:
        raise BadFieldError("preference", f"{preference} is not between 1 and 2, nor 0 (a draw)")
    choice: Choice = "tie" if draw else int(preference > 1.5)
    return _call(item, X0, choice, row)


def _call(item: Item, shown: Presentation, choice: Choice, row: _Annotation) -> Decision:
    raw = row.raw_completion if isinstance(row.raw_completion, Mapping) else {}
    reasons = [raw[name] for name in ("finish_reason", "stop_reason") if raw.get(name)]
    reason = str(reasons[0]) if reasons else None
    text, model = row.raw_text, row.annotator
    return pair_decision(item, shown, LABELS, choice, text=text, model=model, finish_reason=reason)


def _swapped(preference: float, p_second: float) -> bool:
    """Whether output_2 was shown first."""
    second_wins = preference - 1.0
    straight, switched = abs(second_wins - p_second), abs(second_wins - (1.0 - p_second))
    if min(straight, switched) > _MATCH:
        raise BadFieldError(
            "preference",
            f"{preference} is neither 1 + P(M) = {1 + p_second:.6f} nor its complement",
        )
    return switched < straight


def _by_token(recorded: object) -> Mapping[str, float]:
    """Log-probabilities by token; none where the field holds something else."""
    try:
        return msgspec.convert(recorded, dict[str, float])
    except msgspec.ValidationError:
        return {}


def _first_token(completion: object) -> Mapping[str, float]:
    """The first token's alternatives in a chat completion's choice."""
    try:
        content = completion["logprobs"]["content"]  # type: ignore[index]
        return {top["token"]: float(top["logprob"]) for top in content[0]["top_logprobs"]}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


ALPACA_EVAL: Final = Importer(
    title="AlpacaEval annotations: one order per item, with label probabilities where recorded.",
    detects=has("instruction", "output_1", "output_2", "preference"),
    schema=_Annotation,
    read=_read,
)
