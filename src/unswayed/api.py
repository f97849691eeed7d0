"""The Python façade: audit in one call, data by name or path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from unswayed.auditing.planning import left_out
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_data
from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.base.arguments import checked, takes
from unswayed.base.errors import BackendError
from unswayed.base.sync import run_sync
from unswayed.base.version import VERSION
from unswayed.calls import Caller, Progress, RunSettings, stop_on_interrupt
from unswayed.calls.calibration import Calibration, check_calibration, prompts_for
from unswayed.calls.calibration import calibrate as fit
from unswayed.methods import Method
from unswayed.methods.fitted_file import save_method
from unswayed.methods.names import parse_method
from unswayed.model.items import ItemSet
from unswayed.prompts import AskOptions, prompt_fingerprint
from unswayed.result import AuditResult
from unswayed.sources import DataOptions, Source, examples_of
from unswayed.store import CallStore

if TYPE_CHECKING:
    from unswayed.keywords import AuditKeywords, CalibrateKeywords


@checked
@takes(AuditSettings, AskOptions, DataOptions, over=BackendSettings)
def audit(
    model: str | None = None,
    items: Source | None = None,
    *,
    decisions: str | Path | None = None,
    shots: Source = (),
    out: str | Path | None = None,
    budget: float | None = None,
    backend: BackendSettings | None = None,
    **options: Unpack[AuditKeywords],
) -> AuditResult:
    """Audit a model on items; calls already recorded in `out` are not made again.

    Args:
        model: `provider/model`; None for the tiny judge of a built-in set. With `decisions`: whose,
            where they are of several models.
        items: Items or mappings with their fields (a list, a data frame, a dataset), a path, or the
            name of a built-in set or a benchmark; None for `tiny-judge`.
        decisions: File of recorded decisions to audit instead of calling a model.
        shots: Items with gold to show as examples.
        out: Run directory; None keeps the calls in memory only.
        budget: Spend no more USD than this.
        backend: How else to reach the model; the options are laid over it.

    Returns:
        What was found. Failed calls are counted in `metrics["calls"]` and said in
        `run["warnings"]`.

    Raises:
        UnswayedError: For input that cannot be audited, or if no call can succeed.
        KeyboardInterrupt: After Ctrl-C; what was done is kept in `out`.
    """
    result = audit_data(
        model,
        items,
        AuditSettings.of(options),
        AskOptions.of(options),
        DataOptions.of(options),
        BackendSettings.of(options, backend),
        shots=shots,
        decisions=None if decisions is None else Path(decisions),
        directory=None if out is None else Path(out),
        budget=budget,
    )
    run = result.record.run
    if run.interrupted:
        raise KeyboardInterrupt
    if run.fatal and not run.calls.answered:
        raise BackendError(run.fatal)
    return result


@checked
@takes(AskOptions, DataOptions, over=BackendSettings)
def calibrate(
    method: str,
    items: Source,
    model: str,
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
        method: A method that learns, such as "pride".
        items: As for `audit`; gold is not looked at.
        model: `provider/model`.
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
    chosen = parse_method(method)
    data = DataOptions.of(options).load(items)
    asked = AskOptions.of(options)
    opened = open_backend(model, BackendSettings.of(options, backend))
    prompts = prompts_for(opened, asked.prompts(examples_of(shots)))
    check_calibration(chosen, data, opened, prompts)
    path = Path(out)
    directory = path.with_name(f"{path.stem}.calls") if calls is None else Path(calls)
    fitted = run_sync(
        _fit(chosen, data, opened, directory, RunSettings(prompts=prompts, reask=asked.reask))
    )
    left = [left_out(data.bad_lines)] if data.bad_lines else []
    save_method(
        path,
        fitted.method,
        model=opened.model,
        prompt_fingerprint=prompt_fingerprint(prompts),
        label_set=fitted.label_set,
        estimation_fingerprint=data.fingerprint,
        estimation_ids=fitted.item_ids,
        diagnostics=fitted.diagnostics,
        version=VERSION,
        force=force,
    )
    return replace(fitted, warnings=(*left, *fitted.warnings))


async def _fit(
    method: Method, items: ItemSet, backend: Backend, directory: Path, settings: RunSettings
) -> Calibration:
    with CallStore.open(directory) as store, stop_on_interrupt() as stop:
        try:
            caller = Caller(backend, store, settings)
            return await fit(method, items, caller, progress=Progress(), stop=stop)
        except BackendError:
            if stop.is_set():  # the answers are missing because of Ctrl-C
                raise KeyboardInterrupt from None
            raise
        finally:
            await backend.close()
