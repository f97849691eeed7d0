"""The items whose verdict changes with the presentation: `flipped.json`, what a report shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from unswayed.auditing.audit import AuditRecord, Exchange, ExchangeSource
from unswayed.calls import Question
from unswayed.metrics.score_effects import rank_agreement
from unswayed.model.decisions import SCORE, UNPARSED, Choice, DecisionTable, choice_of
from unswayed.model.items import Item, Message, blind, text_of
from unswayed.model.parsing import ending
from unswayed.prompts import Spans

FLIPS_FILE: Final = "flipped.json"
MOST_FLIPS: Final = 10_000
ITEMS_AT_ONCE: Final = 250
MOST_SHOWN: Final = 8
MOST_EXAMPLES: Final = 3


class Shown(msgspec.Struct, frozen=True, gc=False):
    """One presentation of an item and what the judge made of it."""

    order: tuple[int, ...]  # `order[p]` = candidate shown at position p
    labels: tuple[str, ...]  # `labels[p]` = the symbol printed at position p
    messages: tuple[Message, ...]  # the rendered prompt
    choice: Choice  # candidate, "tie", or None (unparsed)
    label: str | None = None  # the label the judge named, as printed; None where it named none
    prob: float | None = None  # probability of the choice; None if unknown
    text: str | None = None  # the judge's answer as it came back
    reasoning: str | None = None  # its reasoning, where the answer carries any
    # by candidate, where its text stands in the prompt; empty where that is not known
    spans: Spans = ()
    # by candidate, null where it was given none; absent where candidates are not scored
    scores: tuple[float | None, ...] | UnsetType = UNSET


class FlippedItem(msgspec.Struct, frozen=True, gc=False):
    """An item whose verdict changed with the presentation."""

    item_id: str
    group: str | None
    gold: Choice | tuple[int, ...]  # candidate, several candidates, "tie" or None
    candidates: tuple[str, ...]  # the candidates' texts, by candidate
    shown: tuple[Shown, ...]  # its presentations, the item's own order first
    # of candidates with scores, how well the rankings of two presentations agree
    stability: float | UnsetType = UNSET
    # by candidate, its score when shown first less its mean elsewhere
    first_gain: tuple[float | None, ...] | UnsetType = UNSET
    values: tuple[float, ...] | UnsetType = UNSET  # of the levels of a scale, by candidate
    human: float | UnsetType = UNSET  # the score that people gave


class Flips(msgspec.Struct, frozen=True):
    """Contents of `flipped.json`: flipped items and unreadable answers."""

    n_flipped: int  # items without the same verdict in every order
    # surest first, at most `MOST_FLIPS`; where candidates are scored, the least stable ranking
    # first
    flipped: tuple[FlippedItem, ...] = ()
    # raw answers that could not be read, after a finish reason that is the cause
    unparsed_examples: tuple[str, ...] = ()


def flips_of(record: AuditRecord) -> Flips:
    """Return the flipped items of an audit, with what was said about them."""
    tables, rows, sure = [], [], []
    for stratum in record.plan.strata:
        seen = stratum.table.select(stratum.protocol_asks("coupled"))
        tables.append(seen)
        rows.append(np.flatnonzero(stratum.single_calls["coupled"].flipped))
        sure.append(_least_sure(seen, rows[-1]))
    places = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    surest = (-np.concatenate(sure)).argsort(kind="stable")[:MOST_FLIPS]  # ties and unknown: last
    kept = [
        (record.plan.strata[place].items[row], tables[place], row)
        for place, row in zip(
            places[surest].tolist(), np.concatenate(rows)[surest].tolist(), strict=True
        )
    ]
    return Flips(
        n_flipped=len(places),
        flipped=tuple(_described(kept, record.exchanges)),
        unparsed_examples=tuple(_unparsed(record)),
    )


def _least_sure(seen: DecisionTable, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the lowest probability among the choices of each item, or the disagreement of its rankings; 0
    where there is neither, and below that where a choice is a tie: a change of sides comes first.
    """
    choices = seen.choices[rows]
    least = np.zeros(len(rows))
    if SCORE in seen.ratings:
        agreement = rank_agreement(seen.ratings[SCORE][rows])
        least = (1 - np.where(np.isnan(agreement), 1.0, agreement)) / 2
    elif seen.probs is not None:
        named = np.maximum(choices, 0).astype(np.intp)[:, :, None]
        chosen = np.take_along_axis(seen.probs[rows], named, axis=2)[:, :, 0].min(axis=1)
        least = np.where(np.isnan(chosen), 0.0, chosen)
    return np.where((choices < 0).any(axis=1), -1.0, least)


def _described(
    flipped: Sequence[tuple[Item, DecisionTable, int]], read: ExchangeSource
) -> Iterator[FlippedItem]:
    """Items with what was said about them, read many items at a time."""
    for start in range(0, len(flipped), ITEMS_AT_ONCE):
        part = [
            (item, seen, row, _most_telling(seen.choices[row].tolist()))
            for item, seen, row in flipped[start : start + ITEMS_AT_ONCE]
        ]
        questions = [
            Question(seen.items[row], seen.asks[view])
            for _, seen, row, views in part
            for view in views
        ]
        words = {(said.question.item.id, said.question.ask): said for said in read(questions)}
        for item, seen, row, views in part:
            told = ((view, words.get((item.id, seen.asks[view]))) for view in views)
            yield FlippedItem(
                item_id=item.id,
                group=item.group,
                gold=None if isinstance(item.gold, float | dict) else cast(Any, item.gold),
                candidates=tuple(text_of(candidate) for candidate in item.candidates),
                shown=tuple(_shown(seen, row, view, said) for view, said in told if said),
                values=UNSET if item.values is None else item.values,
                human=UNSET if (human := item.human_score()) is None else human,
                **_of_scores(seen, row),
            )


def _of_scores(seen: DecisionTable, row: int) -> dict[str, Any]:
    """Return the stability of an item's ranking, and the effect of the first place on each candidate."""
    if SCORE not in seen.ratings:
        return {}
    scores = seen.ratings[SCORE][row]
    first = np.array([[ask.presentation.order[0] == c for c in range(seen.n)] for ask in seen.asks])
    gains = [_mean(own[at]) - _mean(own[~at]) for own, at in zip(scores.T, first.T, strict=True)]
    agreement = float(rank_agreement(scores[None])[0])
    return {
        "stability": UNSET if np.isnan(agreement) else agreement,
        "first_gain": tuple(None if np.isnan(gain) else gain for gain in gains),
    }


def _mean(scores: NDArray[np.float64]) -> float:
    """Return the mean of the scores that there are; NaN without any."""
    given = scores[~np.isnan(scores)]
    return float(given.mean()) if len(given) else float("nan")


def _most_telling(choices: Sequence[int]) -> list[int]:
    """Return the item's own order first, then one presentation for each further answer, then the rest."""
    telling = {choice: view for view, choice in reversed(list(enumerate(choices)))}
    first = sorted(telling.values())
    return [*first, *(view for view in range(len(choices)) if view not in first)][:MOST_SHOWN]


def _shown(seen: DecisionTable, row: int, view: int, words: Exchange) -> Shown:
    shown, choice = seen.asks[view].presentation, choice_of(int(seen.choices[row, view]))
    labels = shown.symbols(seen.label_set)
    label = prob = None
    if isinstance(choice, int):
        label = labels[shown.position_of_candidate(choice)]
        share = np.nan if seen.probs is None else float(seen.probs[row, view, choice])
        prob = None if np.isnan(share) else share
    answer, reasoning = _split(words.text)
    return Shown(
        order=shown.order,
        labels=labels,
        messages=words.messages,
        spans=words.spans,
        choice=choice,
        label=label,
        prob=prob,
        text=answer,
        reasoning=reasoning,
        scores=_scores(seen, row, view),
    )


def _scores(seen: DecisionTable, row: int, view: int) -> tuple[float | None, ...] | UnsetType:
    if SCORE not in seen.ratings:
        return UNSET
    scores = seen.ratings[SCORE][row, view].tolist()
    return tuple(None if np.isnan(score) else score for score in scores)


def _split(text: str | None) -> tuple[str | None, str | None]:
    """Return the answer, and the reasoning before it where it is marked."""
    if text is None or "</think>" not in text:
        return text, None
    reasoning, _, answer = text.rpartition("</think>")
    return answer.strip(), reasoning.removeprefix("<think>").strip() or None


def _unparsed(record: AuditRecord) -> Iterator[str]:
    """Raw text of a few different answers that could not be read, after the finish reason that is the cause."""
    told = set[str]()
    for stratum in record.plan.strata:
        for row, column in np.argwhere(stratum.table.choices == UNPARSED)[:50]:
            question = Question(blind(stratum.items[row]), stratum.table.asks[column])
            for said in record.exchanges([question]):
                ended = "" if ending(said.finish_reason).is_read else said.finish_reason
                if said.text or ended:
                    why = f"(finish reason {ended}) " if ended else ""
                    text = f"{why}{said.text or ''}"[:2000].strip()
                    yield from {text} - told
                    told.add(text)
            if len(told) >= MOST_EXAMPLES:
                return
