"""A model, its pool of recorded calls and how it is asked: price, ask, read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from unswayed.backends.protocol import Backend
from unswayed.calls import Query, Request, Response
from unswayed.decisions import Decision
from unswayed.runner.calling import make_calls
from unswayed.runner.counts import RunCounts
from unswayed.runner.keys import Question
from unswayed.runner.missing import MissingCalls
from unswayed.runner.planning import CallPlan, plan_calls
from unswayed.runner.progress import ShowsProgress
from unswayed.runner.questions import Drafter, RunSettings
from unswayed.runner.reading import read_decisions
from unswayed.store import CallStore


class Session:
    """Asks questions about one set of items and reads the answers; each is rendered once.

    It remembers under which key every question was asked, and keeps prompts between pricing and
    asking as long as they take no more than 64 MiB; what is beyond is rendered a second time.

    Args:
        backend: Who is asked.
        store: Where answers are recorded.
        settings: Prompts, sampling and budget.
        drafter: Of another session, with what it remembers.
    """

    def __init__(
        self,
        backend: Backend,
        store: CallStore,
        settings: RunSettings,
        *,
        drafter: Drafter | None = None,
    ) -> None:
        self.backend = backend
        self.store = store
        self.settings = settings
        self._drafter = drafter or Drafter.of(backend, store, settings)

    def price(self, questions: Iterable[Question]) -> CallPlan:
        """Count and price the distinct calls, making none and writing nothing.

        Raises:
            TemplateError: If a question cannot be rendered.
        """
        return plan_calls(questions, self.backend, self.store, self._drafter)

    def missing(self, questions: Iterable[Question]) -> Iterator[Query]:
        """What would be asked: each distinct call that is not recorded, once.

        Raises:
            TemplateError: If a question cannot be rendered.
        """
        missing = MissingCalls(questions, self._drafter, self.store)
        while not missing.exhausted:
            missing.look()
            while missing:
                yield missing.pop().query

    async def ask(
        self,
        questions: Iterable[Question],
        *,
        priced: CallPlan | None = None,
        progress: ShowsProgress | None = None,
        stop: asyncio.Event | None = None,
    ) -> RunCounts:
        """Ask every question whose answer is not recorded, each distinct call once.

        Questions are pulled as the backend takes calls, so there may be any number. Answers are
        committed within 200 ms; a kill repeats at most the calls in flight and 100 uncommitted
        answers. If everything is recorded the backend is never asked.

        Args:
            questions: What to ask.
            priced: What `price` said of these questions; where it found every answer recorded, they
                are not looked at again.
            progress: Shown while calls are made, and once at the end.
            stop: Set it to stop sending. Calls in flight get 3 s to finish; a local model finishes
                the batch under way.

        Returns:
            The counts; failed calls are counted and in the store's error table, never raised.

        Raises:
            UsageError: If there is a budget and no price is known.
            TemplateError: If a question cannot be rendered; what was answered before is kept.
            StoreError: If answers cannot be recorded (disk full); the run stops at once, and what
                can be written is.
            RunDirectoryError: If the run directory was moved or deleted while the run went on.
        """
        return await make_calls(
            questions,
            self.backend,
            self.store,
            self._drafter,
            priced=priced,
            progress=progress,
            stop=stop,
        )

    def read(self, questions: Iterable[Question]) -> Iterator[Decision]:
        """Read the recorded answers, in the order of the questions; see `read_decisions`."""
        return read_decisions(questions, self.store, self._drafter)

    def calls(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Request, Response]]:
        """What was sent and what counts as the answer, unread; what is missing is left out."""
        for question in questions:
            key = self.key(question)
            call = self.store.get(self._drafter.second_key(key) or key) or self.store.get(key)
            if call is not None:
                yield question, *call

    def key(self, question: Question) -> bytes:
        """The key under which a question is asked."""
        return self._drafter.key(question)

    def over(self, store: CallStore) -> Session:
        """The same session over another connection to the same calls."""
        return Session(self.backend, store, self.settings, drafter=self._drafter)
