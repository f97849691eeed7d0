"""A judge with known biases: `simulated/judge?slot=0.6&label=0.4&content=1.2&noise=0.4`.

It reads the item and the question, not the prompt. Candidate c, shown at position p with label l,
gets the logit

    content * utility(c) + slot[p] + label[l] + noise / sqrt(2) * z

and the answer follows from the softmax. For two candidates that is a log-odds of
`content * (u_a - u_b)`, plus `slot` for the candidate shown first, plus `label` for label A, plus
noise of standard deviation `noise`. A level of a scale is worth the less, the farther it is from
the quality of the response: `utilities`. Nothing here is a claim about real models: it exists so that
tests and examples can recover what they planted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Literal, get_args
from urllib.parse import parse_qsl

import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.protocol import Backend, ranked
from unswayed.backends.utilities import UTILITY_SD, Draws, heights, level_utilities, utilities
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.calls import Query, Request, Response, TokenLogprob, key_of
from unswayed.model.items import Item, ItemSet, Task
from unswayed.model.parsing import LabelReply
from unswayed.model.tasks import task_of

HUMAN_SD: Final = 0.5
"""Steps of the scale by which a person errs."""
POINTS: Final = 10.0
"""Points of a score, of 0 to 100, for one logit; the middle is at logit 0."""
MIDDLE: Final = 50.0
REFUSAL: Final = "I would rather not choose between them."
Link = Literal["linear", "saturating"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJudge:
    """Planted preferences of a simulated judge; logits unless stated otherwise."""

    # One number: by how much the first position is favoured over the last, falling evenly in
    # between (two candidates: over the second). Several: the effect of each position.
    slot: tuple[float, ...] = (0.6,)
    label: tuple[float, ...] = (0.4,)  # the same for labels, A first
    content: float = 1.2  # weight of the candidates' utilities
    # standard deviation of the log-odds of any two candidates over presentations
    noise: float = 0.4
    # "saturating" stretches the favoured side threefold and shrinks the other to 0.7: the log-odds
    # of the first label for two candidates, each centred logit for more
    link: Link = "linear"
    unparsed: float = 0.0  # share of answers that state no verdict
    tie: float = 0.0  # share of answers that declare a tie
    logprobs: bool = True  # whether label logprobs come with the answer
    # where several criteria are asked at once: one number is by how much more, between the lowest
    # and the highest level, the first of them is favoured over the last, falling evenly in between;
    # several: the effect of each place
    criteria: tuple[float, ...] = ()
    seed: int = 0  # another seed draws other noise

    @property
    def name(self) -> str:
        """The full model name: every parameter, so that equal judges have equal names."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = [f"{name}={_written(value)}" for name, value in given.items() if value != ()]
        return f"simulated/judge?{'&'.join(parts)}"

    def logits(self, query: Query, draws: Draws, point: str = "", lift: float = 0.0) -> list[float]:
        """Logits by label, length n.

        `point` is what the verdict is about, where the reply gives several, and `lift` what its place in
        the prompt adds between the lowest and the highest level.
        """
        order, labels = query.ask.presentation
        n = len(order)
        slot, label = _effects(self.slot, n, "slot"), _effects(self.label, n, "label")
        worth = [0.0] * n if query.ask.substitute is not None else utilities(query.item, point)
        lifted = [lift * height for height in heights(query.item)] if lift else [0.0] * n
        scale = self.noise / math.sqrt(2)
        logits = [0.0] * n
        for position in range(n):
            logits[labels[position]] = (
                self.content * worth[order[position]]
                + slot[position]
                + label[labels[position]]
                + lifted[order[position]]
                + (scale * draws.normal() if scale else 0.0)
            )
        if self.link == "linear":
            return logits
        middle = logits[1] if n == 2 else sum(logits) / n
        gaps = [logit - middle for logit in logits]
        return [3.0 * gap if gap > 0 else 0.7 * gap for gap in gaps]


def open_simulated(model: str, settings: BackendSettings) -> SimulatedBackend:
    """Judge with planted bias: `simulated/judge?slot=0.6&label=0.4`."""
    name, _, query = model.partition("?")
    if name != "judge":
        raise UnknownNameError(f"unknown model 'simulated/{name}'. Write simulated/judge?slot=0.6.")
    given: dict[str, object] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _READERS:
            raise UnknownNameError(
                f"simulated/judge has no parameter {key!r}. {did_you_mean(key, _READERS)}"
            )
        try:
            given[key] = _READERS[key](value)
        except ValueError as error:
            raise UsageError(f"simulated/judge: {key}={value!r}: {error}.") from None
    return SimulatedBackend(SimulatedJudge(**given))  # type: ignore[arg-type]  # read above


class SimulatedBackend(Backend):
    """Answers as a `SimulatedJudge` does, which reads the item and not the prompt."""

    offline = True
    keyed_by_item = True
    planted = True

    def __init__(self, judge: SimulatedJudge) -> None:
        self.judge = judge
        self.model = judge.name
        self.gives_logprobs = judge.logprobs

    def respond(self, query: Query) -> Response:
        """Return the answer to one query: the same request always gets the same."""
        request, judge = query.request, self.judge
        draws = Draws(key_of(request), judge.seed)
        points = task_of(query.item.task).points
        if points is None:
            text, verdict, logits = self._said(query, draws)
        else:
            names = points.names(query.item, query.ask)
            lifts = _effects(judge.criteria or (0.0,), len(names), "criteria")
            said = {
                name: self._said(query, draws, name, lift)
                for name, lift in zip(names, lifts, strict=True)
            }
            text = points.joined({name: own[0] for name, own in said.items()})
            _, verdict, logits = said[names[0]]
        tops = None if verdict in (REFUSAL, "tie") else self._tops(request, logits)
        return Response(
            text=text,
            tokens=None if tops is None else (text,),
            top_logprobs=tops,
            exact=tops is not None,
            input_tokens=sum(len(message.content.split()) for message in request.messages),
            output_tokens=len(text.split()),
            cost_usd=0.0,
            model=self.model,
        )

    def _said(
        self, query: Query, draws: Draws, point: str = "", lift: float = 0.0
    ) -> tuple[str, str, list[float]]:
        """Return the reply, the verdict behind it, and its logits by label."""
        request, judge = query.request, self.judge
        logits = judge.logits(query, draws, point, lift)
        chosen = _drawn(logits, request.temperature, draws)
        fate = draws.uniform()
        if fate < judge.unparsed:
            verdict = REFUSAL
        elif fate < judge.unparsed + judge.tie:
            verdict = "tie"
        else:
            verdict = request.labels[chosen]
        reply = task_of(query.item.task).reply
        write = reply.written
        if isinstance(reply, LabelReply):
            write = partial(reply.written, schema=request.schema or None)
        text = write(
            request.labels,
            verdict,
            [min(max(MIDDLE + POINTS * logit, 0.0), 100.0) for logit in logits],
            answer_only=request.top_logprobs > 0 or request.max_tokens <= 16,
        )
        return text, verdict, logits

    def _tops(
        self, request: Request, logits: Sequence[float]
    ) -> tuple[tuple[TokenLogprob, ...], ...] | None:
        if not self.judge.logprobs or request.top_logprobs == 0:
            return None
        highest = max(logits)
        total = highest + math.log(sum(math.exp(logit - highest) for logit in logits))
        return (ranked(request.labels, [logit - total for logit in logits]),)


def simulated_items(
    n_items: int,
    n: int = 2,
    *,
    seed: int = 0,
    gold_balance: float | None = None,
    task: Task | None = None,
) -> ItemSet:
    """Items for recovery tests, their utilities in `meta.utility`.

    Utilities are N(0, 1.5 / sqrt(2)) each and gold is drawn from softmax(2 * utility). For two
    candidates that is u ~ N(0, 1.5) for the utility of one over the other, and gold ~
    Bernoulli(sigmoid(2u)). `gold_balance` is the share of items in which the right candidate is listed
    first, the rest spread evenly over the others; None for evenly over all.

    Responses of rubric items have a quality, uniform between the levels 1 and n, in `meta.quality`;
    gold is what a person says, quality + N(0, 0.5).
    """
    if task == Task.RUBRIC:
        if gold_balance is not None:
            raise UsageError("gold_balance: the gold of rubric items is a number. Leave it out.")
        return _scored_items(n_items, n, seed)
    rng = np.random.default_rng(seed)
    worth = rng.normal(0.0, UTILITY_SD / math.sqrt(2), (n_items, n))
    gold = (2.0 * worth + rng.gumbel(size=worth.shape)).argmax(axis=1)
    if gold_balance is not None:
        first = rng.random(n_items) < gold_balance
        wanted = np.where(first, 0, rng.integers(1, n, n_items))
        rows = np.arange(n_items)
        worth[rows, gold], worth[rows, wanted] = worth[rows, wanted], worth[rows, gold]
        gold = wanted
    items = (
        Item(
            id=f"simulated-{seed}-{number:05d}",
            task=task or (Task.PAIRWISE if n == 2 else Task.MCQ),
            prompt=f"Question {number}",
            candidates=tuple(f"answer {number}.{candidate}" for candidate in range(n)),
            gold=int(gold[number]),
            meta={"utility": worth[number].tolist()},
        )
        for number in range(n_items)
    )
    return ItemSet.of(items, name=f"simulated-{seed}")


def _scored_items(n_items: int, n: int, seed: int) -> ItemSet:
    """Responses of known quality and the levels 1 to n."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(1.0, n, n_items)
    human = quality + rng.normal(0.0, HUMAN_SD, n_items)
    values = tuple(float(level) for level in range(1, n + 1))
    items = (
        Item(
            id=f"simulated-{seed}-{number:05d}",
            task=Task.RUBRIC,
            prompt=f"Question {number}",
            response=f"answer {number}",
            candidates=tuple(f"of level {level}" for level in range(1, n + 1)),
            values=values,
            gold=round(float(human[number]), 2),
            meta={
                "utility": level_utilities(values, float(quality[number])),
                "quality": float(quality[number]),
            },
        )
        for number in range(n_items)
    )
    return ItemSet.of(items, name=f"simulated-{seed}")


def _effects(values: tuple[float, ...], n: int, name: str) -> tuple[float, ...]:
    if len(values) == n:
        return values
    if len(values) == 1:
        return tuple(values[0] * (0.5 - k / max(n - 1, 1)) for k in range(n))
    raise UsageError(
        f"simulated/judge: {name} has {len(values)} values, but an item has {n} "
        f"{'criteria' if name == 'criteria' else 'candidates'}. "
        f"Give one value, or {n}."
    )


def _drawn(logits: Sequence[float], temperature: float, draws: Draws) -> int:
    """Return the best label, or a draw from the softmax; equals are drawn, or the first would be favoured."""
    if temperature > 0:
        logits = [logit / temperature - math.log(-math.log(draws.uniform())) for logit in logits]
    highest = max(logits)
    best = [label for label, logit in enumerate(logits) if logit == highest]
    return best[0] if len(best) == 1 else best[int(draws.uniform() * len(best))]


def _number(text: str, lowest: float = -math.inf, highest: float = math.inf) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    if not lowest <= value <= highest:
        limits = "not be negative" if highest == math.inf else "lie between 0 and 1"
        raise ValueError(f"must {limits}")
    return value


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_number(part) for part in text.split(","))


def _one_of(values: Mapping[str, object], text: str) -> object:
    if text not in values:
        raise ValueError(f"must be {' or '.join(values)}")
    return values[text]


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "slot": _numbers,
    "label": _numbers,
    "content": _number,
    "noise": partial(_number, lowest=0.0),
    "link": partial(_one_of, {link: link for link in get_args(Link)}),
    "unparsed": partial(_number, lowest=0.0, highest=1.0),
    "tie": partial(_number, lowest=0.0, highest=1.0),
    "logprobs": partial(_one_of, {"0": False, "1": True}),
    "criteria": _numbers,
    "seed": int,
}


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_written(part) for part in value)
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
