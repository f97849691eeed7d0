"""One item at a time: the façade for production, the same answers as an audit's batch."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from unswayed.arguments import checked
from unswayed.backends import Backend, BackendSettings, backend_settings, open_backend
from unswayed.calibration import prompts_for
from unswayed.decisions import Verdict
from unswayed.errors import BackendError, UsageError
from unswayed.faces import choice, listing, pair, rating
from unswayed.items import Item, Text
from unswayed.judging import JudgeFailure, Judging, alone, windows
from unswayed.methods import JUDGING, Method
from unswayed.methods.files import FittedFile
from unswayed.prompts import PromptSettings, prompt_settings
from unswayed.rounds import Rounds
from unswayed.runner import Caller, CallPlan, RunCounts, RunSettings, ShowsProgress
from unswayed.shadow import Shadow
from unswayed.store import CallStore, Memory, Pool
from unswayed.sync import LoopThread

T = TypeVar("T")

MOST_IN_MEMORY: Final = 64 << 20
"""Bytes of answers kept without a store: about 85 000 calls with 20 logprobs each."""


class Judge:
    """Judges items with one method, fitted or not.

    Calls are made as the method plans them (a sequential method stops early), answered from the
    store where they are recorded, and read exactly as an audit reads them.

    Args:
        model: `provider/model`, or an open backend.
        method: Name with parameters, a method, or a fitted file from `load_method`.
        prompt: The name of a prompt, or whole settings; None for the model's own, or else direct. A
            fitted file must have been made with the same.
        template: Your own template file.
        labels: Label symbols, such as "X,Y".
        shots: Items with gold to show as examples.
        base_url: Address of an OpenAI-compatible server.
        max_connections: Most requests in flight.
        timeout: Most seconds for one attempt.
        max_retries: Attempts of one call after its first.
        patience: Seconds that a server is waited for while it answers nothing.
        prices: Price table of your own.
        budget: Most USD that all calls recorded in `calls` may cost together.
        reask: If True, ask once more for the label of a reply that could not be read.
        calls: Directory of recorded calls to use and fill (that of an audit, too), or an open
            pool; None keeps them in memory, at most 64 MiB of them: those not used for longest are
            forgotten, and paid again if they are asked again.
        backend: How else to reach the model; the options above are laid over it.
        progress: Shown while calls are made.
        shadow: Share of the questions, drawn by a hash, whose items are asked again in every
            presentation the method was fitted on, for `drift_report`.

    Raises:
        MethodError: If a fitted file belongs to another model, prompt or label set.
        UsageError: If the method cannot work with this model, or there is nothing to shadow.
    """

    @checked
    def __init__(
        self,
        model: str | Backend,
        *,
        method: str | Method | FittedFile = JUDGING,
        prompt: str | PromptSettings | None = None,
        template: str | Path | None = None,
        labels: str | Sequence[str] | None = None,
        shots: Sequence[Item] = (),
        base_url: str | None = None,
        max_connections: int | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        patience: float | None = None,
        prices: str | Path | None = None,
        budget: float | None = None,
        reask: bool = True,
        calls: str | Path | CallStore | None = None,
        backend: BackendSettings | None = None,
        progress: ShowsProgress | None = None,
        shadow: float = 0.0,
    ) -> None:
        reach = backend_settings(
            backend,
            base_url=base_url,
            max_connections=max_connections,
            timeout=timeout,
            max_retries=max_retries,
            patience=patience,
            prices=prices,
        )
        self._backend = open_backend(model, reach) if isinstance(model, str) else model
        self.prompts = prompts_for(self._backend, prompt_settings(prompt, template, labels, shots))
        judging = Judging.by(method, self._backend, self.prompts)
        drawn = Shadow(judging.method, shadow)
        pool = _pool(calls)
        settings = RunSettings(prompts=self.prompts, budget_usd=budget, reask=reask)
        caller = Caller(self._backend, pool, settings, remembers=False, progress=progress)
        self._rounds = Rounds(judging, caller, drawn)
        self._loop: LoopThread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    def _check_usable(self) -> None:
        if self._closed:
            raise UsageError("this judge was closed; make another one.")
        if self._process != os.getpid():
            raise UsageError(
                "this judge was made before a fork, which its thread and connections do not "
                "survive; make another one in the new process."
            )

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._starting:
            self._check_usable()
            loop = self._loop = self._loop or LoopThread()
        return loop.run(work())

    @property
    def method(self) -> Method:
        """The method that decides."""
        return self._rounds.judging.method

    @property
    def model(self) -> str:
        """Full name of the model, with revision."""
        return self._backend.model

    @property
    def counts(self) -> RunCounts:
        """What was asked so far."""
        return replace(self._rounds.caller.counts)

    @property
    def null_reasons(self) -> Counter[str]:
        """Verdicts so far that name no candidate and no tie, by their reason."""
        return self._rounds.null_reasons

    @checked
    def compare(
        self,
        prompt: Text,
        first: Text,
        second: Text,
        *,
        reference: str | None = None,
        group: str | None = None,
    ) -> Verdict:
        """Judge two answers to a prompt; `group` is for methods that learn by group.

        Raises:
            BackendError: If a call failed; there is no default verdict.
        """
        item = pair(prompt, first, second, reference=reference, group=group)
        return self._run(partial(self.ajudge, item))

    @checked
    async def acompare(
        self,
        prompt: Text,
        first: Text,
        second: Text,
        *,
        reference: str | None = None,
        group: str | None = None,
    ) -> Verdict:
        """`compare` in async code."""
        return await self.ajudge(pair(prompt, first, second, reference=reference, group=group))

    @checked
    def answer(self, prompt: Text, options: Sequence[str], *, group: str | None = None) -> Verdict:
        """Answer a multiple-choice question; `verdict.choice` indexes `options`.

        Raises:
            BackendError: If a call failed.
        """
        return self._run(partial(self.ajudge, choice(prompt, options, group=group)))

    @checked
    async def aanswer(
        self, prompt: Text, options: Sequence[str], *, group: str | None = None
    ) -> Verdict:
        """`answer` in async code."""
        return await self.ajudge(choice(prompt, options, group=group))

    @checked
    def rank(
        self,
        prompt: Text,
        candidates: Sequence[Text],
        *,
        reference: str | None = None,
        group: str | None = None,
    ) -> Verdict:
        """Rank several answers to a prompt: `verdict.ranking`, best first, by `verdict.scores`.

        Raises:
            BackendError: If a call failed.
            ItemError: If there are fewer than two candidates.
        """
        item = listing(prompt, candidates, reference=reference, group=group)
        return self._run(partial(self.ajudge, item))

    @checked
    async def arank(
        self,
        prompt: Text,
        candidates: Sequence[Text],
        *,
        reference: str | None = None,
        group: str | None = None,
    ) -> Verdict:
        """`rank` in async code."""
        return await self.ajudge(listing(prompt, candidates, reference=reference, group=group))

    @checked
    def score(
        self,
        prompt: Text,
        response: str,
        levels: Mapping[float, str],
        *,
        reference: str | None = None,
        group: str | None = None,
    ) -> Verdict:
        """Score a response to a prompt on a scale: `verdict.score`, with `verdict.sd`.

        Args:
            prompt: What the response answers.
            response: The text that is scored.
            levels: What each score means, in words, by its value: `{1: "poor", 2: "fair"}`;
                `dict(enumerate(texts, start=1))` of a list. `verdict.choice` and
                `verdict.scores` count the levels in the order given.
            reference: A reference answer.
            group: For methods that learn by group.

        Raises:
            BackendError: If a call failed.
            ItemError: If the levels are no scale.
        """
        item = rating(prompt, response, levels, reference=reference, group=group)
        return self._run(partial(self.ajudge, item))

    @checked
    async def ascore(
        self,
        prompt: Text,
        response: str,
        levels: Mapping[float, str],
        *,
        reference: str | None = None,
        group: str | None = None,
    ) -> Verdict:
        """`score` in async code."""
        return await self.ajudge(rating(prompt, response, levels, reference=reference, group=group))

    async def ajudge(self, item: Item) -> Verdict:
        """Judge one item, or one criterion of it.

        Raises:
            BackendError: If a call failed.
            UsageError: If the item has several criteria, each with a verdict of its own.
        """
        self._check_usable()
        (verdict,) = await self._rounds.judge([alone(item)])
        if isinstance(verdict, JudgeFailure):
            raise BackendError(str(verdict))
        return verdict

    def verdicts(self, items: Iterable[Item]) -> Iterator[Verdict | JudgeFailure]:
        """Judge many items, verdicts in the items' order; criteria of an item one by one."""

        async def collect(window: Sequence[Item]) -> list[Verdict | JudgeFailure]:
            return [verdict async for verdict in self.averdicts(window)]

        for window in windows(items):
            yield from self._run(partial(collect, window))

    async def averdicts(self, items: Iterable[Item]) -> AsyncIterator[Verdict | JudgeFailure]:
        """`verdicts` in async code."""
        for window in windows(items):
            self._check_usable()
            for verdict in await self._rounds.judge(window):
                yield verdict

    def price(self, items: Iterable[Item]) -> CallPlan:
        """The calls that judging items can make at most, and what they cost; none is made.

        Methods that stop early make fewer.

        Raises:
            UsageError: If the method cannot work on an item.
        """
        return self._rounds.price(items)

    def budget_for(self, items: Iterable[Item]) -> float:
        """A budget that reaches for the rest of the items, and for one more call than now."""
        return self._rounds.budget_for(items)

    def was_asked(self, item: Item) -> bool:
        """Whether every call that judging an item begins with is recorded, answered or failed."""
        return self._rounds.was_asked(item)

    def drift_report(self) -> list[str]:
        """What the judged items say about the fitted file, in sentences; empty without a shadow.

        All the numbers of the file are one test at 5 %.
        """
        return self._rounds.drift_report()

    async def aclose(self) -> None:
        """Release connections, memory and the store. A closed judge makes no more calls.

        Calls under way in this event loop get three seconds to be recorded.
        """
        self._closed = True
        await self._rounds.caller.close()
        await self._backend.close()
        self._rounds.caller.pool.close()

    def close(self) -> None:
        """`aclose` for synchronous code."""
        if self._process != os.getpid():
            return  # it is open in the process that forked
        if not self._closed:
            self._run(self.aclose)
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _pool(calls: str | Path | CallStore | None) -> Pool:
    if calls is None or str(calls) == ":memory:":
        return Memory(MOST_IN_MEMORY)
    return calls if isinstance(calls, CallStore) else CallStore.open(calls)
