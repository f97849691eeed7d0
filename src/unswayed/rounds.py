"""Judging many items: what is asked in each round, what came of it, and a share asked again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unswayed.decisions import Decision, Verdict
from unswayed.items import Item, blind, by_criterion
from unswayed.judging import Case, JudgeFailure, Judging
from unswayed.presentation import Ask, askable
from unswayed.runner import Caller, CallPlan, Question
from unswayed.shadow import Shadow


class Rounds:
    """Judges items together: asks, round by round, what the method still wants, and decides.

    Args:
        judging: The method, checked against the model and the prompt.
        caller: Who answers its questions.
        shadow: What is asked again.

    Attributes:
        null_reasons: Verdicts so far that name no candidate and no tie, by their reason.
    """

    def __init__(self, judging: Judging, caller: Caller, shadow: Shadow) -> None:
        self.judging = judging
        self.caller = caller
        self.null_reasons: Counter[str] = Counter()
        self._shadow = shadow
        self._together = _Together(judging)
        self._judged_fitted_on: dict[str, None] = {}

    async def judge(self, items: Sequence[Item]) -> list[Verdict | JudgeFailure]:
        """The verdicts on items with different ids.

        Raises:
            UsageError: If the method cannot work on an item, before any call.
        """
        for item in items:
            self.judging.check(item)
        self._together.n_callers += 1
        try:
            return await self._judge(items)
        finally:
            self._together.n_callers -= 1

    async def _judge(self, items: Sequence[Item]) -> list[Verdict | JudgeFailure]:
        cases = [_Open(blind(item), [], set()) for item in items]
        failed: dict[str, JudgeFailure] = {}
        waiting = cases
        while waiting:
            questions: list[Question] = []
            owners: list[_Open] = []
            for case in waiting:
                wanted = self.judging.wanted(case.item, case.decisions)
                new = [ask for ask in wanted if ask not in case.asked]
                case.asked.update(new)
                questions.extend([Question(case.item, ask) for ask in new])
                owners.extend([case] * len(new))
            if not questions:
                break
            asked = await self.caller.decide(questions)
            reasons: dict[str, str] = {}
            for case, decision, reason in zip(owners, asked.decisions, asked.reasons, strict=True):
                if decision is not None:
                    case.decisions.append(decision)
                elif reason is not None:
                    reasons[case.item.id] = reason
            for case in waiting:
                if case.missing:
                    item_id = case.item.id
                    reason = reasons.get(item_id) or asked.fatal or "it was not answered."
                    fatal = asked.fatal is not None
                    failed[item_id] = JudgeFailure(item_id, case.missing, reason, fatal)
            waiting = [case for case in dict.fromkeys(owners) if not case.missing]
        if self._shadow.share or self.judging.file is not None:
            await self._ask_shadow([item for item in items if item.id not in failed])
        verdicts = await self._decide([case for case in cases if not case.missing])
        return [failed.get(item.id) or verdicts[item.id] for item in items]

    async def _decide(self, cases: Sequence[_Open]) -> dict[str, Verdict]:
        verdicts = await self._together.decide([Case(case.item, case.decisions) for case in cases])
        for case, verdict in zip(cases, verdicts, strict=True):
            reason = self.judging.null_reason(verdict, case.decisions)
            if reason is not None:
                self.null_reasons[reason] += 1
        return {verdict.item_id: verdict for verdict in verdicts}

    def price(self, items: Iterable[Item]) -> CallPlan:
        """`Judge.price`."""
        return self.caller.price(self._every(items))

    def _every(self, items: Iterable[Item]) -> Iterator[Question]:
        for item in map(blind, by_criterion(items)):
            self.judging.check(item)
            yield from (Question(item, ask) for ask in askable(item, self.judging.asks(item)))
            if self._shadow.draws(item):
                yield from self._shadow.questions([item])

    def budget_for(self, items: Iterable[Item]) -> float:
        """`Judge.budget_for`."""
        spent = max(self.caller.flights.spent, self.caller.settings.budget_usd or 0.0)
        plan = self.price(items)
        most = (plan.most_cost_usd or 0.0) + (plan.most_more_usd or 0.0)
        return max(spent + most, 2 * spent)

    def was_asked(self, item: Item) -> bool:
        """`Judge.was_asked`."""
        shown = blind(item)
        return self.caller.was_asked(Question(shown, ask) for ask in self.judging.wanted(shown, []))

    async def _ask_shadow(self, items: Sequence[Item]) -> None:
        """Ask the drawn items again in every presentation the method was fitted on."""
        if self.judging.file is not None:
            self._judged_fitted_on.update(dict.fromkeys(self.judging.file.overlap(items)))
        drawn = [blind(item) for item in items if self._shadow.wants(item)]
        if not drawn:
            return
        asked = await self.caller.decide(self._shadow.questions(drawn))
        self._shadow.add(drawn, [decision for decision in asked.decisions if decision is not None])

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


@dataclass(slots=True, eq=False)
class _Open:
    """An item that is being judged, blind: what was decided and what was asked about it so far."""

    item: Item
    decisions: list[Decision]
    asked: set[Ask]

    @property
    def missing(self) -> int:
        """How many answers it lacks."""
        return len(self.asked) - len(self.decisions)


class _Together:
    """Decides in one go what is ready in the same turn of the event loop: one table for all.

    Attributes:
        n_callers: How many judge items just now.
    """

    def __init__(self, judging: Judging) -> None:
        self.n_callers = 0
        self._judging = judging
        self._open: dict[asyncio.AbstractEventLoop, list[_Batch]] = {}

    async def decide(self, cases: Sequence[Case]) -> list[Verdict]:
        """The verdicts on items, as if each were decided alone."""
        loop = asyncio.get_running_loop()
        if self.n_callers == 1:  # nobody could join
            return self._judging.decide(cases)
        batch = _Batch(cases, loop.create_future())
        batches = self._open.get(loop)
        if batches is None:
            batches = self._open[loop] = []
            loop.call_soon(self._close, loop)
        batches.append(batch)
        return await batch.verdicts

    def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        batches = [batch for batch in self._open.pop(loop) if not batch.verdicts.done()]
        try:
            verdicts = iter(
                self._judging.decide([case for batch in batches for case in batch.cases])
            )
        except Exception as error:
            for batch in batches:
                self._alone(batch, error if len(batches) == 1 else None)
            return
        for batch in batches:
            batch.verdicts.set_result([next(verdicts) for _ in batch.cases])

    def _alone(self, batch: _Batch, error: Exception | None) -> None:
        """Decide one batch, so that no other is lost by it."""
        try:
            if error is not None:
                raise error
            batch.verdicts.set_result(self._judging.decide(batch.cases))
        except Exception as own:
            batch.verdicts.set_exception(own)


class _Batch(NamedTuple):
    """What one caller wants decided."""

    cases: Sequence[Case]
    verdicts: asyncio.Future[list[Verdict]]
