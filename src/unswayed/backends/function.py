"""Judges that are Python functions, sync or async: `us.FunctionJudge` and what wraps a callable."""

from __future__ import annotations

import asyncio
import inspect
import math
import operator
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any

from unswayed.backends.own_prompts import OwnPrompt
from unswayed.backends.protocol import Answer, Backend, Outcome, failed, overlapping, ranked
from unswayed.base.arguments import checked
from unswayed.base.errors import UsageError
from unswayed.model.calls import Query, Response
from unswayed.model.items import Task

MOST_OFF = 0.01
"""Distance of a sum of probabilities from 1 that still counts as rounding."""
LEAST = 1e-300
"""Probability in place of 0, whose logarithm is finite."""


class FunctionJudge(Backend):
    """A judge that is a function of `(prompt, answers)`, or of `(prompt, first, second)` for pairs.

    The function gets texts alone: the prompt, and the answers in the order in which they are displayed. It
    returns the place of the better answer, counted from 0, or the label printed there; `"tie"`; None where
    it names no winner (an unparsed answer); or, with `probabilities`, one probability per place. An
    exception is a failed call, which is not repeated in this run. Anything else is a mistake in the
    function: it raises `UsageError` and ends the run.

    Args:
        function: Function, coroutine function or object with `__call__`. Plain functions run in threads.
        name: Its name and version, such as "judge-v3". Needed where calls are kept in a folder, because
            the code of the function is no part of a call's key.
        probabilities: Whether it returns probabilities by place.
        at_once: Most calls at the same time.

    Raises:
        UsageError: If it needs other arguments.
    """

    offline = True
    reads_prompt = False
    writes = False
    own_prompt = OwnPrompt(only_template=True)

    @checked
    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        probabilities: bool = False,
        at_once: int = 8,
    ) -> None:
        if at_once < 1:
            raise UsageError(f"at_once {at_once}: give a number of calls, at least 1.")
        own = getattr(function, "__name__", type(function).__name__)
        self.model = f"function/{name or own.strip('<>')}"
        self.is_named = name is not None
        self.gives_logprobs = probabilities
        self._function, self._at_once = function, at_once
        self._takes_pair = _takes_pair(function)
        calls = getattr(function, "__call__", None)  # noqa: B004  an object's may be async
        self._is_async = any(map(inspect.iscoroutinefunction, (function, calls)))

    def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query once; see `Backend.answer`."""
        return overlapping(queries, self._outcome, at_once=self._at_once)

    async def _outcome(self, query: Query) -> Outcome:
        item, shown, instead = query.item, query.ask.presentation, query.ask.substitute
        if item.task not in (Task.PAIRWISE, Task.MCQ):
            raise UsageError(
                f"{item.id}: a function judges only pairwise and mcq items, not {item.task.value}. Leave it out."
            )
        if self._takes_pair and item.n != 2:
            raise UsageError(
                f"{item.id}: {self.model} takes two answers, and the item has {item.n} candidates. "
                "Write it as a function of (prompt, answers)."
            )
        texts = item.candidates if instead is None else instead.candidates
        prompt = item.prompt if instead is None or instead.prompt is None else instead.prompt
        answers = [texts[candidate] for candidate in shown.order]
        ask = partial(self._function, prompt, *(answers if self._takes_pair else [answers]))
        try:
            said = ask() if self._is_async else await _in_thread(ask)
            if inspect.isawaitable(said):
                said = await said
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            told = f"{type(error).__name__}: {_written(str, error)}".removesuffix(": ")
            return failed(query, f"{self.model} raised {told}")
        return self._read(said, query, shown.symbols(query.request.labels))

    def _read(self, said: Any, query: Query, symbols: Sequence[str]) -> Response:
        if said is None:
            return Response(text="", cost_usd=0.0)
        if isinstance(said, str):
            by_word = {symbol.casefold(): symbol for symbol in ("tie", *symbols)}
            label = by_word.get(said.strip().casefold())
        elif (shares := _shares(said, len(symbols))) is not None:
            return self._with_probabilities(shares, query, symbols)
        else:
            label = _at_place(said, symbols)
        if label is None:
            more = f", or {len(symbols)} probabilities that add up to 1"
            raise UsageError(
                f"{query.item.id}: {self.model} returned {_written(repr, said):.60}. It may return a position from "
                f"0 to "
                f"{len(symbols) - 1}, one of {', '.join(symbols)}, 'tie', or None"
                f"{more if self.gives_logprobs else ''}."
            )
        return Response(text=label, cost_usd=0.0)

    def _with_probabilities(
        self, shares: Sequence[float], query: Query, symbols: Sequence[str]
    ) -> Response:
        if not self.gives_logprobs:
            raise UsageError(
                f"{query.item.id}: {self.model} returned probabilities. Declare them with "
                "us.FunctionJudge(…, probabilities=True)."
            )
        total, best = sum(shares), max(shares)
        text = symbols[shares.index(best)] if shares.count(best) == 1 else "tie"
        if not query.request.top_logprobs:
            return Response(text=text, cost_usd=0.0)
        tops = ranked(symbols, [math.log(max(share / total, LEAST)) for share in shares])
        return Response(text=text, tokens=(text,), top_logprobs=(tops,), exact=True, cost_usd=0.0)


async def _in_thread(ask: Callable[[], Any]) -> Any:
    """Return what a blocking function returns; its thread does not keep an interrupted process alive."""
    done: Future[tuple[Any, BaseException | None]] = Future()
    done.set_running_or_notify_cancel()  # who is cancelled leaves the thread alone

    def call() -> None:
        try:
            done.set_result((ask(), None))
        except BaseException as error:  # a future takes no StopIteration
            done.set_result((None, error))

    threading.Thread(target=copy_context().run, args=(call,), daemon=True).start()
    said, error = await asyncio.wrap_future(done)
    if error is not None:
        raise error
    return said


def _written(write: Callable[[Any], str], value: Any) -> str:
    """Return the text of a value, or its type where writing it fails."""
    try:
        return write(value)
    except Exception:  # a number of 5,000 digits, a class of the user's
        return f"a value of type {type(value).__name__}"


def _takes_pair(function: Callable[..., Any]) -> bool:
    """Return True for f(prompt, first, second) and False for f(prompt, answers), by the arguments it needs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none
        return False
    needed = [p for p in parameters if p.default is p.empty and "VAR" not in p.kind.name]
    extra = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
    star = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if extra or not (len(needed) in (2, 3) or (star and len(needed) < 2)):
        names = ", ".join(p.name for p in needed) or "none"
        raise UsageError(
            f"a judge is a function of (prompt, answers) or (prompt, first, second); the required "
            f"arguments of this one are: {names}. Wrap it."
        )
    return len(needed) == 3


def _shares(said: Any, n: int) -> list[float] | None:
    """Return the probabilities by place, None unless `said` is n of them."""
    if not hasattr(said, "__len__") or isinstance(said, Mapping | bytes):
        return None
    try:
        shares = [float(share) for share in said]
    except Exception:  # whatever their conversion raises
        return None
    sound = len(shares) == n and all(math.isfinite(share) and share >= 0 for share in shares)
    return shares if sound and abs(sum(shares) - 1) <= MOST_OFF else None


def _at_place(said: Any, symbols: Sequence[str]) -> str | None:
    """Return the label at a place, None unless `said` is one."""
    if isinstance(said, bool):
        return None
    try:
        place = operator.index(said)
    except TypeError:
        return None
    return symbols[place] if 0 <= place < len(symbols) else None
