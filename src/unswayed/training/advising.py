"""Advice about a training that has not begun: the untrained model is asked, and its answers are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from unswayed.model.items import Item
from unswayed.training.advice import Advice, advise
from unswayed.training.base_answers import ask_base
from unswayed.training.own_labels import DISTILL
from unswayed.training.planning import answers_with_label, plan_training
from unswayed.training.recipe_parts import Recipe
from unswayed.training.table import OBJECTIVES

ASKING: Final = DISTILL
"""The objective whose questions are asked: it needs no gold, and the others ask about no other item."""


def advise_training(items: Sequence[Item], *, model: str, recipe: Recipe, out: Path) -> Advice:
    """Say which objective to train with, from what the untrained model answers in a balanced set.

    Nothing is asked where the prompt asks for reasoning. The calls are recorded where a training into
    `out` looks for them, so neither asks twice: after an error or an interrupt the same call asks the rest.
    """
    if not answers_with_label(items, model=model, recipe=recipe):
        return advise(items, None, answer_only=False)
    # the layouts that every other training's prompts are among
    data = msgspec.structs.replace(recipe.data, layouts=recipe.data.layouts or "coupled")
    recipe = msgspec.structs.replace(recipe, data=data)
    plan = plan_training(OBJECTIVES.name_of(ASKING), items, model=model, recipe=recipe)
    return advise(plan.groups.items, ask_base(plan, out), answer_only=True)
