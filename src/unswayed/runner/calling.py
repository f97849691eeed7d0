"""Makes the calls that are missing and records them, until done, stopped or out of budget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Final, NamedTuple

from unswayed.backends.protocol import Backend, unanswered
from unswayed.calls import Failure, Query, Request, Response
from unswayed.runner.counts import RunCounts
from unswayed.runner.drafts import Draft
from unswayed.runner.keys import Question
from unswayed.runner.missing import MissingCalls
from unswayed.runner.planning import CallPlan, check_budget, most_usd, with_cost
from unswayed.runner.progress import ShowsProgress, keep_showing
from unswayed.runner.questions import Drafter, RunSettings, settle_logprobs
from unswayed.runner.writer import BatchWriter, Failed
from unswayed.store import CallStore

GRACE_S: Final = 3.0
"""How long calls in flight may take to finish after the run was asked to stop."""
MOST_LOOKS: Final = 8
"""Chunks of recorded calls skipped in one go while calls are in flight (about 40 ms)."""


async def make_calls(
    questions: Iterable[Question],
    backend: Backend,
    store: CallStore,
    drafter: Drafter,
    *,
    priced: CallPlan | None = None,
    progress: ShowsProgress | None = None,
    stop: asyncio.Event | None = None,
) -> RunCounts:
    """Ask every question whose answer is not recorded; see `Session.ask`."""
    settings = drafter.settings
    check_budget(settings, backend)
    settle_logprobs(store, drafter)
    missing = MissingCalls(questions, drafter, store)
    if priced is not None and not priced.n_to_make:
        missing.skip(priced.n_distinct, priced.n_left_out)
    run = _Run(missing, backend, store, settings, stop or asyncio.Event())
    return await run.carry_out(progress)


class _Flight(NamedTuple):
    """A call in flight and the most it can cost in USD."""

    draft: Draft
    reserved: float


class _Run:
    """The state of one `make_calls`. Everything but the commits happens in the event loop."""

    def __init__(
        self,
        missing: MissingCalls,
        backend: Backend,
        store: CallStore,
        settings: RunSettings,
        stop: asyncio.Event,
    ) -> None:
        self.counts = RunCounts()
        self._missing = missing
        self._backend = backend
        self._settings = settings
        self._stop = stop
        self._error: Exception | None = None
        self._in_flight: dict[Request, _Flight] = {}
        self._spent = store.totals().cost_usd
        self._reserved = 0.0
        self._writer = BatchWriter(store, self.counts.add)

    async def carry_out(self, progress: ShowsProgress | None) -> RunCounts:
        """Run to the end, however it comes."""
        calling = asyncio.create_task(self._call_all())
        stopping = asyncio.create_task(self._stop.wait())
        ending = {calling, asyncio.create_task(self._writer.broken.wait())}
        ticking = None
        if progress is not None:
            ticking = asyncio.create_task(keep_showing(progress, self._backend, self._met))
            ending.add(ticking)  # it never ends, but it may raise
        try:
            await asyncio.wait({*ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set() and not (calling.done() or self._backend.hands_over):
                await asyncio.wait(ending, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ending, stopping):
                task.cancel()
            await asyncio.wait(ending)
            await self._writer.close()
            self._met().waiting = None
            if progress is not None and ticking is not None and ticking.cancelled():
                progress.update(self.counts)
                progress.close()
        self._writer.check()
        for task in ending:
            if not task.cancelled():
                task.result()
        unfinished = self._missing or self._in_flight or not self._missing.exhausted
        self.counts.interrupted = self._stop.is_set() and bool(unfinished)
        return self.counts

    def _met(self) -> RunCounts:
        """Return the counts, including the questions looked at so far."""
        self.counts.planned = self._missing.n_distinct
        self.counts.cached = self._missing.n_cached
        self.counts.left_out = self._missing.n_left_out
        return self.counts

    # --- sending -----------------------------------------------------------------------------

    async def _call_all(self) -> None:
        # Several rounds: what holds a round up (the budget reserved by calls in flight, a long
        # stretch of recorded calls) may be gone when its calls are done.
        while await self._find_next():
            async with aclosing(self._backend.answer(self._pull())) as answers:
                async for query, result in answers:
                    self._take(query, result)
                    if not self._backend.hands_over:  # a stop would lose the rest of a batch
                        await self._writer.room()
            self._give_up_unanswered()
            if self._error is not None:
                raise self._error

    async def _find_next(self) -> bool:
        """Whether there is a call to make and money for it, nothing being in flight."""
        while not self._missing and not self._missing.exhausted and self._goes_on():
            self._missing.look()
            await asyncio.sleep(0)  # a long stretch of recorded calls must not block the loop
        if not self._missing or not self._goes_on():
            return False
        self._reserved = 0.0
        if not self._affordable(self._most(self._missing.peek().request)):
            self.counts.budget_spent = True
            return False
        return True

    def _pull(self) -> Iterator[Query]:
        """The queries of one round, drafted as the backend asks for them."""
        while self._goes_on():
            try:
                for _ in range(MOST_LOOKS):
                    if self._missing or self._missing.exhausted:
                        break
                    self._missing.look()
            except Exception as error:  # raised when the calls in flight are done
                self._error = error
                return
            if not self._missing:
                return
            most = self._most(self._missing.peek().request)
            if not self._affordable(most):
                return
            draft = self._missing.pop()
            self._reserved += most
            self._in_flight[draft.request] = _Flight(draft, most)
            yield draft.query

    def _goes_on(self) -> bool:
        return not self._stop.is_set() and self.counts.fatal is None

    def _most(self, request: Request) -> float:
        return most_usd(request, self._settings, self._backend)

    def _affordable(self, most: float) -> bool:
        budget = self._settings.budget_usd
        return budget is None or self._spent + self._reserved + most <= budget

    # --- receiving ---------------------------------------------------------------------------

    def _take(self, query: Query, result: Response | Failure) -> None:
        flight = self._in_flight.pop(query.request, None)
        if flight is None:
            return  # answered twice: the first answer stays
        draft = flight.draft
        self._reserved -= flight.reserved
        if isinstance(result, Failure):
            if result.fatal and self.counts.fatal is None:
                self.counts.fatal = result.message
            self._writer.add(Failed(draft.key, draft.request, result))
            return
        result = with_cost(result, draft.request, self._backend)
        # without a stated cost the worst is assumed
        self._spent += flight.reserved if result.cost_usd is None else result.cost_usd
        decision = draft.read(result)
        retried = self._missing.follow(draft, result, decision)
        self._writer.add(draft.answered(result, decision, retried=retried))

    def _give_up_unanswered(self) -> None:
        """Record calls that a backend took and never answered, so that none is lost silently."""
        for draft, _ in self._in_flight.values():
            failure = unanswered(draft.query, self._backend.model)
            self._writer.add(Failed(draft.key, draft.request, failure))
        self._in_flight.clear()
