"""Worked examples (k-shot): how each is shown, so that the examples teach no position.

Every example keeps one presentation in all prompts of a run. Among the examples with n candidates
the right one stands equally often at every position (exactly, if their number is a multiple of n),
in a seeded random sequence; the other candidates follow by rotation. Labels stay with positions,
so every label is right equally often too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from unswayed.base.errors import TemplateError
from unswayed.model.items import Item
from unswayed.model.presentation import Presentation

SHOT_SEED: Final = 0
"""Seed of the positions; fixed, so that the same examples always give the same prompt."""


def gold_of_shot(shot: Item) -> int:
    """Return the candidate an example names as right (the first of several)."""
    gold = shot.gold_candidates()
    if not gold:
        raise TemplateError(
            f"{shot.id}: an example needs one right candidate, but its gold is {shot.gold!r}. "
            f"Give it {'the value of a level' if shot.values else 'a candidate index'} as gold, or "
            "leave it out of the examples."
        )
    return gold[0]


def shot_presentations(shots: Sequence[Item]) -> tuple[Presentation, ...]:
    """Return the presentation of each example, in the order given."""
    upcoming: dict[int, list[int]] = {}
    generators: dict[int, random.Random] = {}
    shown = []
    for shot in shots:
        n = shot.n
        if not upcoming.get(n):
            generator = generators.setdefault(n, random.Random(f"shots:{SHOT_SEED}:{n}"))
            upcoming[n] = generator.sample(range(n), n)
        position = upcoming[n].pop()
        gold = gold_of_shot(shot)
        order = tuple((p - position + gold) % n for p in range(n))
        shown.append(Presentation(order, tuple(range(n))))
    return tuple(shown)
