"""How a judge's questions get their answers: remembered, under way already, or by a call.

One path for as long as the judge lives, whether one question is asked or many: nothing is set up for
a question but its request. An audit asks by `Session.ask` instead, which takes any number of questions
and can be stopped between them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from unswayed.backends import Backend
from unswayed.backends.protocol import Outcome, unanswered
from unswayed.calls import Query, Request, Response
from unswayed.decisions import Decision
from unswayed.flights import Flight, Flights
from unswayed.runner import CallPlan, Question, RunCounts, RunSettings, ShowsProgress
from unswayed.runner.calling import GRACE_S
from unswayed.runner.drafts import Draft
from unswayed.runner.planning import check_budget, most_usd, plan_calls, with_cost
from unswayed.runner.progress import keep_showing
from unswayed.runner.questions import Drafter, settle_logprobs
from unswayed.runner.reading import with_costs_of
from unswayed.runner.writer import Answered, BatchWriter, Failed, OnCommit, Remembering
from unswayed.store import CallStore, Pool, readable

POLL_S: Final = 0.01
"""Between two looks at a budget that is reserved by others."""


class Asked(NamedTuple):
    """What became of questions.

    Attributes:
        decisions: One per question; None where it has no answer.
        reasons: Why not, where a call failed; else None.
        fatal: Why no further call can be made; None if all is well.
    """

    decisions: Sequence[Decision | None]
    reasons: Sequence[str | None]
    fatal: str | None


class Answers:
    """Answers questions from what was recorded, and by calls, each distinct one once.

    Args:
        backend: Who is asked.
        pool: Recorded calls, used and filled.
        settings: Prompts, sampling and budget.
        progress: Shown while calls are made.

    Attributes:
        counts: What was asked so far.
        flights: Calls under way.
        is_closed: Whether nothing more may be sent.
        drafter: Puts questions into words.
    """

    def __init__(
        self,
        backend: Backend,
        pool: Pool,
        settings: RunSettings,
        progress: ShowsProgress | None,
    ) -> None:
        self.backend = backend
        self.pool = pool
        self.settings = settings
        self.counts = RunCounts()
        self.flights = Flights(pool.totals().cost_usd, settings.budget_usd)
        self.drafter = self._drafter()
        self._progress = progress
        self._carrying: set[asyncio.Task[None]] = set()
        self._is_settled = False
        self.is_closed = False

    def _drafter(self) -> Drafter:
        """One that remembers nothing: an id may come again with another item."""
        return Drafter.of(self.backend, self.pool, self.settings, remembers=False)

    async def ask(self, questions: Sequence[Question]) -> Asked:
        """Answer questions; what is answered is recorded before it is returned.

        If cancelled, it sends no further call; calls under way are still recorded.

        Raises:
            UsageError: If there is a budget and no price is known.
            TemplateError: If a question cannot be rendered.
            StoreError: If answers cannot be recorded.
            RunDirectoryError: If the directory of recorded calls was moved or deleted.
        """
        if not self._is_settled:
            check_budget(self.settings, self.backend)
            settle_logprobs(self.pool, self.drafter)
            self._is_settled = True
        asking = _Asking(self, [self.drafter.draft(question) for question in questions])
        if asking.is_done:
            return asking.result()
        progress, shown = self._progress, None
        if progress is not None:
            shown = asyncio.create_task(keep_showing(progress, self.backend, lambda: self.counts))
        carrying = asyncio.create_task(asking.carry_out())
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)
        try:
            await asyncio.shield(carrying)
        except asyncio.CancelledError:
            asking.abandon()
            raise
        finally:
            if shown is not None and progress is not None:
                shown.cancel()
                self.counts.waiting = None
                progress.update(self.counts)
        return asking.result()

    async def close(self) -> None:
        """Stop sending; give calls under way in this event loop a few seconds to be recorded."""
        self.is_closed = True
        loop = asyncio.get_running_loop()
        here = [task for task in tuple(self._carrying) if task.get_loop() is loop]
        if here:
            await asyncio.wait(here, timeout=GRACE_S)

    def price(self, questions: Iterable[Question]) -> CallPlan:
        """Count and price the distinct calls, making none."""
        return plan_calls(questions, self.backend, self.pool, self._drafter())

    def was_asked(self, questions: Iterable[Question]) -> bool:
        """Whether every question is recorded, answered or failed."""
        keys = {self.drafter.key(question) for question in questions}
        return keys == self.pool.known(keys) | self.pool.failed(keys)

    def writer(self, on_commit: OnCommit) -> BatchWriter | Remembering:
        """What records the outcomes of one `ask`."""
        if isinstance(self.pool, CallStore):
            return BatchWriter(self.pool, on_commit)
        return Remembering(self.pool, on_commit)


class _Asking:
    """One `ask`: what is still to be sent, and what has come."""

    def __init__(self, answers: Answers, drafts: Sequence[Draft]) -> None:
        self.fatal: str | None = None
        self._answers = answers
        self._drafts = drafts
        self._outcomes: dict[bytes, Outcome | None] = {}  # None: to come
        self._decisions: dict[bytes, Decision] = {}  # of the first question with that key
        self._seconds: dict[bytes, Draft] = {}
        self._ready: deque[Draft] = deque()
        self._awaited: deque[tuple[Draft, Flight]] = deque()
        self._sent: dict[Request, Flight] = {}
        self._unrecorded: dict[bytes, tuple[Flight, Outcome]] = {}
        self._n_landed = self._n_seen = answers.flights.n_landed
        self._is_abandoned = False
        self._meet(drafts)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be sent or waited for."""
        return not (self._ready or self._awaited)

    def result(self) -> Asked:
        """What became of the questions."""
        decisions = [self._decision(draft) for draft in self._drafts]
        reasons = [self._reason(draft) for draft in self._drafts]
        return Asked(decisions, reasons, self.fatal)

    async def carry_out(self) -> None:
        """Send what is to be sent, and wait for what others have sent."""
        writer = self._answers.writer(self._recorded)
        try:
            while not self.is_done:
                if self._ready:
                    await self._send(writer)
                else:
                    await self._wait()
        finally:
            flights = self._answers.flights
            for flight in self._sent.values():
                flights.pay(flight, flight.most)  # given up here, it may be answered and charged
                flights.land(flight, None)
            try:
                await writer.close()
            finally:
                for flight, _ in self._unrecorded.values():
                    flights.land(flight, None)
        writer.check()

    # --- what is asked -----------------------------------------------------------------------

    def _meet(self, drafts: Iterable[Draft]) -> None:
        """Look up distinct calls that were not met yet; those that are missing are to be sent."""
        counts, pool = self._answers.counts, self._answers.pool
        new = {draft.key: draft for draft in drafts if draft.key not in self._outcomes}
        self._outcomes.update(dict.fromkeys(new))
        counts.planned += len(new)
        for key, response in tuple(pool.responses(new)):
            counts.cached += 1
            self._answered(new.pop(key), response)
        for draft in new.values():
            self._await_or_send(draft)

    def abandon(self) -> None:
        """Stop sending, since nobody waits; calls under way are still recorded."""
        self._is_abandoned = True
        self._ready.clear()
        self._awaited.clear()

    def _await_or_send(self, draft: Draft) -> None:
        if not self._is_abandoned and not self._is_awaited(draft):
            self._ready.append(draft)

    def _is_awaited(self, draft: Draft) -> bool:
        """Return True, and wait for its answer, if somebody else has sent the call."""
        flight = self._answers.flights.of(draft.key)
        if flight is None:
            return False
        self._awaited.append((draft, flight))
        return True

    def _next(self) -> Draft | None:
        """The next draft that nobody has sent or had answered since it was met, left in its place."""
        while self._ready:
            draft = self._ready[0]
            self._n_seen = self._answers.flights.n_landed
            if not self._is_awaited(draft) and not self._was_answered(draft):
                return draft
            self._ready.popleft()
        return None

    def _was_answered(self, draft: Draft) -> bool:
        answers = self._answers
        if answers.flights.n_landed == self._n_landed:  # nobody else had anything answered
            return False
        for _, response in answers.pool.responses([draft.key]):
            answers.counts.cached += 1
            self._answered(draft, response)
            return True
        return False

    def _answered(self, draft: Draft, response: Response) -> bool:
        """Take an answer. Return True if it is unread and a second call follows."""
        decision = self._decisions[draft.key] = draft.read(response)
        self._outcomes[draft.key] = response
        drafter = self._answers.drafter
        second = drafter.second(draft, response, decision)
        if second is None:
            return False
        is_recorded = bool(self._answers.pool.known([second.key]))
        if drafter.leaves_out(second):
            self._answers.counts.left_out += is_recorded
            return False
        if drafter.cannot_ask(second) and not is_recorded:
            return False
        self._seconds[draft.key] = second
        self._meet([second])
        return True

    # --- sending and waiting -----------------------------------------------------------------

    async def _send(self, writer: BatchWriter | Remembering) -> None:
        answers, draft = self._answers, self._next()
        if draft is None:
            return
        if answers.is_closed:
            self._stop("the judge was closed while it was asked.")
            return
        if not answers.flights.affordable(self._most(draft)):
            if answers.flights.is_busy:  # what is reserved may not be used
                await asyncio.sleep(POLL_S)
                writer.check()
            else:
                answers.counts.budget_spent = True
                budget = answers.settings.budget_usd
                self._stop(f"the budget of ${budget:g} does not reach for the next call.")
            return
        if len(self._ready) == 1:
            query = self._take_off()
            if query is None:  # another thread was quicker
                return
            self._land(query, await answers.backend.call(query), writer)
            await writer.room()
        else:
            async with aclosing(answers.backend.answer(self._pull())) as outcomes:
                async for query, outcome in outcomes:
                    self._land(query, outcome, writer)
                    await writer.room()
        for flight in tuple(self._sent.values()):
            query = flight.draft.query
            self._land(query, unanswered(query, answers.backend.model), writer)

    async def _wait(self) -> None:
        draft, flight = self._awaited.popleft()
        outcome = await flight.landed()
        if isinstance(outcome, Response):
            self._answers.counts.cached += 1
            self._answered(draft, outcome)
        elif outcome is None:
            self._await_or_send(draft)
        else:
            self._outcomes[draft.key] = outcome
            if outcome.fatal:
                self._stop(outcome.message)

    def _pull(self) -> Iterator[Query]:
        while not self._answers.is_closed and self._next() and (query := self._take_off()):
            yield query

    def _take_off(self) -> Query | None:
        """Send the next draft. Return None if it exceeds the budget or another thread has sent it."""
        draft = self._ready[0]
        flight = self._answers.flights.start(draft, self._most(draft), self._n_seen)
        if flight is None:
            return None
        self._ready.popleft()
        self._sent[draft.request] = flight
        return draft.query

    def _land(self, query: Query, outcome: Outcome, writer: BatchWriter | Remembering) -> None:
        flight = self._sent.pop(query.request, None)
        if flight is None:
            return  # answered twice: the first answer stays
        draft, answers = flight.draft, self._answers
        cost: float | None = 0.0
        if isinstance(outcome, Response):
            outcome = readable(with_cost(outcome, draft.request, answers.backend))
            cost = outcome.cost_usd
        # without a stated cost the worst is assumed
        answers.flights.pay(flight, flight.most if cost is None else cost)
        self._unrecorded[draft.key] = flight, outcome
        if isinstance(outcome, Response):
            retried = self._answered(draft, outcome)
            decision = self._decisions[draft.key]
            writer.add(draft.answered(outcome, decision, retried=retried))
        else:
            self._outcomes[draft.key] = outcome
            writer.add(Failed(draft.key, draft.request, outcome))
            if outcome.fatal:
                self._stop(outcome.message)

    def _recorded(self, answered: Sequence[Answered], failed: Sequence[Failed]) -> None:
        """Count what was recorded, and hand it to those who wait for it."""
        self._answers.counts.add(answered, failed)
        for key in [row.key for row in answered] + [row.key for row in failed]:
            flight = self._unrecorded.pop(key, None)
            if flight is not None:
                self._n_landed += 1
                self._answers.flights.land(*flight)

    def _stop(self, reason: str) -> None:
        """Send nothing more."""
        self.fatal = self.fatal or reason
        self._ready.clear()
        if not self._answers.counts.budget_spent:
            self._answers.counts.fatal = self._answers.counts.fatal or reason

    def _most(self, draft: Draft) -> float:
        return most_usd(draft.request, self._answers.settings, self._answers.backend)

    # --- what came ---------------------------------------------------------------------------

    def _decision(self, draft: Draft) -> Decision | None:
        """Return the decision on a question, from the second call if the first answer was unread."""
        response = self._outcomes[draft.key]
        if not isinstance(response, Response):
            return None
        decision = self._decisions[draft.key]
        if (decision.item_id, decision.ask) != (draft.question.item.id, draft.question.ask):
            decision = draft.read(response)
        second = self._seconds.get(draft.key)
        if second is None:
            return decision
        later = self._outcomes[second.key]
        if not isinstance(later, Response):
            return None  # what it would have said may come yet
        return with_costs_of(second._replace(question=draft.question).read(later), decision)

    def _reason(self, draft: Draft) -> str | None:
        outcome = self._outcomes[self._seconds.get(draft.key, draft).key]
        if outcome is None or isinstance(outcome, Response):
            return None
        return outcome.message.removeprefix(f"{draft.question.item.id}: ")
