"""Judging many items: what is asked in each round, what came of it, and a share asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from unswayed.decisions import Decision, Verdict
from unswayed.items import Item, blind, by_criterion
from unswayed.judging import JudgeFailure, Judging
from unswayed.presentation import Ask, askable
from unswayed.runner import (
    CallPlan,
    Question,
    RunCounts,
    RunSettings,
    Session,
    ShowsProgress,
)
from unswayed.shadow import Shadow
from unswayed.store import CallStore

__all__ = ["Rounds"]


class Rounds:
    """Judges items together: asks, round by round, what the method still wants, and decides.

    Args:
        judging: The method, checked against the model and the prompt.
        store: Recorded calls, used and filled.
        settings: How items are asked.
        shadow: What is asked again.
        progress: Shown while calls are made.

    Attributes:
        counts: What was asked so far.
        null_reasons: Verdicts so far that name no candidate and no tie, by their reason.
    """

    def __init__(
        self,
        judging: Judging,
        store: CallStore,
        settings: RunSettings,
        shadow: Shadow,
        progress: ShowsProgress | None,
    ) -> None:
        self.judging = judging
        self.counts = RunCounts()
        self.null_reasons: Counter[str] = Counter()
        self._store, self._settings = store, settings
        self._shadow, self._progress = shadow, progress
        self._judged_fitted_on: dict[str, None] = {}

    async def judge(self, items: Sequence[Item]) -> list[Verdict | JudgeFailure]:
        """The verdicts on items with different ids.

        Raises:
            UsageError: If the method cannot work on an item, before any call.
        """
        for item in items:
            self.judging.check(item)
        session = self._session()
        seen: dict[str, list[Decision]] = {item.id: [] for item in items}
        asked: dict[str, set[Ask]] = {item.id: set() for item in items}
        failed: dict[str, JudgeFailure] = {}
        waiting = [blind(item) for item in items]
        while waiting:
            questions: list[Question] = []
            for item in waiting:
                wanted = self.judging.wanted(item, seen[item.id])
                new = [ask for ask in wanted if ask not in asked[item.id]]
                asked[item.id].update(new)
                questions.extend(Question(item, ask) for ask in new)
            if not questions:
                break
            counts = await self._ask(session, questions)
            for decision in session.read(questions):
                seen[decision.item_id].append(decision)
            missing = {
                i: len(asked[i]) - len(seen[i]) for i in asked if len(seen[i]) < len(asked[i])
            }
            failed.update(_failures_of(missing, questions, session, counts))
            going_on = {question.item.id for question in questions} - failed.keys()
            waiting = [item for item in waiting if item.id in going_on]
        await self._ask_shadow(session, [item for item in items if item.id not in failed])
        return [failed.get(item.id) or self._decide(blind(item), seen[item.id]) for item in items]

    def _decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        verdict = self.judging.decide(item, decisions)
        reason = self.judging.null_reason(verdict, decisions)
        if reason is not None:
            self.null_reasons[reason] += 1
        return verdict

    def _session(self) -> Session:
        """What asks about one window; another one may have other items under the same ids."""
        return Session(self.judging.backend, self._store, self._settings)

    async def _ask(self, session: Session, questions: Sequence[Question]) -> RunCounts:
        shown = None if self._progress is None else _Onward(self._progress, self.counts)
        counts = await session.ask(questions, progress=shown)
        self.counts = self.counts.plus(counts)
        return counts

    def price(self, items: Iterable[Item]) -> CallPlan:
        """`Judge.price`."""
        session = Session(self.judging.backend, self._store, self._settings, stream=True)
        return session.price(self._every(items))

    def _every(self, items: Iterable[Item]) -> Iterator[Question]:
        for item in map(blind, by_criterion(items)):
            self.judging.check(item)
            yield from (Question(item, ask) for ask in askable(item, self.judging.asks(item)))
            if self._shadow.draws(item):
                yield from self._shadow.questions([item])

    def budget_for(self, items: Iterable[Item]) -> float:
        """`Judge.budget_for`."""
        spent = max(self._store.totals().cost_usd, self._settings.budget_usd or 0.0)
        return max(spent + (self.price(items).most_cost_usd or 0.0), 2 * spent)

    def was_asked(self, item: Item) -> bool:
        """`Judge.was_asked`."""
        session = self._session()
        keys = {
            session.key(Question(blind(item), ask)) for ask in self.judging.wanted(blind(item), [])
        }
        return keys == self._store.known(keys) | self._store.failed(keys)

    async def _ask_shadow(self, session: Session, items: Sequence[Item]) -> None:
        """Ask the drawn items again in every presentation the method was fitted on."""
        if self.judging.file is not None:
            self._judged_fitted_on.update(dict.fromkeys(self.judging.file.overlap(items)))
        drawn = [blind(item) for item in items if self._shadow.wants(item)]
        if not drawn:
            return
        questions = self._shadow.questions(drawn)
        await self._ask(session, questions)
        self._shadow.add(drawn, session.read(questions))

    def drift_report(self) -> list[str]:
        """`Judge.drift_report`."""
        overlap = []
        if self._judged_fitted_on:
            overlap.append(
                f"{len(self._judged_fitted_on)} judged items (such as "
                f"{next(iter(self._judged_fitted_on))}) were used to fit the method; figures on "
                "them flatter it."
            )
        return overlap + self._shadow.report()


class _Onward:
    """Shows the progress of one round of calls as part of all rounds."""

    def __init__(self, shown: ShowsProgress, before: RunCounts) -> None:
        self._shown = shown
        self._before = before

    def update(self, counts: RunCounts) -> None:
        self._shown.update(self._before.plus(counts))

    def close(self) -> None:
        """Other rounds may follow."""


def _failures_of(
    missing: Mapping[str, int],
    questions: Sequence[Question],
    session: Session,
    counts: RunCounts,
) -> Iterator[tuple[str, JudgeFailure]]:
    """The failures of items with missing answers, each with the reason that was recorded.

    Args:
        missing: How many answers an item lacks, by its id.
        questions: What was asked.
        session: Who was asked.
        counts: What came of it.
    """
    if not missing:
        return
    said = {failure.key: failure.failure.message for failure in session.store.failures()}
    reasons: dict[str, str] = {}
    for question in questions:
        if question.item.id in missing and (key := session.key(question)) in said:
            reasons[question.item.id] = said[key].removeprefix(f"{question.item.id}: ")
    fatal = counts.fatal
    if counts.budget_spent:
        fatal = f"the budget of ${session.settings.budget_usd:g} does not reach for the next call."
    for item_id, count in missing.items():
        reason = reasons.get(item_id) or fatal or "it was not answered."
        yield item_id, JudgeFailure(item_id, count, reason, fatal is not None)
