"""Judge many items: what is asked in each round, what came of it, and a share asked again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace as replace_fields

from unswayed.calls import Caller, Question
from unswayed.calls.judging import Case, Judged, JudgeFailure, Judging
from unswayed.calls.shadow import Shadow
from unswayed.model.decisions import Verdict
from unswayed.model.items import Item, blind


class Rounds:
    """Judges items together: asks, round by round, what the method still wants, and decides."""

    def __init__(self, judging: Judging, caller: Caller, shadow: Shadow) -> None:
        self.null_reasons: Counter[str] = Counter()  # of verdicts that name no candidate and no tie
        self._judging = judging
        self._caller = caller
        self._shadow = shadow
        self._together = _Together(judging)

    async def judge(self, items: Sequence[Item]) -> list[Judged]:
        """Judge items with different ids, in their order."""
        for item in items:
            self._judging.check(item)
        self._together.n_callers += 1
        try:
            return await self._judge([Case(blind(item), []) for item in items])
        finally:
            self._together.n_callers -= 1

    async def _judge(self, cases: Sequence[Case]) -> list[Judged]:
        failed: dict[str, JudgeFailure] = {}
        waiting = cases
        while waiting:
            questions: list[Question] = []
            owners: list[Case] = []
            for case in waiting:
                wanted = self._judging.method_for(case.item).plan(case.item, case.decisions)
                new = [ask for ask in wanted if ask not in case.asked]
                case.asked.update(new)
                questions.extend([Question(case.item, ask) for ask in new])
                owners.extend([case] * len(new))
            if not questions:
                break
            asked = await self._caller.decide(questions)
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
        whole = [case for case in cases if case.item.id not in failed]
        drawn = self._shadow.draw([case.item for case in whole])
        if drawn:
            questions = self._shadow.questions(drawn)
            first = {case.item.id: case.asked for case in whole}
            more = [
                question for question in questions if question.ask not in first[question.item.id]
            ]
            recorded = {
                item_id
                for item_id, own in groupby(more, key=lambda question: question.item.id)
                if self._caller.was_asked(own)
            }
            again = await self._caller.decide(questions)
            answers = [answer for answer in again.decisions if answer is not None]
            self._shadow.add(drawn, answers, recorded)
        verdicts = dict(zip(whole, await self._together.decide(whole), strict=True))
        for case, verdict in verdicts.items():
            null_reason = self._judging.null_reason(verdict, case.decisions)
            if null_reason is not None:
                self.null_reasons[null_reason] += 1
                verdicts[case] = replace_fields(verdict, null_reason=null_reason)
        return [
            Judged(failed.get(case.item.id) or verdicts[case], tuple(case.decisions))
            for case in cases
        ]


class _Together:
    """Decides in one go what is ready in the same turn of the event loop: one table for all."""

    def __init__(self, judging: Judging) -> None:
        self.n_callers = 0  # that judge items just now
        self._judging = judging
        self._open: dict[asyncio.AbstractEventLoop, list[_Batch]] = {}

    async def decide(self, cases: Sequence[Case]) -> list[Verdict]:
        """Return the verdicts on items, as if each were decided alone."""
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
    """Items that one caller wants decided."""

    cases: Sequence[Case]
    verdicts: asyncio.Future[list[Verdict]]
