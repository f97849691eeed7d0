"""Audit decisions that were recorded earlier: no model, no calls, the same evaluation."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from unswayed.auditing.answered import AnswerSource, answered_part
from unswayed.auditing.audit import AuditRecord, Exchange, laid_out, unread_replies
from unswayed.auditing.design import check_group_by, group_items
from unswayed.auditing.measurement import metrics_of, run_of
from unswayed.auditing.planning import AuditPlan, choose_methods, left_out, without_probabilities
from unswayed.auditing.pool import with_answers
from unswayed.auditing.settings import AuditSettings
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import ItemError, UsageError
from unswayed.calls import Question, RunCounts
from unswayed.data.importers import Listed, items_from_decisions
from unswayed.model.decisions import SCORE, UNPARSED, Decision, Evidence, Recording, record
from unswayed.model.items import Item, ItemSet, expanded
from unswayed.model.parsing import ending
from unswayed.model.presentation import PROTOCOLS, Ask, Presentation, Protocol, canonical, rotated
from unswayed.model.tasks import TaskSpec, task_of

T = TypeVar("T")


def audit_decisions(
    decisions: Recording | Sequence[Decision],
    items: ItemSet | None,
    settings: AuditSettings,
    *,
    command: str,
    name: str = "decisions",
    model: str | None = None,
) -> AuditRecord:
    """Measure recorded decisions.

    The presentations found are the protocol: what was asked in one order only is reported with
    order metrics null. Decisions of the most frequent prompt are taken; the others are counted.
    Orders and prompts of the settings have no effect. Without items there are such without text and
    gold, called `name`. Of several models' decisions those of `model` are kept.
    """
    recording = decisions
    if not isinstance(recording, Recording):
        bad_lines = getattr(decisions, "bad_lines", ())
        recording = record(recording, originals=Listed(recording), bad_lines=bad_lines)
    kept, warnings = one_model_one_prompt(recording, model)
    subjects = expanded(items or ItemSet.of(items_from_decisions(kept), name=name))
    kept, confounded = _without_confounded_criteria(kept)
    check_group_by(subjects, settings.group_by)
    kept, unknown = _matching(kept, subjects)
    warnings = [
        *([left_out(recording.bad_lines)] if recording.bad_lines else []),
        *warnings,
        *confounded,
        *_gaps(kept, subjects, unknown),
    ]
    plan = _plan(kept, subjects, settings)
    strata = with_answers(plan.strata, kept, methods=plan.methods.values())
    plan, without = without_probabilities(replace(plan, strata=strata))
    warnings = [*plan.warnings, *warnings, *without]
    counts = RunCounts(planned=len(kept), cached=len(kept))
    who = kept.kinds[0].model or "recorded"
    source = AnswerSource(kept)
    metrics = metrics_of(who, plan, counts, source, endings=_endings(kept))
    run = run_of(
        command,
        metrics,
        plan,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        warnings=[*warnings, *unread_replies(metrics.calls)],
    )
    run = msgspec.structs.replace(run, recorded=True, planned=tuple(plan.methods))
    return AuditRecord(metrics, run, plan, source, partial(_exchanges, source), source)


def _endings(recording: Recording) -> Counter[str]:
    """Count questions about candidates that a finish reason left unread, by that reason."""
    reasons = recording.finish_reasons
    ended = np.array([not ending(reason).is_read for reason in reasons], dtype=bool)
    content = np.array([kind.substitute is None for kind in recording.kinds], dtype=bool)
    unread = (recording.choices == UNPARSED) & content[recording.kind] & ended[recording.finish]
    _, first = np.unique(recording.cells[unread], return_index=True)  # each question once
    return Counter(reasons[code] or "" for code in recording.finish[unread][first].tolist())


def _exchanges(source: AnswerSource, questions: Iterable[Question]) -> Iterator[Exchange]:
    """Yield questions, laid out, because their prompt is not known, with the recorded answers."""
    for question, decision in source.answers(questions):
        messages, spans = laid_out(question.item, decision.labels, decision.order)
        yield Exchange(question, messages, spans, decision.text, decision.finish_reason)


def _gaps(recording: Recording, items: ItemSet, unknown: int) -> Iterator[str]:
    """Describe missing and surplus decisions of a recording, in sentences."""
    if unknown:
        yield f"{plural(unknown, 'decision')} {agrees(unknown, 'belongs', 'belong')} to no item of {items.name}; left out."
    if all(kind.sample > 0 for kind in recording.kinds):
        yield (
            "only repeated samples are recorded (sample 1 and up), so figures from single answers "
            "(sample 0) are undefined. If this is one repetition of several, import it together "
            "with the first."
        )
    silent = len(items) - len(recording.item_ids)
    if silent:
        yield f"{silent:,} of {plural(len(items), 'item')} {agrees(silent, 'has', 'have')} no decision."


def _plan(recording: Recording, items: ItemSet, settings: AuditSettings) -> AuditPlan:
    """Return the presentations found are the protocol, and the methods those that the answers serve."""
    shown = _protocols(recording)
    named = tuple(next(iter(shown.values()), ("coupled",)))

    def of_n(n: int, first: Item) -> Mapping[Protocol, tuple[Presentation, ...]]:
        # a number of candidates without any decision keeps its items, all of them missing
        return shown.get(n, dict.fromkeys(named, (canonical(n),)))

    strata = group_items(items, of_n, seed=settings.seed, group_by=settings.group_by)
    methods, skipped = choose_methods(
        settings.methods,
        strata,
        items.task,
        groups=any(item.group is not None for item in items.items),
        gives=_held_by(recording, task_of(items.task)),
        recorded=[answered_part(recording, stratum) for stratum in strata],
    )
    return AuditPlan(items, settings, "recorded", strata, methods, skipped, None)


def _held_by(recording: Recording, task: TaskSpec) -> frozenset[Evidence]:
    """Return the kinds of evidence that recorded decisions hold, of those their task can give."""
    lacking = set()
    if recording.probs.is_empty:
        lacking.add(Evidence.PROBS)
    if SCORE not in recording.ratings or recording.ratings[SCORE].is_empty:
        lacking.add(Evidence.SCORES)
    return task.gives - lacking


def one_model_one_prompt(recording: Recording, model: str | None) -> tuple[Recording, list[str]]:
    """Return the decisions of one model under its most frequent prompt, and what was left out."""
    models = _counted([kind.model for kind in recording.kinds], recording)
    if model is not None:
        kept = _of_kinds(recording, [kind.model == model for kind in recording.kinds])
        if not len(kept):
            names = ", ".join(sorted(str(name) for name in models))
            raise UsageError(f"no decision of model {model!r}. Models in the file: {names}.")
    else:
        kept = recording
        if len(models) > 1:
            names = ", ".join(f"{name} ({count})" for name, count in models.most_common())
            raise UsageError(f"decisions of several models: {names}. Choose one with --model.")
    if not len(kept):
        raise ItemError("no decisions. Give at least one.")
    prompts = _counted([kind.prompt_id for kind in kept.kinds], kept)
    (prompt, _), *others = prompts.most_common()
    warnings = []
    if others:
        left = sum(count for _, count in others)
        warnings.append(
            f"only decisions with the prompt {prompt!r} are used; {plural(left, 'decision')} with other prompts left out."
        )
        kept = _of_kinds(kept, [kind.prompt_id == prompt for kind in kept.kinds])
    if prompt != "default":
        kept = kept.asked_as(
            [msgspec.structs.replace(kind, prompt_id="default") for kind in kept.kinds]
        )
    return kept, warnings


def _counted(names: Sequence[T], recording: Recording) -> Counter[T]:
    """Rows by what their kinds are called, in order of appearance."""
    counts: Counter[T] = Counter()
    for name, count in zip(names, recording.counts().tolist(), strict=True):
        counts[name] += count
    return counts


def _of_kinds(recording: Recording, chosen: Sequence[bool]) -> Recording:
    return recording.rows(np.array(chosen, dtype=np.bool_)[recording.kind])


def _without_confounded_criteria(recording: Recording) -> tuple[Recording, list[str]]:
    """Decisions without the order of the criteria, where it never differs by itself.

    It is a part of what was asked only if something was asked in two of them.
    """
    if not any(ask.criteria for ask in recording.asks):
        return recording, []
    apart = [ask._replace(criteria=()) for ask in recording.asks]
    numbers = {ask: number for number, ask in enumerate(dict.fromkeys(apart))}
    of_kind = np.array([numbers[ask] for ask in apart], dtype=np.int64)
    asked = recording.item.astype(np.int64) * len(numbers) + of_kind[recording.kind]
    if len(np.unique(recording.cells)) > len(np.unique(asked)):  # one question in two orders
        return recording, []
    kinds = [msgspec.structs.replace(kind, criteria_order=None) for kind in recording.kinds]
    said = "the order of the criteria changed only together with the order of the levels"
    return recording.asked_as(kinds), [f"{said}, so their effects are not separate."]


def _matching(recording: Recording, items: ItemSet) -> tuple[Recording, int]:
    sizes = np.array([*[item.n for item in items.items], 0], dtype=np.intp)
    of_item = sizes[
        recording.places_among([item.id for item in items.items])
    ]  # those of no item have none
    expected, own = of_item[recording.item], recording.sizes[recording.kind]
    wrong = np.flatnonzero((expected > 0) & (expected != own))
    if len(wrong):
        row = wrong[0]
        raise ItemError(
            f"{recording.item_ids[recording.item[row]]}: the item has {expected[row]} candidates, a decision about "
            f"it {own[row]}. Give the items of these decisions."
        )
    kept = recording.rows(expected > 0)
    if not len(kept):
        theirs, ours = (
            recording.item_ids[recording.item[0]],
            next((item.id for item in items), "none"),
        )
        raise ItemError(
            f"none of the decisions is about an item of {items.name}: ids differ ({theirs!r} in "
            f"decisions, {ours!r} in items). Give the items that were imported with them."
        )
    return kept, len(recording) - len(kept)


def _rotations(recording: Recording, own: Presentation) -> tuple[Presentation, ...]:
    """Return the item's own presentation once for every rotation of the criteria, if all occur."""
    asked = {
        (len(kind.criteria_order), ask.criteria)
        for kind, ask in zip(recording.kinds, recording.asks, strict=True)
        if kind.criteria_order is not None and ask._replace(criteria=()) == Ask(own)
    }
    m = max((size for size, _ in asked), default=0)
    return (own,) * m if all((m, rotated(m, turn)) in asked for turn in range(m)) else ()


def _protocols(recording: Recording) -> dict[int, dict[Protocol, tuple[Presentation, ...]]]:
    """Return the presentations that occur, by number of candidates and protocol, canonical first."""
    presentations: dict[int, set[Presentation]] = defaultdict(set)
    for kind in recording.kinds:
        if kind.substitute is None:
            presentations[len(kind.order)].add(kind.presentation)
    result: dict[int, dict[Protocol, tuple[Presentation, ...]]] = {}
    for n, shown in presentations.items():
        own = canonical(n)
        kinds: dict[Protocol, tuple[Presentation, ...]] = {
            "coupled": tuple(sorted(p for p in shown if p.labels == own.labels)),
            "label": tuple(sorted(p for p in shown if p.order == own.order)),
            "order": tuple(sorted(p for p in shown if p.order == p.labels)),
        }
        if not kinds["coupled"]:
            kinds["coupled"] = tuple(sorted(shown))
        result[n] = {
            kind: views for kind, views in kinds.items() if kind == "coupled" or len(views) > 1
        }
        if len(turns := _rotations(recording, own)) > 1:
            result[n]["criteria"] = turns
    everywhere = set(PROTOCOLS).intersection(*(set(kinds) for kinds in result.values()))
    return {
        n: {kind: views for kind, views in kinds.items() if kind in everywhere}
        for n, kinds in result.items()
    }
