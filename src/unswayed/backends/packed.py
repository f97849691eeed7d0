"""Several typed questions (`typed.py`) about one state in one request, in the words of an API (`typed_apis.py`), if the server answers them as it answers each alone.

Before the first such request, a few questions are asked alone, alone again and together. If the answers
together differ by more than the server's own noise, every question is asked alone. A response holds all
answers as they came; `read` reads one of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import accumulate, chain, islice
from typing import Any, Final

import msgspec

from unswayed.backends.client import HttpBackend
from unswayed.backends.dialect import Dialect, Traits, merged, token_count
from unswayed.backends.protocol import Answer, Backend, Outcome, failed
from unswayed.backends.typed_apis import Json, SystemOne, TypedQuestion
from unswayed.base.errors import BadResponseError, UsageError
from unswayed.model.calls import Failure, Query, Request, Response, TokenLogprob

TOLERANCE: Final = 0.02
"""Difference of probabilities that shows no mixing: servers round to two decimals."""
MOST_PROBED: Final = 4
"""Questions of the probe."""
MOST_LOOKS: Final = 8
"""States looked at for one with several questions; if none has, each question is asked alone."""
MALFORMED: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
SUMMED: Final = ("input_tokens", "cached_tokens", "output_tokens")
ROUNDED: Final = "probabilities with two decimals: differences below 0.01 are not seen"
MIXED: Final = (
    "the server answers questions of one request differently from the same questions alone (by up to "
    "{:.2f}), so each is asked alone"
)


def is_cut(usage: Json) -> bool:
    """Return True if the server cut the state; the answers then belong to a part of it."""
    return bool(usage.get("truncated") or usage.get("state_tokens_dropped"))


class TypedDialect(Dialect):
    """An API of decision models, for one model."""

    traits = Traits(temperature=False, seed=False)

    def __init__(self, api: SystemOne, model: str) -> None:
        self._api, self._model, self.path = api, model, api.path
        self.fields = ("model", api.state, "questions")

    def encode(self, request: Request, traits: Traits) -> bytes:
        """Return the body that asks every message of a request as a question."""
        asked = [json.loads(message.content) for message in request.messages]
        questions = {f"q{place}": self._question(own, place).raw for place, own in enumerate(asked)}
        state = self._api.text(asked[0]["state"])
        body = {"model": self._model, self._api.state: state}
        body["questions"] = self._api.collect(questions)
        return merged(json.dumps(body).encode(), request)

    def _question(self, asked: Any, place: int) -> TypedQuestion:
        return self._api.asked(f"q{place}", asked["kind"], asked["ask"], asked["options"])

    def decode(self, body: bytes) -> Response:
        """Return all answers of a 200 body as they are, as the text of one response."""
        try:
            said = json.loads(body)
            usage = said.get("usage") or {}
            details = usage.get("input_tokens_details") or {}
            read, written = map(
                token_count, (usage.get("input_tokens"), usage.get("output_tokens", 0))
            )
            return Response(
                text=json.dumps(None if is_cut(usage) else said["answers"]),
                input_tokens=read or 0,
                cached_tokens=token_count(details.get("cached_tokens")) or 0,
                output_tokens=written or 0,
                usage_known=read is not None and written is not None,
                model=None if said.get("model") is None else str(said["model"]),
            )
        except MALFORMED as error:
            raise BadResponseError(f"not an answer to typed questions: {error!r:.200}") from None

    def read(
        self, asked: Any, place: int, answers: Any, count: int
    ) -> tuple[tuple[TokenLogprob, ...], bool]:
        """Return the distribution of one of `count` answers; True with it if it is rounded to two decimals.

        Raises:
            BadResponseError: If it is not a distribution over the options that were asked.
        """
        question = self._question(asked, place)
        try:
            if answers is None:
                raise ValueError("the server cut the state")
            if isinstance(answers, list) and len(answers) != count:
                raise ValueError(f"{count} questions, {len(answers)} answers")
            answer = self._api.one(answers, f"q{place}", place)
            shares = self._api.probabilities(question, answer)
        except MALFORMED as error:
            raise BadResponseError(f"no answer to the question: {error!r:.200}") from None
        if shares is None:
            return (), False
        places = ((option.value, p) for option, p in zip(question.options, shares[0], strict=True))
        labels = ((v if isinstance(v, str) else asked["options"][v][0], p) for v, p in places)
        tops = (TokenLogprob(label, math.log(p)) for label, p in labels)
        return tuple(sorted(tops, key=lambda top: (-top.logprob, top.token))), shares[1]


class Packed(HttpBackend):
    """A model behind HTTP that takes several questions in one request."""

    writes = samples = False
    dialect: TypedDialect
    _was_probed = _is_proved = False

    call = Backend.call

    @property
    def probed(self) -> int:  # type: ignore[override]
        """Number of questions that the probe will ask twice more."""
        return 0 if self._was_probed or self.settings.pack == 1 else MOST_PROBED

    async def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query once, in any order, pulling at most one query more than it sends."""
        groups, looked = self._groups(iter(queries)), list[list[Query]]()
        for group in () if self._was_probed else islice(groups, MOST_LOOKS):
            looked.append(group[MOST_PROBED:] if len(group) > 1 else group)
            if len(group) > 1:
                for answer in await self._probe(group[:MOST_PROBED]):
                    yield answer
                break
        again: list[Query] = []
        async for group, outcome in self._send(self._cut(chain(looked, groups))):
            if isinstance(outcome, Failure) and not outcome.fatal and len(group) > 1:
                again += group  # one bad question spoils a request
                continue
            for answer in self._divided(group, outcome):
                yield answer
        async for group, outcome in self._send([query] for query in again):
            for answer in self._divided(group, outcome):
                yield answer

    def _groups(self, queries: Iterator[Query]) -> Iterator[list[Query]]:
        """Yield neighbours with equal states, at most as many as may share a request."""
        ahead: list[Query] = []
        while group := ahead or list(islice(queries, 1)):
            ahead, state = [], _asked(group[0])["state"]
            while len(group) < self.settings.pack and (query := next(queries, None)) is not None:
                if _asked(query)["state"] != state:
                    ahead = [query]
                    break
                group.append(query)
            yield group

    def _cut(self, groups: Iterable[list[Query]]) -> Iterator[list[Query]]:
        for group in groups:
            most = self.settings.pack if self._is_proved else 1
            yield from (group[start : start + most] for start in range(0, len(group), most))

    async def _send(
        self, groups: Iterable[list[Query]]
    ) -> AsyncGenerator[tuple[list[Query], Outcome], None]:
        """Send each group as one request, and yield it with the outcome."""
        sent: dict[int, list[Query]] = {}

        def requests() -> Iterator[Query]:
            for group in groups:
                asked = tuple(query.request.messages[-1] for query in group)
                whole = msgspec.structs.replace(group[0].request, messages=asked, top_logprobs=0)
                sent[id(whole)] = group
                yield group[0]._replace(request=whole)

        async with aclosing(super().answer(requests())) as outcomes:
            async for query, outcome in outcomes:
                yield sent.pop(id(query.request)), outcome

    def _divided(self, group: Sequence[Query], whole: Outcome) -> list[Answer]:
        """Return the outcome of each question of a request; tokens and cost are shared by length."""
        if isinstance(whole, Failure):
            reason = whole.message.removeprefix(f"{group[0].item.id}: ")
            told = ((query, f"{query.item.id}: {reason}") for query in group)
            return [(q, msgspec.structs.replace(whole, message=words)) for q, words in told]
        said = json.loads(whole.text)
        ends = [0, *accumulate(len(query.request.messages[-1].content) for query in group)]
        outcomes: list[Answer] = []
        for place, query in enumerate(group):
            start, end = ends[place] / ends[-1], ends[place + 1] / ends[-1]
            totals = ((name, getattr(whole, name)) for name in SUMMED)
            own: dict[str, Any] = {k: int(total * end) - int(total * start) for k, total in totals}
            if whole.cost_usd is not None:
                own["cost_usd"] = whole.cost_usd * (end - start)
            try:
                top, is_rounded = self.dialect.read(_asked(query), place, said, len(group))
            except BadResponseError as error:
                outcomes.append((query, failed(query, str(error), error="BadResponseError")))
                continue
            if is_rounded:
                self.remarks = tuple(dict.fromkeys((*self.remarks, ROUNDED)))
            own |= {"text": top[0].token, "tokens": (top[0].token,)} if top else {"text": ""}
            own |= {"top_logprobs": (top,), "exact": True} if top else {"finish_reason": "refusal"}
            outcomes.append((query, msgspec.structs.replace(whole, **own)))
        return outcomes

    async def _probe(self, group: list[Query]) -> list[Answer]:
        """Ask questions alone, alone again and together; return the first answers, with the tokens of all."""
        self._was_probed = True
        alone = [[query] for query in group]
        rounds: list[list[Answer]] = []
        for shape in (alone, alone, [group]):
            rounds.append([])
            async for part, outcome in self._send(shape):
                rounds[-1] += self._divided(part, outcome)
            if sum(isinstance(outcome, Response) for _, outcome in rounds[-1]) < len(group):
                break
        else:
            noise, difference = (_farthest(rounds[0], other) for other in rounds[1:])
            self._is_proved = not is_mixed(difference, noise)
            if not self._is_proved:
                self.remarks = (*self.remarks, MIXED.format(difference))
            pack = self.settings.pack if self._is_proved else 1
            self.packing = {"pack": pack, "difference": difference, "noise": noise}
        answers, later = rounds[0], [own for _, own in chain(*rounds[1:])]
        query, last = answers[-1]
        if isinstance(last, Response):
            paid = [last, *(own for own in later if isinstance(own, Response))]
            names = SUMMED if last.cost_usd is None else (*SUMMED, "cost_usd")
            sums = {name: sum(getattr(own, name) for own in paid) for name in names}
            answers[-1] = query, msgspec.structs.replace(last, **sums)
        return answers


def is_mixed(difference: float, noise: float) -> bool:
    """Return True if answers together differ by more than tolerance and twice the noise of the server."""
    return difference > max(TOLERANCE, 2 * noise)


def _asked(query: Query) -> Any:
    """Return the typed question of a query."""
    try:
        return {"state": None, **json.loads(query.request.messages[-1].content)}
    except (ValueError, TypeError, RecursionError):
        raise UsageError(
            f"{query.item.id}: {query.request.model} answers typed questions and reads no other prompt. Leave out "
            f"the prompt."
        ) from None


def _farthest(*rounds: list[Answer]) -> float:
    """Return the largest difference of a probability between two rounds of answers."""
    first, second = (
        {
            (query.request, top.token): math.exp(top.logprob)
            for query, outcome in answers
            if isinstance(outcome, Response)
            for top in chain(*(outcome.top_logprobs or ()))
        }
        for answers in rounds
    )
    keys = first.keys() | second.keys()
    return max((abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in keys), default=0.0)
