"""Fit a method on unlabelled items, and keep what it learned with what it belongs to."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from unswayed.backends import Backend
from unswayed.base.counts import plural
from unswayed.base.errors import BackendError, UsageError
from unswayed.calls import Caller, Progress, Question, RunCounts
from unswayed.methods import Method
from unswayed.methods.estimation import ROUNDED_TO_ZERO, MethodWarning
from unswayed.methods.names import spec_name
from unswayed.methods.priors import with_labels
from unswayed.methods.protocol import is_fitted, why_not
from unswayed.model.decisions import Decision, Evidence
from unswayed.model.items import Item, ItemSet, blind, expanded
from unswayed.model.presentation import Ask, canonical
from unswayed.model.tasks import task_of
from unswayed.prompts import PromptSettings, label_set_of, render

RESAMPLES: Final = 200
"""For a method without intervals: a later drift check compares with them."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted method and how the fit went."""

    method: Method
    label_set: tuple[str, ...]  # of the item with most candidates
    # of the items shown; none where it learned from content-free text
    item_ids: tuple[str, ...] = field(repr=False)
    diagnostics: dict[str, Any]  # counts, estimates with intervals and warnings, ready for JSON
    counts: RunCounts
    warnings: tuple[str, ...]


def prompts_for(backend: Backend, prompts: PromptSettings) -> PromptSettings:
    """Return the prompts a model is asked with: those given, over the model's own.

    Raises:
        UsageError: If prompts are given to a judge that reads none.
    """
    reworded = prompts.style != PromptSettings().style or prompts.template or prompts.shots
    if reworded and not backend.reads_prompt:
        raise UsageError(f"{backend.model} reads no prompt: leave out prompt, template and shots.")
    if backend.recipe is not None and (prompts.prompt or prompts.template or prompts.label_set):
        raise UsageError(
            f"recipe {backend.recipe} settles the prompt. Leave out prompt, template and labels."
        )
    return replace(backend.own_prompt.settings(prompts), extra_body=backend.extra_body)


def evidence_of(item: Item, prompts: PromptSettings, *, logprobs: bool) -> frozenset[Evidence]:
    """Return the evidence of one call about an item: that of the task's reply, as far as this prompt keeps it.

    Where the prompt asks for a label alone its token probabilities are the verdict's.
    """
    gives = task_of(item.task).gives
    alone = render(blind(item), Ask(canonical(item.n)), prompts).answer_only
    return gives if logprobs and alone else gives - {Evidence.PROBS}


def check_calibration(
    method: Method, items: ItemSet, backend: Backend, prompts: PromptSettings
) -> None:
    """Check that a method can be fitted here, before any call is made."""
    items = expanded(items)
    if is_fitted(method):
        raise UsageError(f"{spec_name(method)} learns nothing; use it as it is, without a file.")
    prompts = prompts_for(backend, prompts)
    gives = evidence_of(items[0], prompts, logprobs=backend.gives_logprobs)
    gold = any(task_of(items.task).gold(item) for item in items)
    for n, item in sorted({item.n: item for item in items}.items()):
        reason = why_not(method, task=items.task, n=n, gives=gives, gold=gold, fitting=True)
        if reason is None:
            reason = backend.refusal(item, method.estimation_asks(n), prompts)
        if reason is not None:
            raise UsageError(
                f"{item.id}: {spec_name(method)} cannot be calibrated here: {reason}. Choose another "
                f"method or other items."
            )


async def calibrate(
    method: Method,
    items: ItemSet,
    caller: Caller,
    *,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
) -> Calibration:
    """Ask what the method needs to know about these items, and fit it; gold is read only by a method that needs it."""
    prompts, items = caller.settings.prompts, expanded(items)
    check_calibration(method, items, caller.backend, prompts)
    seen = [blind(item) for item in items if item.permutable]
    if not method.resamples:
        method = method.with_resamples(RESAMPLES)
    questions = [Question(item, ask) for item, ask in method.plan_fit(seen)]
    counts = await caller.ask(questions, progress=progress, stop=stop)
    decisions = list(caller.read(questions))
    wanted = len({(question.item.id, question.ask) for question in questions})
    if len(decisions) < wanted:
        why = counts.fatal or (f"such as {counts.last_failure}" if counts.last_failure else "")
        raise BackendError(
            f"{wanted - len(decisions):,} of {plural(wanted, 'answer')} missing{f', {why}' if why else ''}"
            f"{'' if why.endswith('.') else '.'} Run the same command again: finished calls are "
            "kept."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MethodWarning)
        fitted = method.fit(items.items if method.needs_gold else seen, decisions)
    told = [entry.message for entry in caught if isinstance(entry.message, MethodWarning)]
    counted = items.counted[1]
    sentences = [counted] if counted else []
    sentences += map(str, told)
    if not any(warning.all_equal for warning in told):
        sentences += _all_equal(decisions)
    messages = tuple(dict.fromkeys(sentences))
    label_set = label_set_of(max(item.n for item in items.items), prompts)
    return Calibration(
        method=fitted,
        label_set=label_set,
        item_ids=tuple(dict.fromkeys(d.item_id for d in decisions if d.substitute is None)),
        diagnostics=_diagnostics(fitted, label_set, seen, decisions, messages),
        counts=counts,
        warnings=messages,
    )


def _all_equal(decisions: Sequence[Decision]) -> list[str]:
    """Return a warning if the judge tells no answers apart."""
    answers = {tuple(round(p, 9) for p in d.probs) for d in decisions if d.probs is not None}
    if len(decisions) < 2 or len(answers) != 1:
        return []
    (probs,) = answers
    if len(set(probs)) != 1:
        return []
    return [
        f"all {len(decisions)} estimation answers give every candidate the same probability: the judge does not "
        f"distinguish them, and the tie rule decides."
    ]


def _diagnostics(
    fitted: Method,
    label_set: Sequence[str],
    items: Sequence[Item],
    decisions: Sequence[Decision],
    messages: Sequence[str],
) -> dict[str, Any]:
    masses = [decision.label_mass for decision in decisions if decision.label_mass is not None]
    return {
        "estimation_items": len(items),
        "candidates": {str(n): count for n, count in sorted(Counter(i.n for i in items).items())},
        "decisions": len(decisions),
        "unparsed": sum(decision.choice is None for decision in decisions),
        "without_probabilities": sum(decision.probs is None for decision in decisions),
        "censored": sum(
            decision.censored or min(decision.probs or (1.0,)) <= ROUNDED_TO_ZERO
            for decision in decisions
        ),
        "label_mass": sum(masses) / len(masses) if masses else None,
        "estimates": {
            with_labels(name, label_set): msgspec.to_builtins(estimate)
            for name, estimate in fitted.estimates().items()
        },
        "warnings": list(messages),
    }
