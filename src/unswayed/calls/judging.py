"""Judge one item: the deciding method, its questions, and its verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final

from unswayed.backends import Backend
from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.calls.calibration import evidence_of
from unswayed.methods import AUDITED, BASE, METHODS, Method
from unswayed.methods.fitted_file import FittedFile
from unswayed.methods.names import parse_method, spec_name
from unswayed.methods.protocol import is_fitted, learned_fields, learned_sizes, why_not
from unswayed.model.decisions import Decision, DecisionTable, Evidence, Verdict
from unswayed.model.items import Item, Task, as_item, by_criterion
from unswayed.model.parsing import ending
from unswayed.model.presentation import Ask
from unswayed.model.tasks import task_of
from unswayed.prompts import PromptSettings, label_set_of, prompt_fingerprint

OWN: Final = frozenset({Evidence.SCORES, Evidence.LEVELS})
"""What only decisions of some tasks hold."""

SINGLE: Final = parse_method(BASE)
"""The single call, whose verdict items get that must keep their order."""


@dataclass(frozen=True, slots=True)
class JudgeFailure:
    """An item without a verdict because calls failed; never a default verdict."""

    item_id: str
    missing: int  # how many of its calls failed
    reason: str  # why one of them failed
    # whether no other call can be answered either (a wrong key, a server that is down, the budget
    # is spent)
    fatal: bool = False

    def __str__(self) -> str:
        lost = "missing" if self.fatal else "failed"
        return f"{self.item_id}: no verdict, {plural(self.missing, 'call')} {lost}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged item: its verdict, or the failure in its place, and the calls behind it."""

    outcome: Verdict | JudgeFailure
    decisions: tuple[Decision, ...]  # the answered calls, read; a failure may have some, too

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if calls failed."""
        return self.outcome if isinstance(self.outcome, Verdict) else None

    @property
    def failure(self) -> JudgeFailure | None:
        """The failure; None if there is a verdict."""
        return self.outcome if isinstance(self.outcome, JudgeFailure) else None


@dataclass(slots=True, eq=False)
class Case:
    """An item that is judged, blind: what was decided and what was asked about it so far."""

    item: Item
    decisions: list[Decision]
    asked: set[Ask] = field(default_factory=set)

    @property
    def missing(self) -> int:
        """Number of answers that the case lacks."""
        return len(self.asked) - len(self.decisions)


def _kind(item: Item, decisions: Sequence[Decision]) -> tuple[object, ...]:
    """Return a key shared by cases that can be judged in one table."""
    evidence = [
        (
            decision.ask,
            decision.label_set,
            decision.probs is None,
            decision.label_mass is None,
            decision.scores is None,
            decision.ranking is None,
            tuple(decision.flags or ()),
        )
        for decision in decisions
    ]
    return item.task, item.n, item.permutable, item.values is None, *evidence


@dataclass(frozen=True, eq=False)
class Judging:
    """A method that judges items one by one, checked against the model and the prompt."""

    method: Method
    file: FittedFile | None  # that the method was fitted from
    backend: Backend
    prompts: PromptSettings
    _checked: set[tuple[Task, int]] = field(default_factory=set)

    @classmethod
    def by(
        cls, method: str | Method | FittedFile, backend: Backend, prompts: PromptSettings
    ) -> Judging:
        """Check the method that decides."""
        fingerprint = prompt_fingerprint(prompts)  # an unknown prompt is found now
        file = method if isinstance(method, FittedFile) else None
        if isinstance(method, FittedFile):
            method.check(model=backend.model)
            # labels before the prompt, whose fingerprint differs as well
            size = len(method.label_set)
            method.check(label_set=(prompts.label_set or label_set_of(size, prompts))[:size])
            method.check(prompt_fingerprint=fingerprint)
            chosen = method.load()
        elif isinstance(method, str) and method.endswith(".json"):
            raise UsageError(f"{method} is a file. Give us.load_method({method!r}) as the method.")
        else:
            chosen = parse_method(method) if isinstance(method, str) else method
        if not is_fitted(chosen):
            name = spec_name(chosen)
            raise UsageError(
                f"{name} has not been fitted. Fit it with `unswayed calibrate {name} ...` or us.calibrate, "
                "and give the file as the method."
            )
        if Evidence.PROBS in chosen.reads and not chosen.or_reads and not backend.gives_logprobs:
            raise _no_logprobs(chosen, backend.model)
        return cls(chosen, file, backend, prompts)

    def check(self, item: Item) -> None:
        """Refuse what the method, the file or the prompt is not for, before any call."""
        kind = (item.task, item.n)
        if kind in self._checked:
            return
        reason = why_not(self.method, task=item.task, n=item.n)
        if reason is None:
            reason = self.backend.refusal(item, self.method.asks(item.n), self.prompts)
        sizes = learned_sizes(self.method)
        if reason is None and sizes and item.n not in sizes:
            reason = (
                f"it was fitted for {' and '.join(map(str, sizes))} candidates, and this item has "
                f"{item.n}. Calibrate it on such items, or use a method without a fit"
            )
        if reason is None and self.file is not None:
            self.file.check(label_set=label_set_of(item.n, self.prompts))
        if reason is None and Evidence.PROBS in self.method.reads:
            gives = evidence_of(item, self.prompts, logprobs=True)
            reason = why_not(self.method, task=item.task, gives=gives)
            without = gives - {Evidence.PROBS}
            lacking = why_not(self.method, task=item.task, gives=without) is not None
            if reason is None and lacking and not self.backend.gives_logprobs:
                raise _no_logprobs(self.method, self.backend.model, item)
        if reason is not None:
            without = task_of(item.task).gives - {Evidence.PROBS}
            read = any(reading <= without for reading in self.method.readings())
            remedy = "" if read else f" Use {' or '.join(_remedies(item))}."
            raise UsageError(
                f"{item.id}: {spec_name(self.method)} cannot judge it: {reason}.{remedy}"
            )
        self._checked.add(kind)

    def method_for(self, item: Item) -> Method:
        """Return the method that decides: as in audits the single call where an item must keep its order."""
        return self.method if item.permutable or self.method.keeps_order(item.n) else SINGLE

    def decide(self, cases: Sequence[Case]) -> list[Verdict]:
        """Return the verdicts on items, each by its own decisions alone."""
        if len(cases) == 1:
            return self._decide_alike(cases)
        # one table costs hardly more than one of the cases whose decisions answer the same questions with the
        # same evidence
        alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        kinds: Counter[tuple[object, ...]] = Counter()
        for place, case in enumerate(cases):
            kind = (case.item.id, *_kind(case.item, case.decisions))
            kinds[kind] += 1  # one table has an id once
            alike[(kinds[kind], *kind[1:])].append(place)
        verdicts: dict[int, Verdict] = {}
        for places in alike.values():
            together = self._decide_alike([cases[place] for place in places])
            verdicts.update(zip(places, together, strict=True))
        return [verdicts[place] for place in range(len(cases))]

    def _decide_alike(self, cases: Sequence[Case]) -> list[Verdict]:
        first = cases[0].item
        method = self.method_for(first)
        items, asks = [case.item for case in cases], method.asks(first.n)
        decisions = chain.from_iterable(case.decisions for case in cases)
        if all(ask.is_settled for ask in asks):  # the columns mean the same for every item
            table = DecisionTable.of(items, decisions, asks=asks)
        else:
            table = DecisionTable.of(items, decisions).select(asks)
        decided = method.decide_table(table)
        return [
            decided.verdict(row, item_id=case.item.id, method=self.method.name)
            for row, case in enumerate(cases)
        ]

    def null_reason(self, verdict: Verdict, decisions: Sequence[Decision]) -> str | None:
        """Why a verdict names no candidate and no tie."""
        if verdict.choice is not None:
            return None
        if verdict.abstained:
            return "abstained"
        lacks = Evidence.PROBS in self.method.reads and any(
            decision.probs is None and decision.choice is not None for decision in decisions
        )
        if lacks:
            return "without label probabilities"
        ends = {d.finish_reason or "" for d in decisions if d.choice is None}
        words = sorted(repr(word) for word in ends if not ending(word).is_read)
        return f"with finish reason {', '.join(words)}" if words else "with unparsed answers"


def _no_logprobs(method: Method, model: str, item: Item | None = None) -> UsageError:
    return UsageError(
        f"{method.name} needs label probabilities, which {model} does not give. "
        f"Use {' or '.join(_remedies(item))}."
    )


def _remedies(item: Item | None) -> list[str]:
    """Methods that judge without a fit and without probabilities: those that read what only decisions of the
    item's task hold, or else what an audit compares with a single call.
    """
    gives = frozenset[Evidence]() if item is None else task_of(item.task).gives & OWN
    own = [
        name
        for name in METHODS
        for method in [METHODS.load(name)]
        if not learned_fields(method)
        and any(reading & gives and Evidence.PROBS not in reading for reading in method.readings())
    ]
    audited = [name for name in AUDITED if Evidence.PROBS not in METHODS.load(name).reads]
    return own or [name for name in audited if name != BASE]


def windows(
    items: Iterable[Item] | Iterable[Mapping[str, object]], size: int = 64
) -> Iterator[list[Item]]:
    """Items in lists of about `size` with distinct ids (a stream may repeat them).

    Criteria are taken apart; those of an item, which are asked by the same calls, are in one list.
    """
    window: dict[str, Item] = {}
    last = ""
    for item in by_criterion(map(as_item, items, count(1))):
        if item.id in window or (len(window) >= size and item.asked_as != last):
            yield list(window.values())
            window = {}
        window[item.id] = item
        last = item.asked_as
    if window:
        yield list(window.values())
