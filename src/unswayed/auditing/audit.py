"""One audit of a model: plan, price, ask, measure; each is done once."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from unswayed.auditing.answered import AnswerSource
from unswayed.auditing.comparison import ANSWERS_FILE, answers_of
from unswayed.auditing.design import Stratum
from unswayed.auditing.measurement import metrics_of, run_of
from unswayed.auditing.planning import AuditPlan, plan_audit, without_probabilities
from unswayed.auditing.pool import DecisionSource, Remembered, with_answers
from unswayed.auditing.records import CallsRecord, Metrics, PromptRecord, RunRecord, run_before
from unswayed.auditing.rereading import changes_of
from unswayed.auditing.rows import as_json
from unswayed.auditing.run_directory import json_text, write_bytes, write_text
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import Backend
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import UsageError
from unswayed.base.visible import one_line
from unswayed.calls import (
    Caller,
    CallPlan,
    OutcomeOf,
    Question,
    RunCounts,
    RunSettings,
    ShowsProgress,
    enough_usd,
)
from unswayed.calls.calibration import evidence_of, prompts_for
from unswayed.model.decisions import MISSING, UNPARSED, Decision
from unswayed.model.items import Item, ItemSet, Message, blind, expanded, text_of
from unswayed.model.parsing import READER
from unswayed.model.permutations import Order
from unswayed.prompts import (
    NO_CANDIDATE,
    Spans,
    candidate_spans,
    check_prompts,
    prompt_fingerprint,
    spans_of,
)


class Exchange(NamedTuple):
    """A question as it was put and answered, word for word."""

    question: Question
    # the prompt; for recorded decisions and functions, which have none, the layout
    messages: tuple[Message, ...]
    spans: Spans  # by candidate, where its text stands in them
    text: str | None  # the answer
    finish_reason: str | None = None  # why it ended


ExchangeSource = Callable[[Iterable[Question]], Iterator[Exchange]]
"""Reads what was said; what is missing is left out."""


@dataclass(frozen=True, eq=False)
class AuditRecord:
    """Results of an audit."""

    metrics: Metrics  # `metrics.json`
    run: RunRecord  # `run.json`
    plan: AuditPlan  # what was asked, with the answers
    source: DecisionSource  # reads single decisions back
    exchanges: ExchangeSource  # reads prompts and answers back
    answers: AnswerSource | None = None  # where recorded decisions were audited: those


@dataclass(frozen=True, slots=True)
class AuditedCalls:
    """Calls of an audit and their outcome."""

    counts: RunCounts
    warnings: tuple[str, ...]  # what the user should know, in sentences
    failures: tuple[str, ...]  # what went wrong, in sentences; empty if nothing did
    # a budget that reaches for the calls that a stopped run did not make
    needed_usd: float | None = None


def run_settings_for(
    settings: AuditSettings, backend: Backend, *, budget_usd: float | None = None
) -> RunSettings:
    """Return the settings of the calls: those asked for, or else those the model was trained with."""
    return RunSettings(
        prompts=prompts_for(backend, settings.prompts),
        sample_temperature=settings.sample_temperature,
        budget_usd=budget_usd,
        reask=settings.reask,
    )


def plan_for(
    items: ItemSet, settings: AuditSettings, backend: Backend, directory: Path | None = None
) -> AuditPlan:
    """Return the plan for a model: what it gives decides which methods run; `all` keeps those of a directory."""
    if not backend.reads_prompt and settings.protocol not in (None, "coupled", "order"):
        raise UsageError(
            f"protocol {settings.protocol!r}: {backend.model} sees no labels. Choose coupled or order."
        )
    prompts = prompts_for(backend, settings.prompts)
    items = expanded(items)
    plan = plan_audit(
        items,
        settings,
        gives=evidence_of(items[0], prompts, logprobs=backend.gives_logprobs),
        refusal=lambda item, asks: backend.refusal(item, asks, prompts),
        held=() if directory is None else run_before(directory).planned,
    )
    return replace(plan, remarks=tuple(check_prompts(items.items, prompts, writes=backend.writes)))


@dataclass(frozen=True, eq=False)
class Audit:
    """An audit of the calls of a model, from its plan to its record."""

    plan: AuditPlan  # what is asked; see `plan_for`
    caller: Caller  # the model, the pool of recorded calls, and how it is asked
    created: str  # when it began, ISO 8601
    started: float  # the same on the monotonic clock, in seconds

    @classmethod
    def begin(cls, plan: AuditPlan, caller: Caller, directory: Path | None = None) -> Audit:
        """Begin an audit; the packing of calls that a directory holds is kept."""
        if directory is not None and (packing := run_before(directory).packing):
            caller.backend.packing = caller.backend.packing or packing
        return cls(
            plan=plan,
            caller=caller,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            started=time.monotonic(),
        )

    def price(self) -> CallPlan:
        """Distinct calls, tokens and cost, without making a call."""
        self.caller.pool.index()
        return self.caller.price(self.plan.calls())

    async def ask(
        self,
        *,
        priced: CallPlan | None = None,
        progress: ShowsProgress | None = None,
        stop: asyncio.Event | None = None,
        outcome_of: OutcomeOf | None = None,
    ) -> AuditedCalls:
        """Make the calls that are missing, until `stop` is set; `priced` is what `price` has just said.

        With `outcome_of` no call is made: outcomes are recorded, and calls without one are left waiting. Failed calls are counted, never raised.
        """
        caller, store = self.caller, self.caller.pool
        store.bind(model=caller.backend.model, items=self.plan.items)
        calls, elsewhere = self.plan.calls(), outcome_of is not None
        if outcome_of is None:
            counts = await caller.ask(calls, priced=priced, progress=progress, stop=stop)
        else:
            counts = await caller.take(calls, outcome_of, stop or asyncio.Event())
        warnings, needed = self.plan.warnings, None
        if counts.left_out:
            warnings.append(
                f"{plural(counts.left_out, 'recorded second reply', 'recorded second replies')} left out, because "
                f"no reply is asked again (--no-reask)."
            )
        if store.damaged:
            warnings.append(f"{plural(store.damaged, 'damaged answer')} asked for again.")
        if counts.interrupted or counts.budget_spent or counts.fatal:
            # it stopped early, so the runner has met a part of the calls only
            left = self.price()
            counts.planned = max(counts.planned, left.n_distinct)
            if left.most_cost_usd is not None:
                needed = store.totals().cost_usd + left.most_cost_usd + (left.most_more_usd or 0.0)
        return AuditedCalls(
            counts=counts,
            warnings=(*warnings, *caller.backend.remarks),
            failures=tuple(failures_of(counts, caller.settings.budget_usd, needed, elsewhere)),
            needed_usd=None if needed is None else enough_usd(needed),
        )

    def measure(self, asked: AuditedCalls, *, command: str) -> AuditRecord:
        """Measure everything from the pool; pure but for reading the store. The `command`, without
        keys, reproduces the run.
        """
        counts, backend = asked.counts, self.caller.backend
        if counts.made:
            self.caller.pool.index()
        source = Remembered(self.read, self.plan.estimation)
        decisions = source.noting(self.read(self.plan.questions()))
        strata = with_answers(self.plan.strata, decisions, methods=self.plan.methods.values())
        awaiting = 0
        if counts.planned > counts.made + counts.cached:
            strata, awaiting = self._without_awaiting(strata)
        plan, unmet = without_probabilities(replace(self.plan, strata=strata))
        metrics = metrics_of(
            backend.model,
            plan,
            counts,
            source,
            endings=Counter(source.endings.values()),
            temperature=plan.settings.sample_temperature,
        )
        reread = changes_of(self.caller.pool)
        calls = msgspec.structs.replace(metrics.calls, awaiting=awaiting, reread=reread)
        metrics = msgspec.structs.replace(metrics, calls=calls)
        warnings = [*asked.failures, *asked.warnings, *unread_replies(metrics.calls), *unmet]
        prompts = self.caller.settings.prompts
        run = msgspec.structs.replace(
            run_of(command, metrics, plan, created=self.created, warnings=warnings),
            planned=tuple(self.plan.methods),
            prompt=PromptRecord(name=prompts.style, fingerprint=prompt_fingerprint(prompts)),
            prompt_settings=as_json(prompts),
            time_s=round(time.monotonic() - self.started, 2),
            packing=UNSET if backend.packing is None else dict(backend.packing),
            server=backend.server,
            reader=READER,
            planted=backend.planted,
            finished=not (counts.interrupted or counts.budget_spent or counts.fatal),
            fatal=counts.fatal,
            interrupted=counts.interrupted,
            budget_spent=counts.budget_spent,
            failures=asked.failures,
            budget_to_finish=asked.needed_usd if counts.budget_spent else None,
        )
        return AuditRecord(metrics, run, plan, self.read, self.exchanges)

    def _without_awaiting(self, strata: Sequence[Stratum]) -> tuple[tuple[Stratum, ...], int]:
        """Strata in which unread replies with a second call to come are missing; their number."""
        kept, awaiting = [], 0
        for stratum in strata:
            table = replace(stratum.table, choices=stratum.table.choices.copy())
            for row, column in np.argwhere(table.choices == UNPARSED):
                question = Question(blind(stratum.items[row]), table.asks[column])
                if any(self.caller.missing([question])):
                    table.choices[row, column] = MISSING
                    awaiting += 1
            kept.append(stratum.with_table(table))
        return tuple(kept), awaiting

    def read(self, questions: Iterable[Question]) -> Iterator[Decision]:
        """Yield the decisions of questions, with the probabilities of their samples where asked for."""
        return self.plan.read(questions, self.caller.read)

    def exchanges(self, questions: Iterable[Question]) -> Iterator[Exchange]:
        """Yield the prompts and answers of questions, as they are recorded."""
        for question, request, response in self.caller.calls(questions):
            item, messages = question.item, request.messages
            if self.caller.backend.reads_prompt:
                spans = candidate_spans(item, question.ask, self.caller.settings.prompts)
            else:
                order = question.ask.presentation.order
                messages, spans = laid_out(item, list(map(str, range(1, item.n + 1))), order)
            yield Exchange(question, messages, spans, response.text, response.finish_reason)


def laid_out(item: Item, labels: Sequence[str], order: Order) -> tuple[tuple[Message, ...], Spans]:
    """Lay out an item whose prompt is not known, with the places of its candidates; nothing without texts."""
    texts = list(map(text_of, item.candidates))
    if not any(texts):
        return (), ()
    pieces = [(text_of(item.prompt), NO_CANDIDATE)]
    for label, candidate in zip(labels, order, strict=True):
        pieces.append((f"\n\n{label}: ", NO_CANDIDATE))
        pieces.append((texts[candidate], candidate))
    layout = Message("shown", "".join([text for text, _ in pieces]))
    return (layout,), spans_of(pieces, item.n, place=0)


def failures_of(
    counts: RunCounts, budget_usd: float | None, needed_usd: float | None, elsewhere: bool
) -> Iterator[str]:
    """Yield why calls are missing and what to do, one sentence for each cause."""
    if counts.fatal is not None:
        yield f"stopped: {counts.fatal}"
    elif counts.failed:
        example = f", such as {counts.last_failure}" if counts.last_failure else ""
        yield (
            f"{counts.failed:,} of {plural(counts.planned, 'call')} failed{example.rstrip('.')}. "
            f"Run the same command {'without --batch' if elsewhere else 'again'} to retry."
        )
    if counts.unknown_usage:
        yield (
            f"{plural(counts.unknown_usage, 'answer')} came without a valid token count: no tokens in the "
            "totals, the highest possible amount in the cost."
        )
    if counts.budget_spent:
        left = counts.planned - counts.made - counts.cached - counts.failed
        yield (
            f"the budget of ${budget_usd:g} does not cover the next call: {left:,} of "
            f"{plural(counts.planned, 'call')} {agrees(left, 'was', 'were')} not made. A budget of "
            f"${enough_usd(needed_usd or 0.0):g} covers all of them; recorded calls are kept."
        )


def unread_replies(calls: CallsRecord) -> Iterator[str]:
    """Count the replies whose ending rules out a verdict."""
    words = ", ".join(f"{one_line(word)} {n:,}" for word, n in calls.broken.items())
    for ended, n, remedy in (
        (
            "refused by the model or a filter",
            calls.refused,
            "Reword the prompt, or relax the provider's filter.",
        ),
        (
            f"with an unknown finish reason ({words})",
            sum(calls.broken.values()),
            "Switch off tools and other features that end replies early at the server.",
        ),
    ):
        if n:
            yield f"{plural(n, 'answer')} {ended}: unparsed, whatever the text. {remedy}"


def write_record(directory: Path, record: AuditRecord) -> None:
    """Write `metrics.json`, the single calls and then `run.json`, each whole or not at all."""
    write_text(directory / "metrics.json", json_text(as_json(record.metrics)))
    answers = msgspec.json.encode(answers_of(record.plan))
    write_bytes(directory / ANSWERS_FILE, answers)
    write_text(directory / "run.json", json_text(record.run.to_json()))
