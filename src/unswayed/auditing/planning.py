"""Plan an audit: methods, strata and questions from its settings."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.design import (
    Stratum,
    asks_under_views,
    check_group_by,
    estimation_questions,
    strata_of,
    stratum_asks,
    stratum_questions,
    too_costly,
    with_samples,
)
from unswayed.auditing.pool import DecisionSource, sampled, with_content
from unswayed.auditing.settings import AuditSettings, protocols_of, samples_per_call
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import MethodError, UsageError
from unswayed.calls import Question
from unswayed.methods import AUDITED, BASE, METHODS, Method
from unswayed.methods.names import default_methods, parse_method, spec_name
from unswayed.methods.protocol import why_not
from unswayed.model.decisions import MISSING, REASKED, UNPARSED, Decision, Evidence
from unswayed.model.items import BadLine, Item, ItemSet, Shard, Task, blind, text_of
from unswayed.model.items.referring_options import refer_to_each_other
from unswayed.model.presentation import Ask, content_order, settled, through
from unswayed.model.tasks import task_of

FEWEST_PROMPTS: Final = 20
"""Distinct prompts below which they are taken for instructions, not for questions."""

Refusal = Callable[[Item, Iterable[Ask]], str | None]
"""Why a model cannot be asked about an item; None if it can."""


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """Methods, strata and questions of an audit."""

    items: ItemSet  # with gold where it is known
    settings: AuditSettings
    orders: str  # name of the set of orders
    strata: tuple[Stratum, ...]  # items by number of candidates
    # by display name, in the order they were asked for, the base first
    methods: Mapping[str, Method]
    skipped: Mapping[str, str]  # methods that cannot run here, with the reason
    samples: int | None  # r of `sampled:R`, else None
    remarks: tuple[str, ...] = ()  # what the user should know about the prompts, in sentences
    shard: Shard | None = None  # the part of the items that is asked about; None for all

    def questions(self) -> Iterator[Question]:
        """Every question of the audit, each once."""
        only_fitting = {(question.item.id, question.ask): question for question in self.estimation}
        for stratum in self.strata:
            asks = stratum_asks(stratum, self.methods.values())
            if not only_fitting:
                yield from stratum_questions(stratum, asks)
                continue
            for question in stratum_questions(stratum, asks):
                only_fitting.pop((question.item.id, question.ask), None)
                yield question
        yield from only_fitting.values()

    def calls(self, questions: Iterable[Question] | None = None) -> Iterable[Question]:
        """Questions, or all, with the samples behind them: what the runner is given."""
        asked = self.questions() if questions is None else questions
        if (shard := self.shard) is not None:
            asked = (question for question in asked if shard.holds(question.item))
        if not (count := self.samples):
            return asked
        return (Question(q.item, ask) for q in asked for ask in with_samples([q.ask], count))

    def read(self, questions: Iterable[Question], source: DecisionSource) -> Iterator[Decision]:
        """Yield the decisions of questions, with the probabilities of their samples where asked for."""
        decisions = source(self.calls(questions))
        return decisions if self.samples is None else sampled(decisions, self.samples)

    def per_item(self) -> dict[str, int]:
        """Return the most calls that scoring one item takes, by method; fitting comes on top."""
        return {
            name: max(
                len(set(with_samples(asks_under_views(own, part), self.samples)))
                for part in self.strata
            )
            for name, own in self.methods.items()
        }

    @cached_property
    def estimation(self) -> tuple[Question, ...]:
        """Questions for fitting the methods."""
        methods = self.methods.values()
        parts = (estimation_questions(methods, part, self.settings) for part in self.strata)
        return tuple(itertools.chain.from_iterable(parts))

    @property
    def warnings(self) -> list[str]:
        """Warnings before any call: bad lines, options without effect, prompts."""
        bad_lines = self.items.bad_lines
        said = [left_out(bad_lines)] if bad_lines else []
        items = self.items.items
        said += filter(None, [self.items.counted[1], shared_prompts(items)])
        said += filter(None, [equal_candidates(items), referring_options(items)])
        fitted = any(method.fitted_from for method in self.methods.values())
        if self.settings.estimation_sizes and not fitted:
            said.append(
                "no estimation-set curve: none of the methods learns. Add one, such as pride."
            )
        return [*said, *self.remarks]


def plan_audit(
    items: ItemSet,
    settings: AuditSettings,
    *,
    gives: frozenset[Evidence],
    refusal: Refusal = lambda item, asks: None,
    held: Collection[str] = (),
) -> AuditPlan:
    """Choose methods and strata, given what single calls can tell.

    Methods that ask for what the model refuses do not run. `all` keeps those `held`, whatever they ask.

    Raises:
        UsageError: If the model refuses a single call, or a method that was named cannot run.
    """
    task = task_of(items.task)
    check_group_by(items, settings.group_by)
    samples = samples_per_call(settings.probs)
    orders = settings.orders or task.orders
    criteria = any(item.criteria and item.criterion for item in items)
    strata = strata_of(
        items,
        orders=orders,
        protocols=protocols_of(settings.protocol, criteria=criteria),
        seed=settings.seed,
        group_by=settings.group_by,
    )
    for part in strata:
        asks = map(Ask, itertools.chain.from_iterable(part.protocols.values()))
        if (why := refusal(part.items[0], with_samples(asks, samples))) is not None:
            raise UsageError(f"{part.items[0].id}: {why}.")
    groups = any(item.group is not None for item in items)
    chosen, skipped = choose_methods(
        settings.methods,
        strata,
        items.task,
        groups=groups,
        gives=gives if samples is None else gives | {Evidence.PROBS},
        refusal=refusal,
    )
    if "all" in settings.methods:
        costly = too_costly(chosen, {*settings.methods}, strata, samples)
        skipped |= {name: costly[name] for name in costly if name not in held}
        chosen = {name: own for name, own in chosen.items() if name not in skipped}
    return AuditPlan(items, settings, orders, strata, chosen, skipped, samples)


def shared_prompts(items: Sequence[Item]) -> str | None:
    """Warn if items without a unit have few prompts, though too many to be instructions."""
    alone = [text_of(item.prompt) for item in items if item.unit is None]
    count = len({*alone})
    if not FEWEST_PROMPTS <= count <= len(alone) / 2:
        return None
    return (
        f"{len(alone):,} items have {count:,} distinct prompts and count as independent. If a prompt is the question, "
        "make it the unit: --columns unit=FIELD."
    )


def equal_candidates(items: Sequence[Item]) -> str | None:
    """Warn if items have two candidates with the same text, whose order decides between them."""
    equal = [
        item.id
        for item in items
        if len({*(texts := list(filter(None, map(text_of, item.candidates))))}) < len(texts)
    ]
    if not equal:
        return None
    return (
        f"{len(equal):,} of {len(items):,} items {agrees(len(equal), 'has', 'have')} two candidates with the same "
        f"text, such as {equal[0]}. "
        "Their order alone decides between these, so verdicts change with it. Leave such items out."
    )


def referring_options(items: Sequence[Item]) -> str | None:
    """Warn if options such as "All of the above" are shown in other orders, which changes their meaning."""
    moved = [item for item in items if item.permutable and item.task == Task.MCQ]
    referring = [item.id for item in moved if refer_to_each_other(map(text_of, item.candidates))]
    if not referring:
        return None
    return (
        f"{len(referring):,} of {len(items):,} items {agrees(len(referring), 'has', 'have')} an option that seems to "
        f"refer to others, such as {referring[0]}. If it does, other orders change its meaning: set permutable to false."
    )


def left_out(bad_lines: Sequence[BadLine]) -> str:
    """Return the sentence that counts lines left out with `--on-bad-item skip`."""
    if len(bad_lines) == 1:
        return f"1 bad line left out: {bad_lines[0]}."
    return f"{len(bad_lines):,} bad lines left out, such as {bad_lines[0]}."


def without_probabilities(plan: AuditPlan) -> tuple[AuditPlan, list[str]]:
    """Return the plan that the answers allow, and a message to the user: a model may turn out to give no
    label probabilities.

    Where no answer has any, methods that need them are skipped with the reason. Where some lack
    them, those methods give no verdict there, which is said.
    """
    gives = task_of(plan.items.task).gives - {Evidence.PROBS}
    needing = [
        name
        for name, method in plan.methods.items()
        if not any(reading <= gives for reading in method.readings())
    ]
    tables = [with_content(stratum.table) for stratum in plan.strata]
    read = [(table.choices != MISSING) & (table.choices != UNPARSED) for table in tables]
    answers = sum(int(part.sum()) for part in read)
    if not needing or not answers:
        return plan, []
    lacking = Counter[str]()  # answers without probabilities, by prompt
    for part, table in zip(read, tables, strict=True):
        lost = part if table.probs is None else part & np.isnan(table.probs).any(axis=2)
        for ask, count in zip(table.asks, lost.sum(axis=0).tolist(), strict=True):
            lacking[ask.prompt_id] += count
    if not lacking.total():
        return plan, []
    if lacking.total() < answers:
        names = ", ".join(needing)
        prompts = ", ".join(f"{name} {count:,}" for name, count in (+lacking).most_common())
        again = sum(int((p & t.marked(REASKED)).sum()) for p, t in zip(read, tables, strict=True))
        why = f" ({again:,} asked again, which gives none)" if again else ""
        said = (
            f"{lacking.total():,} of {plural(answers, 'answer')} came without label probabilities{why}, by prompt: "
            f"{prompts}; methods that need them ({names}) give no verdict there. Use vote, which needs none."
        )
        return plan, [said]
    reason = "it needs label probabilities, and no answer has any"
    kept = {name: method for name, method in plan.methods.items() if name not in needing}
    skipped = {**plan.skipped, **dict.fromkeys(needing, reason)}
    return replace(plan, methods=kept, skipped=skipped), []


@dataclass(frozen=True, eq=False, slots=True)
class AnsweredPart:
    """Questions that were answered about the items of a stratum."""

    sets: tuple[frozenset[Ask], ...]  # the sets of questions that occur
    of_item: NDArray[np.intp]  # the set of each item, shape (I,)


def choose_methods(
    names: Sequence[str],
    strata: Sequence[Stratum],
    task: Task,
    *,
    groups: bool,
    gives: frozenset[Evidence],
    refusal: Refusal = lambda item, asks: None,
    recorded: Sequence[AnsweredPart] | None = None,
) -> tuple[dict[str, Method], dict[str, str]]:
    """Return the methods that can run here, and why the others of `all` and of the default cannot.

    `recorded` is what was answered in each stratum, where nothing else can be asked: a method that only lacks
    answers is skipped, too, if another that was named can run.

    Raises:
        UsageError: If a method that was named cannot run.
    """
    sizes = [stratum.n for stratum in strata]
    gold = any(stratum.unanswered.gold.any() for stratum in strata)
    wanted: list[Method] = [parse_method(BASE)]
    for name in names:
        if name == "all":
            wanted.extend(default_methods(task, sizes, groups=groups))
        else:
            wanted.append(parse_method(name))
    chosen: dict[str, Method] = {}
    skipped = _not_in_all(wanted, task, sizes, gold=gold) if "all" in names else {}
    for method in wanted:
        name = spec_name(method)
        reasons = [why_not(method, task=task, n=n, gives=gives, gold=gold) for n in sizes]
        reason = next(filter(None, reasons), None)
        if reason is None:
            refusals = (
                refusal(part.items[0], (*method.asks(part.n), *method.estimation_asks(part.n)))
                for part in strata
            )
            reason = next(filter(None, refusals), None)
        if reason is None and recorded is not None and method.name != BASE:
            reason = _not_recorded(method, strata, recorded)
        if reason is None:
            chosen.setdefault(name, method)
        else:
            skipped[name] = reason
    named = [] if tuple(names) == AUDITED else [parse_method(own) for own in names if own != "all"]
    unfit = {spec_name(own): own for own in named if spec_name(own) in skipped}
    if recorded is not None and (len(unfit) < len(named) or "all" in names):
        # what was not answered is no fault of a name
        unfit = {
            name: own
            for name, own in unfit.items()
            if any(why_not(own, task=task, n=n, gold=gold) for n in sizes)
        }
    if unfit:
        said = "; ".join(f"{name}: {skipped[name]}" for name in unfit)
        raise UsageError(f"{said}. Name another method, or all that can run: --methods all.")
    return {name: own for name, own in chosen.items() if name not in skipped}, skipped


def _not_in_all(
    wanted: Sequence[Method], task: Task, sizes: Sequence[int], *, gold: bool
) -> dict[str, str]:
    """Return the registered methods that `all` leaves out here, each with the reason."""
    skipped = {}
    taken = {method.name for method in wanted}
    for name in METHODS:
        if name not in taken:
            reasons = (why_not(METHODS.load(name)(), task=task, n=n, gold=gold) for n in sizes)
            unfit = next((reason for reason in reasons if reason is not None), None)
            skipped[name] = unfit or "left out of --methods all unless named"
    return skipped


def _not_recorded(
    method: Method, strata: Sequence[Stratum], recorded: Sequence[AnsweredPart]
) -> str | None:
    """Why recorded calls do not suffice for a method; None if they do for some item."""
    for stratum, answered in zip(strata, recorded, strict=True):
        by_content = any(ask.arranged == "content" for ask in method.asks(stratum.n))
        if by_content and not any(map(content_order, stratum.subjects)):
            return "the candidates have no text to sort by"
        needed = [
            {through(outer, ask) for ask in method.asks(stratum.n)} for outer in stratum.views
        ]
        by_answers = _by_answers(stratum, answered, alone=by_content)
        if not any(has for has, _ in by_answers):
            continue  # nothing is known about these items, whatever the method
        if not any(
            {settled(ask, item) for ask in asks} <= has
            for asks in needed
            for has, items in by_answers
            for item in items[: None if by_content else 1]
        ):
            return "no item has all the calls it needs"
        if method.fitted_from and not any(
            _can_fit(method, item, has) for has, items in by_answers for item in items
        ):
            return "no item has all the calls that fitting needs"
    return None


def _by_answers(
    stratum: Stratum, answered: AnsweredPart, *, alone: bool
) -> list[tuple[frozenset[Ask], tuple[Item, ...]]]:
    """Items by the questions that were answered: a few sets, however many items.

    One item stands for all that were answered alike, unless each has to stand `alone` or they
    were asked with content-free text, which a method may choose by the item.
    """
    by_set = answered.of_item.argsort(kind="stable")
    starts = np.searchsorted(answered.of_item[by_set], np.arange(len(answered.sets) + 1))
    alike = []
    for has, first, last in zip(answered.sets, starts[:-1], starts[1:], strict=True):
        each = alone or any(ask.substitute is not None for ask in has)
        rows = by_set[first : last if each else first + 1][: last - first]
        alike.append((has, tuple(stratum.subjects[row] for row in rows.tolist())))
    return alike


def _can_fit(method: Method, item: Item, has: Set[Ask]) -> bool:
    try:
        return all(ask in has for _, ask in method.plan_fit([blind(item)]))
    except MethodError:  # it needs text, and recorded decisions may have none
        return False
