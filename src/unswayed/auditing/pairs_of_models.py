"""Recorded verdicts on pairs of answers as comparisons of the models that wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from msgspec.structs import replace as replace_fields

from unswayed.auditing.settings import AuditSettings
from unswayed.base.counts import plural
from unswayed.base.digests import drawn
from unswayed.base.errors import ItemError
from unswayed.metrics.win_rates import Comparisons
from unswayed.model.decisions import TIE, Recording
from unswayed.model.items import Item, ItemSet, text_of

_NAMES = (
    'Give each pair "candidates_by": the names of the two models, in the order of its candidates'
)


def question_of(item: Item) -> str:
    """Return the question that pairs of all models share: the unit, else the prompt, else the id without models."""
    names = ";".join(("", *(item.candidates_by or ())))
    return item.unit or text_of(item.prompt) or item.id.removesuffix(names)


def designed(items: ItemSet, settings: AuditSettings) -> ItemSet:
    """Return the items as a design shows them: balanced, each pair with its candidates in the order to ask.

    The model in all pairs, else the first name of a pair, is shown first in half of the questions, which
    is the same half for all models.

    Raises:
        ItemError: If the design is balanced and an item is not a pair that names two models.
    """
    if settings.design == "both":
        return items
    for item in items:
        if item.n != 2 or len({*(item.candidates_by or ())}) != 2:
            raise ItemError(f"{item.id}: --design balanced needs pairs of two models. {_NAMES}.")
    pairs = {item.id: item.candidates_by or () for item in items}
    common = set.intersection(*map(set, pairs.values()))
    questions = {question_of(item) for item in items}
    half = drawn(questions, len(questions) // 2, seed=settings.seed)
    shown = [
        item
        if (pairs[item.id][0] == min(common or pairs[item.id])) == (question_of(item) in half)
        else _swapped(item)
        for item in items
    ]
    whole = ItemSet.of(shown, name=items.name, bad_lines=items.bad_lines, origin=items.origin)
    return replace(whole, read_as=items.read_as)


def _swapped(item: Item) -> Item:
    """Swap the candidates of an item, under an id of its own: decisions about it do not fit the item."""
    gold = 1 - item.gold if isinstance(item.gold, int) else item.gold
    if isinstance(gold, tuple):
        gold = tuple(1 - candidate for candidate in gold)
    worth = item.meta.get("utility")
    meta = item.meta | ({"utility": worth[::-1]} if isinstance(worth, list) else {})
    own, shown = f"{item.id} (swapped)", item.candidates[::-1]
    by = item.candidates_by and item.candidates_by[::-1]
    return replace_fields(item, id=own, candidates=shown, candidates_by=by, gold=gold, meta=meta)


def compared_models(
    recording: Recording, items: Iterable[Item]
) -> tuple[Comparisons, tuple[str, ...]]:
    """Return the first answer to each question in each order, letters moving with the answers.

    Returns:
        The comparisons, and what was left out, in sentences.

    Raises:
        ItemError: If no decision is about a pair whose items name two models.
    """
    by_id = {item.id: item for item in items}
    own = [by_id.get(name) for name in recording.item_ids]
    pairs = [item.candidates_by if item is not None and item.n == 2 else None for item in own]
    pairs = [pair if pair is not None and pair[0] != pair[1] else None for pair in pairs]
    models = tuple(sorted({name for pair in pairs for name in pair or ()}))
    if not models:
        raise ItemError(f"no item is a pair that names two models. {_NAMES} (docs/your-data.md).")
    if all(kind.sample > 0 for kind in recording.kinds):
        raise ItemError(
            "only repeated samples are recorded (sample 1 and up), but a ranking takes single answers (sample 0). "
            "If this is one repetition of several, import it together with the first."
        )
    pair_of = np.array([[models.index(name) for name in pair or models[:1] * 2] for pair in pairs])
    codes: dict[str | None, int] = {}
    names = (None if item is None else question_of(item) for item in own)
    question = np.array([codes.setdefault(name, len(codes)) for name in names])
    plain = [
        kind.substitute is None and kind.sample == 0 and len(kind.order) == 2
        for kind in recording.kinds
    ]
    coupled = [
        use and kind.presentation.labels == (0, 1)
        for use, kind in zip(plain, recording.kinds, strict=True)
    ]
    used = np.array(coupled if any(coupled) else plain)[recording.kind]
    rows = used & np.array([pair is not None for pair in pairs])[recording.item]
    item, choice = recording.item[rows], recording.choices[rows]
    first, second = np.array([kind.order[:2] for kind in recording.kinds])[recording.kind[rows]].T
    wins = np.select([choice == first, choice == second, choice == TIE], [1.0, 0.0, 0.5], np.nan)
    whole = Comparisons(models, question[item], pair_of[item, first], pair_of[item, second], wins)
    unknown = own.count(None)
    left = pairs.count(None) - unknown
    told = (
        f"{plural(left, 'item')} left out, without names of two models. {_NAMES}.",
        f"{plural(unknown, 'judged item')} left out, not among the given items.",
    )
    kept = tuple(text for text, number in zip(told, (left, unknown), strict=True) if number)
    return whole.rows(np.ones(len(wins), dtype=np.bool_)), kept
