"""Formats of pairs that do not record the order shown; why each is read so stands above it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from unswayed.base.digests import digest
from unswayed.data.importers.protocol import (
    UNKNOWN,
    Entry,
    LeftOut,
    Part,
    Record,
    Source,
    by_candidate,
    decoded,
    has,
    importer,
    pair_decision,
    parts_of,
)
from unswayed.model.decisions import Choice, Decision
from unswayed.model.items import BadFieldError, Item, Message, Task, Text
from unswayed.model.presentation import X0, X2, Presentation
from unswayed.model.tasks.listwise import best_candidate

# AlpacaEval: the judge sees the two outputs once, in an order drawn by a hash that the file does not keep, and answers "m"
# for the first shown or "M" for the second. `preference` - 1 is the probability that output_2 is better, already switched
# back, so comparing it with P("M") tells the order; where the two are equally likely it is unknown, and the record is
# left out. A label outside the returned top-k gets the smallest returned log-probability; the decision is `censored`.
# Without logprobs (AlpacaEval 1, and annotators that answer with a rank) only the choice is known: 1 for output_1, 2 for
# output_2, 1.5 or 0 for a draw. The order shown is not; such decisions stand in the own order and are counted as `order not
# recorded`: figures by position say nothing about them. Equal outputs were never judged. There is no gold.
# Source: tatsu-lab/alpaca_eval, `results/*/annotations.json`, `results/*/*/annotations.json`.

_M: Final = ("m", "M")
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


def _alpaca(row: _Annotation, source: Source) -> Iterator[Part]:
    authors = (row.generator_1, row.generator_2)
    item = Item(
        id=f"alpaca-{digest(row.instruction, row.output_1, row.output_2).hex()[:16]}",
        prompt=row.instruction,
        candidates=(row.output_1, row.output_2),
        group=row.dataset,
        candidates_by=tuple(filter(None, authors)) if all(authors) else None,
    )
    yield item
    logprobs = _by_token(row.first_token_logprobs) or _first_token(row.raw_completion)
    if row.preference is None:
        yield LeftOut("no preference was recorded")
    elif logprobs:
        yield _likelier(item, row, row.preference, logprobs)
    elif row.output_1 == row.output_2:
        yield LeftOut("the outputs are equal: they were not judged")
    else:
        draw = row.preference in (0, 1.5)
        if not draw and not 1 <= row.preference <= 2:
            reason = f"{row.preference} is not between 1 and 2, nor 0 (a draw)"
            raise BadFieldError("preference", reason)
        yield _call(item, X0, "tie" if draw else int(row.preference > 1.5), row)
        yield f"order not recorded (no log-probabilities): {UNKNOWN}"


def _likelier(
    item: Item, row: _Annotation, preference: float, logprobs: Mapping[str, float]
) -> Decision | LeftOut:
    if not any(label in logprobs for label in _M):
        return LeftOut("neither label is among the returned tokens")
    if not max(logprobs.values()) <= _LARGEST:
        raise BadFieldError("first_token_logprobs", "are not log-probabilities")
    floor = min(logprobs.values())
    first, second = (math.exp(logprobs.get(label, floor)) for label in _M)
    if first + second == 0:
        return LeftOut("neither label has any probability")
    p_second = second / (first + second)
    if abs(p_second - 0.5) < _EVEN:
        return LeftOut("both labels are equally likely: the order is unknown")
    shown = X2 if _swapped(preference, p_second) else X0
    probs = by_candidate(shown.order, (1.0 - p_second, p_second))
    return _call(
        item,
        shown,
        int(probs[1] > probs[0]),
        row,
        probs=probs,
        label_mass=min(first + second, 1.0),
        censored=any(label not in logprobs for label in _M),
    )


def _call(
    item: Item, shown: Presentation, choice: Choice, row: _Annotation, **more: Any
) -> Decision:
    raw = row.raw_completion if isinstance(row.raw_completion, Mapping) else {}
    reasons = (str(raw[name]) for name in ("finish_reason", "stop_reason") if raw.get(name))
    more |= {"text": row.raw_text, "model": row.annotator, "finish_reason": next(reasons, None)}
    return pair_decision(item, shown, _M, choice, **more)


def _swapped(preference: float, p_second: float) -> bool:
    """Return True if output_2 was shown first."""
    second_wins = preference - 1.0
    straight, switched = abs(second_wins - p_second), abs(second_wins - (1.0 - p_second))
    if min(straight, switched) > _MATCH:
        reason = f"{preference} is neither 1 + P(M) = {1 + p_second:.6f} nor its complement"
        raise BadFieldError("preference", reason)
    return switched < straight


def _by_token(recorded: object) -> Mapping[str, float]:
    """Log-probabilities by token; none where the field holds something else."""
    try:
        return msgspec.convert(recorded, dict[str, float])
    except msgspec.ValidationError:
        return {}


def _first_token(completion: object) -> Mapping[str, float]:
    try:
        content = completion["logprobs"]["content"]  # type: ignore[index]
        return {top["token"]: float(top["logprob"]) for top in content[0]["top_logprobs"]}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


ALPACA_EVAL: Final = importer(
    "AlpacaEval annotations: one order per item, with label probabilities where recorded.",
    _Annotation,
    _alpaca,
    detects=has("instruction", "output_1", "output_2", "preference"),
)

# RewardBench: per-prompt results (`eval-set-scores/<org>/<model>.json`), columns of one object. The chosen answer is always
# the first of a pair there, so "the first is right" would be a habit and no judgment: candidates are put into an order drawn
# by a hash of the item's name. Which answer a generative judge was shown first was drawn too and is not recorded; a reward
# model scores each text alone. So figures by position mean nothing, and the import says so. `results` is 1 (chosen), 0
# (rejected) or 0.5, which is a tie of a reward model and an answer that could not be read of a judge; a reward model's own
# equal scores count as 0 there and are ties here. The second version has `scores` of four and more answers per prompt, the
# first `num_correct` of which are right.
# Source: allenai/reward-bench, `scripts/run_{rm,dpo,generative,v2}.py`; results in allenai/reward-bench-results.

_DRAWN: Final = f"order not recorded (none was shown, or it was drawn): {UNKNOWN}"
_FIELDS: Final = ("model", "model_type")
"""One value for all rows; the other fields are columns."""


class _Reward(msgspec.Struct):
    results: float | None = None
    id: int | str | None = None
    subset: str | None = None
    prompt: Any = None
    text_chosen: Any = None
    text_rejected: Any = None
    scores_chosen: Any = None
    scores_rejected: Any = None
    scores: Any = None
    num_correct: int | None = None
    model: str | list[str] | None = None
    model_type: str | None = None


def _unfold(record: Record, source: Source) -> Iterator[Entry]:
    """Yield the rows of the columns of an object; a record that is a row already stays."""
    if not isinstance(record.get("results"), list | msgspec.Raw):
        yield source, record
        return
    columns: dict[str, Sequence[object]] = {}
    for name in _Reward.__struct_fields__:
        column = record.get(name)
        if name not in _FIELDS and isinstance(column, list | msgspec.Raw):
            columns[name] = parts_of(column, name)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise BadFieldError("results", f"columns differ in length: {given}")
    fixed = {name: record[name] for name in _FIELDS if name in record}
    for number in range(lengths["results"]):
        place = Source(source.file, number + 1)
        try:
            row = {name: decoded(column[number], name) for name, column in columns.items()}
        except BadFieldError as error:
            yield place, error
        else:
            yield place, {**fixed, **row}


def _reward_bench(row: _Reward, source: Source) -> Iterator[Part]:
    name = f"{row.subset or 'all'}/{source.number if row.id is None else row.id}"
    model = "+".join(row.model) if isinstance(row.model, list) else row.model
    listed = _numbers(row.scores)
    if listed is not None and row.num_correct is not None:
        yield from _several(row, name, listed, row.num_correct, model)
        return
    chosen = digest(name)[0] % 2
    shown = (X0, X2)[chosen]  # the chosen answer first
    first, second = _text(row.text_chosen), _text(row.text_rejected)
    item = Item(
        id=name,
        prompt=_text(row.prompt),
        candidates=(second, first) if chosen else (first, second),
        gold=chosen,
        group=row.subset,
        meta={"chosen_at": chosen},
    )
    yield item
    pair = _numbers([row.scores_chosen, row.scores_rejected])
    scores = None if pair is None else by_candidate(shown.order, pair)
    if row.results is None and scores is None:
        yield LeftOut("no result was recorded")
        return
    choice = _right(row, chosen, scores)
    yield pair_decision(item, X0, ("A", "B"), choice, scores=scores, model=model)
    yield _DRAWN


def _right(row: _Reward, chosen: int, scores: tuple[float, ...] | None) -> Choice:
    if scores is not None and scores[0] == scores[1]:
        return "tie"
    if row.results is None:
        assert scores is not None
        return int(scores[1] > scores[0])
    if row.results not in (0, 0.5, 1):
        raise BadFieldError("results", f"{row.results} is not 0, 0.5 or 1")
    if row.results == 0.5:
        return None if (row.model_type or "").startswith("Generative") else "tie"
    return chosen if row.results == 1 else 1 - chosen


def _several(
    row: _Reward, name: str, scores: list[float], right: int, model: str | None
) -> Iterator[Part]:
    n = len(scores)
    if not 1 <= right <= n:
        raise BadFieldError("num_correct", f"{right} of {n} answers")
    drawn = sorted(range(n), key=lambda k: digest(f"{name}/{k}"))
    gold = tuple(place for place, answer in enumerate(drawn) if answer < right)
    yield Item(
        id=name,
        task=Task.LISTWISE,
        prompt=_text(row.prompt),
        candidates=("",) * n,
        gold=gold[0] if len(gold) == 1 else gold,
        group=row.subset,
        meta={"answers": drawn},
    )
    drawn_scores = tuple(scores[answer] for answer in drawn)
    yield Decision(
        item_id=name,
        order=tuple(range(n)),
        labels=tuple(str(place + 1) for place in range(n)),
        choice=best_candidate(drawn_scores, None),
        scores=drawn_scores,
        model=model,
    )
    yield _DRAWN


def _number(value: object) -> float | None:
    """Return a score, bare or alone in a list; None where there is none."""
    inner = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(inner, bool) or not isinstance(inner, int | float):
        return None
    return float(inner) if abs(inner) <= sys.float_info.max else None


def _numbers(value: object) -> list[float] | None:
    numbers = [_number(part) for part in value] if isinstance(value, list) else []
    scores = [number for number in numbers if number is not None]
    return scores if len(scores) == len(numbers) and len(scores) > 1 else None


def _text(value: object) -> Text:
    if isinstance(value, list):
        try:
            turns = msgspec.convert(value, list[Message])
        except msgspec.ValidationError:
            return ""
        return tuple(turns)
    return value if isinstance(value, str) else ""


def _is_reward_bench(record: Record) -> bool:
    paired = {"text_chosen", "text_rejected"} <= record.keys()
    scored = {"scores", "num_correct"} <= record.keys()
    return "results" in record and "subset" in record and (paired or scored)


REWARD_BENCH: Final = importer(
    "RewardBench per-prompt results: the chosen answer is put at a drawn place, no order recorded.",
    _Reward,
    _reward_bench,
    detects=_is_reward_bench,
    unfold=_unfold,
    answer="results",
)
