"""A model, its pool of recorded calls and how it is asked: price, ask, read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from unswayed.backends.protocol import Backend, Outcome
from unswayed.calls.counts import RunCounts
from unswayed.calls.errand import Errand
from unswayed.calls.flights import Flights
from unswayed.calls.keys import Question
from unswayed.calls.pricing import CallPlan, check_budget, plan_calls, with_cost
from unswayed.calls.progress import ShowsProgress, keep_showing
from unswayed.calls.questions import Drafter, RunSettings, settle_logprobs
from unswayed.calls.reading import read_decisions
from unswayed.calls.window import Kept, Window
from unswayed.calls.writer import Failed, writer_for
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.decisions import Decision
from unswayed.store import Pool

GRACE_S: Final = 3.0
"""How long calls in flight may take to finish after the run was asked to stop."""


OutcomeOf = Callable[[bytes, Query], Outcome | None]
"""Returns what came of a call, by its key, or None if nothing did."""


class Asked(NamedTuple):
    """Outcome of questions."""

    decisions: Sequence[Decision | None]  # one per question; None where it has no answer
    reasons: Sequence[str | None]  # why not, where a call failed
    fatal: str | None  # why no further call can be made


class Caller:
    """Gets answers to questions: recorded, under way, or by a call, each distinct one once.

    `ask` takes any number of questions and leaves their answers in the pool, for `read`; `decide` takes a
    few and returns their decisions. Both may be called by many at once, in event loops of several threads:
    they share the calls under way and one budget.

    A caller that remembers serves one set of items, in which an id means one item: it keeps the key of
    every question, and prompts between pricing and asking as long as they take no more than 64 MiB. One for a
    stream, in which an id may come again with another item, does not.

    `progress` is shown while `decide` makes calls; `drafter` is another caller's, with what it remembers.
    """

    def __init__(
        self,
        backend: Backend,
        pool: Pool,
        settings: RunSettings,
        *,
        remembers: bool = True,
        progress: ShowsProgress | None = None,
        drafter: Drafter | None = None,
    ) -> None:
        self.backend = backend
        self.pool = pool
        self.settings = settings
        self.counts = RunCounts()  # of all that `decide` asked
        self.flights = Flights(backend, pool, settings)
        self._drafter = drafter or Drafter.of(backend, pool, settings, remembers=remembers)
        self._progress = progress
        self._carrying: set[asyncio.Task[None]] = set()
        self._is_settled = False

    def over(self, pool: Pool) -> Caller:
        """Return the same caller over another connection to the same calls."""
        return Caller(self.backend, pool, self.settings, drafter=self._drafter)

    def price(self, questions: Iterable[Question]) -> CallPlan:
        """Count and price the distinct calls, making none and writing nothing."""
        return plan_calls(questions, self.backend, self.pool, self._drafter)

    def missing(self, questions: Iterable[Question]) -> Iterator[Query]:
        """Yield what would be asked: each distinct call that is not recorded, once."""
        window = Window(questions, self._drafter, self.pool, RunCounts())
        while not window.exhausted:
            window.look()
            while window.ready:
                yield window.ready.popleft().query

    async def ask(
        self,
        questions: Iterable[Question],
        *,
        priced: CallPlan | None = None,
        progress: ShowsProgress | None = None,
        stop: asyncio.Event | None = None,
    ) -> RunCounts:
        """Ask every question whose answer is not recorded.

        Questions are pulled as the backend takes calls, so there may be any number; where `priced` says that
        all are recorded, they are not looked at again. Answers are committed within 200 ms: a kill repeats at
        most the calls in flight and 100 uncommitted answers. Failed calls are counted and in the store's error
        table, never raised. After `stop` calls in flight get 3 s to finish; a local model finishes the batch
        under way.

        Raises:
            StoreError: If answers cannot be recorded (disk full); the run stops at once, and what can be
                written is.
            RunDirectoryError: If the run directory was moved or deleted while the run went on.
        """
        self._settle()
        stop = stop or asyncio.Event()
        counts = RunCounts()
        window = Window(questions, self._drafter, self.pool, counts)
        if priced is not None and not priced.n_to_make:
            window.skip(priced.n_distinct, priced.n_left_out)
        errand = Errand(self.flights, window, counts, stop)
        carrying = asyncio.create_task(errand.carry_out())
        stopping = asyncio.create_task(stop.wait())
        ending = {carrying, asyncio.create_task(errand.writer.broken.wait())}
        ticking = None
        if progress is not None:
            ticking = asyncio.create_task(keep_showing(progress, self.backend, counts))
            ending.add(ticking)  # it never ends, but it may raise
        try:
            await asyncio.wait({*ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set() and not (carrying.done() or self.backend.hands_over):
                await asyncio.wait(ending, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ending, stopping):
                task.cancel()
            await asyncio.wait(ending)
            await errand.close()
            counts.waiting = None
            if progress is not None and ticking is not None and ticking.cancelled():
                progress.update(counts)
                progress.close()
        errand.writer.check()
        for task in ending:
            if not task.cancelled():
                task.result()
        counts.interrupted = stop.is_set() and errand.is_unfinished
        return counts

    async def take(
        self, questions: Iterable[Question], outcome_of: OutcomeOf, stop: asyncio.Event
    ) -> RunCounts:
        """Record the outcomes of calls that were made elsewhere; calls without one stay missing.

        Raises:
            StoreError, RunDirectoryError: As for `ask`.
        """
        self._settle()
        counts = RunCounts()
        window = Window(questions, self._drafter, self.pool, counts)
        writer = writer_for(self.pool, counts.add)
        try:
            while not (window.exhausted or stop.is_set()):
                window.look()
                while window.ready:
                    draft = window.ready.popleft()
                    outcome = outcome_of(draft.key, draft.query)
                    if isinstance(outcome, Response):
                        outcome = with_cost(outcome, draft.request, self.backend)
                        decision, is_followed = window.answered(draft, outcome)
                        writer.add(draft.answered(outcome, decision, retried=is_followed))
                    elif isinstance(outcome, Failure):
                        failed = Failed(draft.key, draft.request, outcome)
                        if self.pool.failed([draft.key]):  # kept by an earlier run
                            counts.add([failed])
                        else:
                            writer.add(failed)
                    await writer.room()
                await asyncio.sleep(0)  # for Ctrl-C
        finally:
            await writer.close()
        writer.check()
        counts.interrupted = not window.exhausted
        return counts

    async def decide(self, questions: Sequence[Question]) -> Asked:
        """Answer a few questions; calls under way are recorded even if this is cancelled."""
        self._settle()
        window = Kept(questions, self._drafter, self.pool, self.counts)
        while not window.exhausted:
            window.look()
        fatal = await self._carry(window) if window.ready else None
        return Asked(window.decisions(), window.reasons(), fatal)

    async def _carry(self, window: Window) -> str | None:
        errand = Errand(self.flights, window, self.counts)
        progress, shown = self._progress, None
        if progress is not None:
            shown = asyncio.create_task(keep_showing(progress, self.backend, self.counts))
        carrying = asyncio.create_task(errand.complete())
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carried)
        try:
            await asyncio.shield(carrying)
        except asyncio.CancelledError:
            errand.is_abandoned = True
            raise
        finally:
            if shown is not None and progress is not None:
                shown.cancel()
                self.counts.waiting = None
                progress.update(self.counts)
        if self.flights.is_closed and errand.is_unfinished:
            return errand.fatal or "the judge was closed while it was asked."
        return errand.fatal

    def _carried(self, carrying: asyncio.Task[None]) -> None:
        self._carrying.discard(carrying)
        if not carrying.cancelled():
            carrying.exception()  # who asked may be gone

    async def close(self) -> None:
        """Stop sending; give calls under way in this event loop a few seconds to be recorded."""
        self.flights.is_closed = True
        loop = asyncio.get_running_loop()
        here = [task for task in tuple(self._carrying) if task.get_loop() is loop]
        if here:
            await asyncio.wait(here, timeout=GRACE_S)

    def read(self, questions: Iterable[Question]) -> Iterator[Decision]:
        """Read the recorded answers as decisions, in the order of the questions; what is missing is left out."""
        return read_decisions(questions, self.pool, self._drafter)

    def calls(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Request, Response]]:
        """Yield what was sent and what counts as the answer, unread; what is missing is left out."""
        for question in questions:
            ((key, _),) = self._drafter.addresses((question,))
            second = self._drafter.second_key(key)
            call = (second and self.pool.get(second)) or self.pool.get(key)
            if call is not None:
                yield question, *call

    def was_asked(self, questions: Iterable[Question]) -> bool:
        """Return True if every question is recorded, answered or failed."""
        keys = {key for key, _ in self._drafter.addresses(list(questions))}
        return keys == self.pool.recorded(keys).keys() | self.pool.failed(keys)

    def _settle(self) -> None:
        if not self._is_settled:
            check_budget(self.settings, self.backend)
            settle_logprobs(self.pool, self._drafter)
            self._is_settled = True
