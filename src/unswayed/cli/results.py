"""Final output of `unswayed audit`, and its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.base.counts import plural
from unswayed.base.errors import GateError
from unswayed.cli.command import command_line, with_budget
from unswayed.cli.output import note, show, write, write_bytes

if TYPE_CHECKING:
    from unswayed.auditing.audit import AuditRecord
    from unswayed.calls import CallPlan
    from unswayed.result import AuditResult
    from unswayed.sharded import ShardAsked


def show_price(plan: CallPlan, *, json: bool) -> None:
    """Say what an audit would ask and cost."""
    from dataclasses import asdict

    from unswayed.auditing.run_directory import json_text

    if json:
        write_bytes(json_text(asdict(plan)).encode())
        return
    cost = "unknown: this model has no price; give one with --prices"
    if plan.est_cost_usd is not None:
        free = plan.n_to_make and not plan.est_cost_usd
        why = " (on this machine, or priced at 0)" if free else ""
        cost = f"${plan.est_cost_usd:,.4f}{why}"
    seconds = f", {plan.n_seconds:,} of them second calls" if plan.n_seconds else ""
    is_shared = plan.n_distinct - plan.n_seconds < plan.n_questions
    write(
        f"{plural(plan.n_distinct, 'call')} for {plural(plan.n_questions, 'question')}{seconds}: "
        f"{plan.n_cached:,} recorded, {plan.n_to_make:,} to make"
        f"{' (equal requests are made once)' if is_shared else ''}\n"
        f"about {plural(plan.est_input_tokens, 'token')} in and {plan.est_output_tokens:,} out; cost {cost}"
    )
    if plan.n_more:
        most = "" if plan.most_more_usd is None else f", at most ${plan.most_more_usd:,.4f},"
        write(f"up to {plural(plan.n_more, 'more call')}{most} if no reply can be read")
    if plan.per_item:
        counts = ", ".join(f"{name} {count:,}" for name, count in plan.per_item.items())
        write(
            f"calls per item in this audit, which asks every order (shared calls counted once, fitting excluded): {counts}"
        )
    for remark in (*_skipped(plan.skipped), *plan.remarks):
        write(remark)


def tell_shard(asked: ShardAsked) -> int:
    """Print what became of a shard and return the exit code."""
    for remark in asked.remarks:
        note(remark)
    if asked.counts is None:
        write(f"{asked.path}: already complete")
    elif not asked.exit_code:
        write(f"{asked.path}: {plural(asked.counts.planned, 'call')}")
    else:
        command = command_line()
        if asked.needed_usd is not None and asked.counts.budget_spent:
            command = with_budget(command, asked.needed_usd)
        note(f"to resume: {command}")
    return asked.exit_code


def finish(
    result: AuditResult, *, json: bool, max_flip_rate: float | None, max_failed_share: float = 0.0
) -> int:
    """Print the results and return the exit code."""
    from unswayed.report.collect import without_items
    from unswayed.report.terminal import terminal_report

    record, directory = result.record, result.directory or Path()
    for remark in _remarks(record):
        note(remark)
    if json:
        write_bytes((directory / "metrics.json").read_bytes())
    else:
        if record.run.calls.answered:
            show(terminal_report(without_items(record.metrics, record.run)))
            write(f"\n{directory / 'report.html'}")
    run = record.run
    if run.interrupted:
        note(
            f"interrupted: {run.calls.answered:,} of {plural(run.calls.planned, 'call')} are recorded. "
            "Run the same command again to resume."
        )
        return 130
    if run.budget_to_finish:
        note(f"to resume: {with_budget(command_line(), run.budget_to_finish)}")
    lost = run.calls.failed > max_failed_share * run.calls.planned
    if run.fatal or run.budget_spent or lost:
        return 3
    if max_flip_rate is not None:
        _gate(record, max_flip_rate)
    return 0


def _remarks(record: AuditRecord) -> list[str]:
    """Warnings, cautions, and the methods that did not run."""
    cautions = [said for sentences in record.metrics.cautions.values() for said in sentences]
    skipped = _skipped(record.metrics.skipped)
    return list(dict.fromkeys([*record.run.warnings, *cautions, *skipped]))


def _skipped(skipped: Mapping[str, str]) -> list[str]:
    """Return the methods that do not run, together where the reason is alike."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        by_reason.setdefault(reason, []).append(name)
    return [
        f"skipped {', '.join(names)}: {reason.replace('it needs', 'each needs') if names[1:] else reason}."
        for reason, names in by_reason.items()
    ]


def _gate(record: AuditRecord, limit: float) -> None:
    from unswayed.methods import BASE
    from unswayed.metrics.consistency import CONSISTENCY
    from unswayed.metrics.table import METRICS

    single, metric = record.metrics.methods[BASE], METRICS.name_of(CONSISTENCY)
    consistency = single.get(metric)
    if consistency is None or consistency.value is None:
        raise GateError(f"the flip rate is unknown: {single.reason(metric)}.")
    if record.metrics.calls.unparsed >= record.metrics.calls.heard:
        raise GateError("the flip rate is unknown: no answer could be read.")
    flips = 1 - consistency.value
    if flips > limit:
        raise GateError(f"{flips:.1%} of verdicts flip; --max-flip-rate allows {limit:.1%}.")
