"""One item at a time: the façade for production, the same answers as an audit's batch."""

from __future__ import annotations

import functools
import inspect
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
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, Unpack

from unswayed.backends import Backend, BackendSettings, backend_of
from unswayed.base.arguments import checked, takes
from unswayed.base.errors import BackendError, UsageError
from unswayed.base.sync import LoopThread
from unswayed.calls import Caller, CallPlan, Question, RunCounts, RunSettings, ShowsProgress
from unswayed.calls.calibration import prompts_for
from unswayed.calls.judging import Judged, JudgeFailure, Judging, windows
from unswayed.calls.rounds import Rounds
from unswayed.calls.shadow import Shadow
from unswayed.methods import JUDGING, Method
from unswayed.methods.fitted_file import FittedFile
from unswayed.model import faces
from unswayed.model.decisions import Choice, Verdict
from unswayed.model.items import Item, Text, as_item, blind, by_criterion
from unswayed.model.presentation import askable
from unswayed.prompts import AskOptions
from unswayed.store import CallStore, Memory, Pool

if TYPE_CHECKING:
    from unswayed.keywords import JudgeKeywords

T = TypeVar("T")
P = ParamSpec("P")

Given = Iterable[Item] | Iterable[Mapping[str, object]]

MOST_IN_MEMORY: Final = 64 << 20
"""Bytes of answers kept without a store: about 85 000 calls with 20 logprobs each."""


def _asking(
    name: str, make: Callable[P, Item]
) -> tuple[
    Callable[Concatenate[Judge, P], Verdict],
    Callable[Concatenate[Judge, P], Coroutine[Any, Any, Verdict]],
]:
    """Make the two methods that judge the item of these arguments, in plain and in async code."""

    def now(self: Judge, /, *args: P.args, **named: P.kwargs) -> Verdict:
        return self._run(partial(self.ajudge, make(*args, **named)))

    def later(self: Judge, /, *args: P.args, **named: P.kwargs) -> Coroutine[Any, Any, Verdict]:
        return self.ajudge(make(*args, **named))

    own = inspect.signature(make)
    judge = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for method, title in ((now, name), (later, f"a{name}")):
        functools.update_wrapper(method, make)
        method.__name__, method.__qualname__ = title, f"Judge.{title}"
        method.__annotations__ = {**make.__annotations__, "return": Verdict}
        vars(method)["__signature__"] = own.replace(
            parameters=[judge, *own.parameters.values()], return_annotation="Verdict"
        )
    later.__doc__ = f"`{name}` in async code."
    return checked(now), checked(later)


class Judge:
    """Judges items with one method, fitted or not.

    Calls are made as the method plans them (a sequential method stops early), answered from the
    store where they are recorded, and read exactly as an audit reads them.

    Args:
        model: `provider/model`, an open backend, or a function as `FunctionJudge` takes it.
        method: Name with parameters, a method, or a fitted file from `load_method`. Such a file
            must have been made with the same prompt.
        shots: Items with gold to show as examples.
        budget: Most USD that all calls recorded in `calls` may cost together.
        calls: Directory of recorded calls to use and fill (that of an audit, too), or an open
            pool; None keeps them in memory, at most 64 MiB of them: those not used for longest are
            forgotten, and paid again if they are asked again.
        backend: How else to reach the model; the options are laid over it.
        progress: Shown while calls are made.
        shadow: Share of the questions, drawn by a hash, whose items are asked again in every
            presentation the method was fitted on, for `drift_report`.

    Raises:
        MethodError: If a fitted file belongs to another model, prompt or label set.
        UsageError: If the method cannot work with this model, or there is nothing to shadow.
    """

    @checked
    @takes(AskOptions, over=BackendSettings)
    def __init__(
        self,
        model: str | Backend | Callable[..., Any],
        *,
        method: str | Method | FittedFile = JUDGING,
        shots: Sequence[Item] = (),
        budget: float | None = None,
        calls: str | Path | CallStore | None = None,
        backend: BackendSettings | None = None,
        progress: ShowsProgress | None = None,
        shadow: float = 0.0,
        **options: Unpack[JudgeKeywords],
    ) -> None:
        reach, asked = BackendSettings.of(options, backend), AskOptions.of(options)
        self._backend = backend_of(model, reach, keeps_calls=isinstance(calls, str | Path))
        self.prompts = prompts_for(self._backend, asked.prompts(shots))
        judging = Judging.by(method, self._backend, self.prompts)
        self._judging = judging
        self.shadow = Shadow(judging.method, shadow, judging.file)
        if calls is None or str(calls) == ":memory:":
            pool: Pool = Memory(MOST_IN_MEMORY, keeps_requests=False)
        else:
            pool = calls if isinstance(calls, CallStore) else CallStore.open(calls)
        settings = RunSettings(prompts=self.prompts, budget_usd=budget, reask=asked.reask)
        self._caller = Caller(self._backend, pool, settings, remembers=False, progress=progress)
        self._rounds = Rounds(judging, self._caller, self.shadow)
        self._loop: LoopThread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    def _check_usable(self) -> None:
        if self._closed:
            raise UsageError("this judge is closed. Create another one.")
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
        return self._judging.method

    @property
    def model(self) -> str:
        """Full name of the model, with revision."""
        return self._backend.model

    @property
    def counts(self) -> RunCounts:
        """Counts of the calls so far."""
        return replace(self._caller.counts)

    @property
    def null_reasons(self) -> Counter[str]:
        """Verdicts so far that name no candidate and no tie, by their reason."""
        return self._rounds.null_reasons

    compare, acompare = _asking("compare", faces.pair)
    answer, aanswer = _asking("answer", faces.choice)
    rank, arank = _asking("rank", faces.listing)
    score, ascore = _asking("score", faces.rating)

    def __call__(self, prompt: Text, answers: Sequence[str]) -> Choice:
        """Return the choice of `compare` for two answers, of `answer` for more, as a function for `audit`.

        The judge sees texts alone, no `group` or `reference`.
        """
        if len(answers) == 2:
            return self.compare(prompt, *answers).choice
        return self.answer(prompt, answers).choice

    async def ajudge(self, item: Item | Mapping[str, object]) -> Verdict:
        """Judge one item, or one criterion of it; items may be mappings with their fields.

        Raises:
            BackendError: If a call failed.
            UsageError: If the item has several criteria, each with a verdict of its own.
        """
        self._check_usable()
        item = as_item(item)
        if item.criteria and item.criterion is None:
            raise UsageError(
                f"{item.id}: has {len(item.criteria)} criteria, each with a verdict of its own. Use "
                "verdicts([item])."
            )
        (judged,) = await self._rounds.judge([item])
        if judged.verdict is None:
            raise BackendError(str(judged.failure))
        return judged.verdict

    def verdicts(self, items: Given) -> Iterator[Verdict | JudgeFailure]:
        """Judge many items, verdicts in the items' order; criteria of an item one by one."""

        async def collect(window: Sequence[Item]) -> list[Verdict | JudgeFailure]:
            return [judged.outcome async for judged in self.ajudged(window)]

        for window in windows(items):
            yield from self._run(partial(collect, window))

    async def averdicts(self, items: Given) -> AsyncIterator[Verdict | JudgeFailure]:
        """`verdicts` in async code."""
        async for judged in self.ajudged(items):
            yield judged.outcome

    async def ajudged(self, items: Given) -> AsyncIterator[Judged]:
        """Judge many items as `averdicts` does, and give the decisions behind each verdict."""
        for window in windows(items):
            self._check_usable()
            for judged in await self._rounds.judge(window):
                yield judged

    def price(self, items: Given) -> CallPlan:
        """Price the calls that judging items can make at most; none is made.

        Methods that stop early make fewer.

        Raises:
            UsageError: If the method cannot work on an item.
        """
        return self._caller.price(self._every(items))

    def _every(self, items: Given) -> Iterator[Question]:
        for item in map(blind, by_criterion(map(as_item, items, count(1)))):
            self._judging.check(item)
            asks = self._judging.method_for(item).asks(item.n)
            yield from (Question(item, ask) for ask in askable(item, asks))
            if self.shadow.draws(item):
                yield from self.shadow.questions([item])

    def budget_for(self, items: Given) -> float:
        """Return a budget that reaches for the rest of the items, and for one more call than now."""
        spent = max(self._caller.flights.spent, self._caller.settings.budget_usd or 0.0)
        plan = self.price(items)
        most = (plan.most_cost_usd or 0.0) + (plan.most_more_usd or 0.0)
        return max(spent + most, 2 * spent)

    def was_asked(self, item: Item) -> bool:
        """Return True if every call that judging an item begins with is recorded, answered or failed."""
        shown = blind(item)
        return self._caller.was_asked(
            Question(shown, ask) for ask in self._judging.method_for(shown).plan(shown, [])
        )

    def drift_report(self) -> list[str]:
        """Say what the judged items tell about the fitted file; empty without one and without a shadow.

        All the numbers of the file are one test at 5%.
        """
        return self.shadow.report()

    async def aclose(self) -> None:
        """Release connections, memory and the store. A closed judge makes no more calls.

        Calls under way in this event loop get three seconds to be recorded.
        """
        self._closed = True
        await self._caller.close()
        await self._backend.close()
        self._caller.pool.close()

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

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
