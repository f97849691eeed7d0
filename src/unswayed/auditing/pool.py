"""The pool: every recorded decision of an audit as columns, one table per stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from unswayed.auditing.design import Stratum, asks_under_views
from unswayed.calls import Question
from unswayed.methods import Method
from unswayed.model.decisions import Decision, DecisionTable, Recording, record
from unswayed.model.parsing import ending
from unswayed.model.presentation import Ask

DecisionSource = Callable[[Iterable[Question]], Iterator[Decision]]
"""Reads the decisions of questions from wherever they are recorded; what is missing is left out."""


def with_answers(
    strata: Sequence[Stratum],
    decisions: Iterable[Decision] | Recording,
    *,
    methods: Iterable[Method] = (),
) -> tuple[Stratum, ...]:
    """Stream decisions into the tables of strata.

    Content-free decisions are left out, but for those that a method reads to judge an item
    (contextual calibration with `per_item`): what others learn from them, `fit` reads itself.
    """
    judging = list(methods)
    recording = decisions if isinstance(decisions, Recording) else record(decisions)
    answered = []
    for stratum in strata:
        content_free = {
            ask
            for method in judging
            if any(ask.substitute is not None for ask in method.asks(stratum.n))
            for ask in asks_under_views(method, stratum)
        }
        of_kind = np.array(
            [
                ask.presentation.n == stratum.n and (ask.substitute is None or ask in content_free)
                for ask in recording.asks
            ],
            dtype=np.bool_,
        )
        own = recording.rows(of_kind[recording.kind])
        table = DecisionTable.of_recording(stratum.subjects, own)
        answered.append(stratum.with_table(table))
    return tuple(answered)


def with_content(table: DecisionTable) -> DecisionTable:
    """Return the columns that ask about the candidates themselves, for counts of answers."""
    if all(ask.substitute is None for ask in table.asks):
        return table
    return table.select([ask for ask in table.asks if ask.substitute is None])


class Remembered:
    """The decisions of a few questions, kept as they are read: folds and methods ask for them again."""

    def __init__(self, read: DecisionSource, questions: Iterable[Question]) -> None:
        self._read = read
        self._wanted = {(question.item.id, question.ask) for question in questions}
        self._kept: dict[tuple[str, Ask], Decision] = {}
        self.endings: dict[tuple[str, Ask], str] = {}

    def noting(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        """Pass decisions on; keep those that are wanted, and the finish reasons that leave replies
        about candidates unread.
        """
        for decision in decisions:
            if self._wanted and (key := (decision.item_id, decision.ask)) in self._wanted:
                self._kept[key] = decision
            reason = decision.finish_reason
            unread = decision.choice is None and decision.substitute is None
            if unread and reason is not None and not ending(reason).is_read:
                self.endings[decision.item_id, decision.ask] = reason
            yield decision

    def __call__(self, questions: Iterable[Question]) -> Iterator[Decision]:
        """Yield the decisions of questions; what was not kept is read, what is missing left out."""
        others = []
        for question in questions:
            key = question.item.id, question.ask
            if key in self._kept:
                yield self._kept[key]
            else:
                others.append(question)
        if others:
            yield from self._read(others)


def sampled(decisions: Iterable[Decision], samples: int) -> Iterator[Decision]:
    """Give each greedy decision the probabilities of its R samples, an explicit choice of the run.

    Laplace: (count + 1/n) / (R + 1). Unparsed samples count for no candidate; with none parsed
    the probabilities stay unknown. The samples themselves are passed on unchanged.
    """
    greedy: dict[tuple[str, Ask], Decision] = {}
    choices: dict[tuple[str, Ask], dict[int, int]] = {}
    for decision in decisions:
        key = (decision.item_id, decision.ask._replace(sample=0))
        if decision.sample == 0:
            greedy[key] = decision
        else:
            yield decision
            if decision.sample <= samples and isinstance(decision.choice, int):
                choices.setdefault(key, {})[decision.sample] = decision.choice
    for key, decision in greedy.items():
        seen = Counter(choices.get(key, {}).values())
        n, total = len(decision.order), seen.total()
        probs = tuple((seen[candidate] + 1 / n) / (total + 1) for candidate in range(n))
        yield msgspec.structs.replace(decision, probs=probs if total else None)
