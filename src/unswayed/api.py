"""The Python façade: audit in one call, data by name or path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from unswayed.auditing.gates import Condition, GateCheck, Rule, check, check_calls, failures
from unswayed.auditing.planning import left_out
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import AuditArguments, audit_data
from unswayed.backends import Backend, BackendSettings, backend_of
from unswayed.base.arguments import checked, takes
from unswayed.base.errors import BackendError, UnswayedError
from unswayed.base.redaction import without_keys
from unswayed.base.sync import run_sync
from unswayed.base.version import VERSION
from unswayed.calls import Caller, Progress, RunSettings, stop_on_interrupt
from unswayed.calls.calibration import Calibration, check_calibration, prompts_for
from unswayed.calls.calibration import calibrate as fit
from unswayed.methods import BASE, Method
from unswayed.methods.fitted_file import load_method, save_method
from unswayed.methods.names import parse_method
from unswayed.model.decisions import Decision
from unswayed.model.items import ItemSet
from unswayed.prompts import AskOptions, prompt_fingerprint
from unswayed.result import AuditResult
from unswayed.sources import DataOptions, Source, examples_of, records_of
from unswayed.store import CallStore

if TYPE_CHECKING:
    from unswayed.keywords import AuditKeywords, CalibrateKeywords

MOST_SHOWN = 20
"""Items of a list in a recorded call of `audit`."""


@checked
@takes(AuditSettings, AskOptions, DataOptions, over=BackendSettings)
def audit(
    model: str | Backend | Callable[..., Any] | None = None,
    items: Source | None = None,
    *,
    decisions: str | Path | Iterable[Decision] | Iterable[Mapping[str, object]] | None = None,
    shots: Source = (),
    out: str | Path | None = None,
    budget: float | None = None,
    backend: BackendSettings | None = None,
    **options: Unpack[AuditKeywords],
) -> AuditResult:
    """Audit a judge on items; calls already recorded in `out` are not made again.

    Args:
        model: `provider/model`, an open backend, or a function as `FunctionJudge` takes it; None for the
            tiny judge of a built-in set. With `decisions`: the model whose decisions count, where several
            models made them.
        items: Items or mappings with their fields (a list, a data frame, a dataset), a path, or the
            name of a built-in set or a benchmark; None for `tiny-judge`.
        decisions: Recorded decisions to audit instead of calling a model: a file, or decisions or mappings
            with their fields in memory (a list, a data frame).
        shots: Items with gold to show as examples.
        out: Run directory; None keeps the calls in memory only.
        budget: Spend no more USD than this.
        backend: How else to reach the model; the options are laid over it.

    Returns:
        What was found. Failed calls are counted in `metrics["calls"]` and said in
        `run["warnings"]`.

    Raises:
        WaitingError: If calls have no result in the folder `batch` yet; its `exit_code` is 4.
        UnswayedError: For input that cannot be audited, or if no call can succeed.
        KeyboardInterrupt: After Ctrl-C; what was done is kept in `out`.
    """
    given = {
        "decisions": decisions,
        "shots": None if isinstance(shots, tuple) and not shots else shots,
        "out": out,
        "budget": budget,
        **options,
    }
    call = _written(model, items, given)
    reach = BackendSettings.of(options, backend)
    if model is not None and not isinstance(model, str):
        model, reach = backend_of(model, reach, keeps_calls=out is not None), BackendSettings()
    if decisions is not None and not isinstance(decisions, str | Path):
        decisions = list(records_of(decisions))
    arguments = AuditArguments(
        data=items,
        model=model,
        measured=AuditSettings.of(options),
        asking=AskOptions.of(options),
        selection=DataOptions.of(options),
        reach=reach,
        shots=shots,
        directory=None if out is None else Path(out),
        budget=budget,
        call=call,
    )
    result = audit_data(arguments, decisions=decisions)
    run = result.record.run
    if run.interrupted:
        raise KeyboardInterrupt
    if not run.calls.answered and (run.fatal or run.failures):
        raise BackendError(run.fatal or run.failures[0])
    return result


def _written(model: object, items: object, given: Mapping[str, object]) -> str:
    """Return a call of `audit` as Python; `...` stands for values other than names, numbers and lists of these."""

    def shown(value: object) -> str:
        if isinstance(value, str | Path):
            return repr(str(value))
        parts = value if isinstance(value, list | tuple) else [value]
        plain = all(isinstance(part, str | int | float | None) for part in parts)
        return repr(value) if plain and len(parts) <= MOST_SHOWN else "..."

    named = [f"{name}={shown(value)}" for name, value in given.items() if value is not None]
    return without_keys(f"us.audit({', '.join([shown(model), shown(items), *named])})")


def assert_unswayed(
    judge: str | Backend | Callable[..., Any],
    items: Source,
    *,
    max_flip: float | None = 0.1,
    fail_if: str | Sequence[str] = (),
    rule: Rule = "shown",
    max_failed_share: float = 0.0,
    **options: Any,
) -> dict[str, Any]:
    """Audit a judge in a test, and fail the test if the order or the labels sway it.

    Args:
        judge: As `model` of `audit`.
        items: As for `audit`.
        max_flip: Largest share of single verdicts that may flip; None for no limit.
        fail_if: A further condition or several, as `unswayed gate --fail-if` takes them.
        rule: "shown" fails where the whole 95% interval is bad, "strict" passes only where none of it is,
            "point" compares the estimate.
        max_failed_share: Largest share of failed calls.
        options: As for `audit`. By default only the methods that the conditions name are measured.

    Returns:
        The content of `metrics.json`.

    Raises:
        AssertionError: If a condition holds, with value, interval and number of items.
        BackendError: If calls failed, so that nothing can be concluded.
        UsageError: If a condition is not one.
    """
    __tracebackhide__ = True
    result, checks = checked_audit(
        judge, items, max_flip, fail_if, rule, max_failed_share=max_failed_share, **options
    )
    failed = failures(checks, rule)
    if failed:  # no assert statement: pytest would rewrite its message, and -O drop it
        raise AssertionError("the judge fails " + "\n  and ".join(failed))
    return result.metrics


def checked_audit(
    judge: str | Backend | Callable[..., Any],
    items: Source,
    max_flip: float | None = 0.1,
    fail_if: str | Sequence[str] = (),
    rule: Rule = "shown",
    *,
    max_failed_share: float = 0.0,
    **options: Any,
) -> tuple[AuditResult, list[GateCheck]]:
    """Return the audit of `assert_unswayed` and what it shows of each condition."""
    __tracebackhide__ = True
    limit = [] if max_flip is None else [f"flip_rate>{max_flip}"]
    further = [fail_if] if isinstance(fail_if, str) else fail_if
    try:
        conditions = [Condition.of(text) for text in (*limit, *further)]
        methods = list(dict.fromkeys([BASE, *(condition.method for condition in conditions)]))
        result = audit(judge, items, **{"methods": methods, **options})
        metrics = result.record.metrics
        check_calls(metrics, max_failed_share)
        return result, [check(metrics, condition, rule) for condition in conditions]
    except UnswayedError as error:
        raise error.with_traceback(None) from None  # a failed test shows the message


@checked
@takes(AskOptions, DataOptions, over=BackendSettings)
def calibrate(
    method: str | Method,
    items: Source,
    model: str | Backend | Callable[..., Any],
    *,
    out: str | Path,
    shots: Source = (),
    calls: str | Path | None = None,
    backend: BackendSettings | None = None,
    force: bool = False,
    **options: Unpack[CalibrateKeywords],
) -> Calibration:
    """Fit a method on unlabelled items and write the file that `load_method` reads.

    Args:
        method: A method that learns, such as "pride" or `PriDe()`.
        items: As for `audit`; gold is read only by a method that needs it.
        model: As for `audit`.
        out: JSON file to write.
        shots: Items with gold to show as examples.
        calls: Directory of recorded calls to use and fill; None for one beside `out`.
        backend: How else to reach the model; the options are laid over it.
        force: Write the file even if it corrects nothing.

    Returns:
        What was learned.

    Raises:
        UnswayedError: If the method cannot be fitted on these items.
    """
    chosen = parse_method(method) if isinstance(method, str) else method
    data = DataOptions.of(options).load(items)
    asked = AskOptions.of(options)
    opened = backend_of(model, BackendSettings.of(options, backend), keeps_calls=True)
    prompts = prompts_for(opened, asked.prompts(examples_of(shots)))
    check_calibration(chosen, data, opened, prompts)
    path = Path(out)
    directory = path.with_name(f"{path.stem}.calls") if calls is None else Path(calls)
    settings = RunSettings(prompts=prompts, reask=asked.reask)
    fitted = run_sync(_fit(chosen, data, opened, directory, settings, closes=opened is not model))
    left = [left_out(data.bad_lines)] if data.bad_lines else []
    save_method(
        path,
        fitted.method,
        model=opened.model,
        prompt_fingerprint=prompt_fingerprint(prompts),
        label_set=fitted.label_set,
        estimation_fingerprint=data.fingerprint,
        estimation_ids=fitted.item_ids,
        pack=_pack(opened, path),
        diagnostics=fitted.diagnostics,
        version=VERSION,
        force=force,
    )
    return replace(fitted, warnings=(*left, *fitted.warnings))


def _pack(backend: Backend, path: Path) -> int | msgspec.UnsetType:
    """Return the questions in one request of a fit; those of the file before if this fit made no probe."""
    if backend.packing is not None:
        return int(backend.packing["pack"])
    with suppress(UnswayedError):
        return load_method(path, model=backend.model).pack
    return msgspec.UNSET


async def _fit(
    method: Method,
    items: ItemSet,
    backend: Backend,
    directory: Path,
    settings: RunSettings,
    *,
    closes: bool,
) -> Calibration:
    with CallStore.open(directory) as store, stop_on_interrupt(backend) as stop:
        try:
            caller = Caller(backend, store, settings)
            return await fit(method, items, caller, progress=Progress(), stop=stop)
        except BackendError:
            if stop.is_set():  # the answers are missing because of Ctrl-C
                raise KeyboardInterrupt from None
            raise
        finally:
            if closes:
                await backend.close()
