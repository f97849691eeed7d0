"""Several criteria of a rubric in one prompt: which level does the response reach on each?

An item of this task is about one criterion of a rubric item (`items.criteria`); all of them are
asked by the same prompt, whose reply is one JSON object with a label for every criterion. Each reads
its own. Where the criteria are printed is moved by `Ask.criteria`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from unswayed.model.calls import Response
from unswayed.model.decisions import Decision, Evidence
from unswayed.model.items import BadFieldError, Item, texts_of
from unswayed.model.parsing import ReplySpec, criteria_schema, decision_of, ending, read_criteria
from unswayed.model.presentation import Ask, Presentation
from unswayed.model.tasks.rubric import TASK as RUBRIC
from unswayed.model.tasks.rubric import check_criteria, check_scale, human_score, right_levels
from unswayed.model.tasks.spec import Points, TaskSpec, sentences_of

TOKENS = 32
"""For what stands around the criteria, such as a fence."""
TOKENS_EACH = 16
"""For the label of one criterion, beside its name."""


class CriteriaReply:
    """One JSON object: the label of every criterion."""

    gives: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE})

    def request(self, labels: Sequence[str], style: ReplySpec) -> ReplySpec:
        """Room for the object, behind the style's reasoning where it asks for some."""
        longest = max(len(label) for label in labels)
        room = TOKENS + sum(TOKENS_EACH + len(name) + longest for name in style.points)
        return style.of_object(room, criteria_schema(labels, style.points))

    def example(
        self, item: Item, shown: Presentation, labels: Sequence[str], style: ReplySpec
    ) -> str:
        """Return the label of the item's own criterion, which is all that its gold tells."""
        label = labels[shown.label_of_candidate(item.gold_candidates()[0])]
        return style.example(_joined({item.criterion or "": label}))

    def written(
        self, labels: Sequence[str], verdict: str, scores: Sequence[float], *, answer_only: bool
    ) -> str:
        """Return the verdict on one criterion, as it stands in the object."""
        return verdict

    def read(
        self,
        item: Item,
        ask: Ask,
        labels: Sequence[str],
        response: Response,
        *,
        model: str,
        answer_only: bool,
        form: str | None = None,
    ) -> Decision:
        """Return the level that the object gives the item's own criterion; None where it gives none."""
        criteria = item.criteria or ()
        by_name = read_criteria(
            response.text if ending(response.finish_reason).is_read else "",
            labels,
            criteria,
            quoted=texts_of(item),
        )
        own = by_name[criteria.index(item.criterion)] if item.criterion in criteria else None
        return decision_of(
            item,
            ask,
            labels,
            response,
            model=model,
            text=response.text,
            choice=None if own is None else ask.presentation.candidate_of_label(own),
            criteria_order=ask.criteria or tuple(range(len(criteria))),
        )


def _check(item: Item) -> None:
    check_scale(item)
    check_criteria(item)
    if item.criterion is None or item.criterion not in (item.criteria or ()):
        raise BadFieldError(
            "criterion",
            f"{item.criterion!r} is not one of the criteria. A file has task rubric and all criteria "
            "of an item in one line",
        )
    if item.gold is not None and human_score(item) is None:
        raise BadFieldError("gold", f"{item.gold!r} is not a number, the score of this criterion")


def _displayed(item: Item, ask: Ask) -> tuple[str, ...]:
    criteria = item.criteria or ()
    return tuple([criteria[place] for place in ask.criteria]) if ask.criteria else criteria


def _joined(verdicts: Mapping[str, str]) -> str:
    return json.dumps(dict(verdicts), ensure_ascii=False)


_OBJECT = (
    "one JSON object and nothing else, with every criterion and the label of its level, {labels}, "
    'in this form: {{"name of the criterion": "label", ...}}'
)

TASK = TaskSpec(
    name="criteria",
    noun="level",
    listed=True,
    check=_check,
    gold=right_levels,
    human=human_score,
    orders="balanced",
    train_orders=None,
    reply=CriteriaReply(),
    scaled=True,
    points=Points(_displayed, _joined),
    sentences={
        **RUBRIC.sentences,
        **sentences_of("""
role: You are given a question, a response to it, the levels of a scale and several criteria. Decide
    for each criterion which level describes the response.
role-modified: You grade a response on several criteria, each on the same scale, whose levels are
    described in words. Find out for each criterion which description fits most exactly.
criteria: Take the criteria one by one, as if each were the only one. Hold the response against each
    level by itself: what the level demands, whether the response does that, and whether another
    level fits more exactly.
impartial: Be strictly objective: decide by what the levels say. Where a level or a criterion is
    printed and which label a level carries were drawn by lot and mean nothing; the levels need not
    stand in the order of the scale.
tags: Reasoning inside <think> and </think>, then the JSON object.
debias: Guard against habits that distort such grades. The order in which the levels and the
    criteria are printed must not influence you, nor must the length of a description, a liking for
    one of the labels, nor the grade of one criterion that of another. Stay objective: with levels
    and criteria shuffled you would have to choose the same levels.
question: Which level describes the response on each criterion, {labels}?
"""),
        "reply": f"Reply with {_OBJECT}.",
        "reasoning": (
            "Think it through step by step first, inside <think> and </think>. After </think> "
            f"write {_OBJECT}."
        ),
    },
)
