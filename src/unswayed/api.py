"""The Python façade: audit in one call, data by name or path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from unswayed.arguments import checked
from unswayed.auditing.planning import left_out
from unswayed.auditing.settings import audit_settings
from unswayed.audits import audit_calls, audit_recorded
from unswayed.backends import Backend, BackendSettings, backend_settings, open_backend
from unswayed.calibration import Calibration, check_calibration, prompts_for
from unswayed.calibration import calibrate as fit
from unswayed.errors import BackendError, UsageError
from unswayed.items import ItemSet
from unswayed.methods import AUDITED, Method
from unswayed.methods.files import save_method
from unswayed.methods.names import parse_method
from unswayed.prompts import PromptSettings, prompt_fingerprint, prompt_settings
from unswayed.result import AuditResult
from unswayed.runner import Caller, Progress, RunSettings, stop_on_interrupt
from unswayed.sources import Source, load_data
from unswayed.store import CallStore
from unswayed.sync import run_sync
from unswayed.tiny import DEFAULT_SET, is_built_in, judge_of
from unswayed.version import VERSION


@checked
def audit(
    model: str | None = None,
    items: Source | None = None,
    *,
    decisions: str | Path | None = None,
    methods: str | Sequence[str] = AUDITED,
    orders: str | None = None,
    protocol: str | None = None,
    probs: str = "logprobs",
    estimation_items: int | None = None,
    estimation_sizes: Sequence[int] = (),
    prompt: str | PromptSettings | None = None,
    template: str | Path | None = None,
    labels: str | Sequence[str] | None = None,
    shots: Source = (),
    group_by: str = "group",
    gold_ties: Literal["exclude", "class"] = "exclude",
    margin: float = 1.0,
    task: str | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
    limit: int | None = None,
    sample: int | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    resamples: int = 1000,
    out: str | Path | None = None,
    budget: float | None = None,
    reask: bool = True,
    prices: str | Path | None = None,
    base_url: str | None = None,
    max_connections: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    patience: float | None = None,
    backend: BackendSettings | None = None,
) -> AuditResult:
    """Audit a model on items; calls already recorded in `out` are not made again.

    Args:
        model: `provider/model`; None for the tiny judge of a built-in set. With `decisions`: whose,
            where they are of several models.
        items: Items or mappings with their fields (a list, a data frame, a dataset), a path, or the
            name of a built-in set or a benchmark; None for `tiny-judge`.
        decisions: File of recorded decisions to audit instead of calling a model.
        methods: Methods to compare, as a list or separated by commas; "all" for all that apply.
        orders: Set of orders; None for the task's default.
        protocol: "coupled", "label", "order" or "all"; None for "coupled", "all" for built-in sets.
        probs: "logprobs", or "sampled:R".
        estimation_items: Items a fitted method learns from; None for 20 %, at most 200.
        estimation_sizes: Sizes of the estimation-set curve.
        prompt: Name of a prompt, or whole settings; None for the model's own, or else direct.
        template: Your own template file.
        labels: Label symbols, such as "X,Y".
        shots: Items with gold to show as examples.
        group_by: "group", or a field of meta such as "meta.source".
        gold_ties: "exclude" items whose gold is a tie, or score ties as a "class".
        margin: Smallest difference that matters, in points of accuracy.
        task: Take the items of this task only.
        on_bad_item: For files: "stop" at the first bad line, or "skip" and count bad lines.
        limit: Use the first items only.
        sample: Use so many items, drawn by the seed.
        data_dir: Folder with a copy of a benchmark's files.
        seed: Seed of folds, orders, resamples and the sample.
        resamples: Bootstrap resamples.
        out: Run directory; None keeps the calls in memory only.
        budget: Spend no more USD than this.
        reask: If True, ask once more for the label of a reply that could not be read.
        prices: Price table of your own.
        base_url: Address of an OpenAI-compatible server.
        max_connections: Most requests in flight.
        timeout: Most seconds for one attempt.
        max_retries: Attempts of one call after its first.
        patience: Seconds that a server is waited for while it answers nothing.
        backend: How else to reach the model; the options above are laid over it.

    Returns:
        What was found. Failed calls are counted in `metrics["calls"]` and said in
        `run["warnings"]`.

    Raises:
        UnswayedError: For input that cannot be audited, or if no call can succeed.
        KeyboardInterrupt: After Ctrl-C; what was done is kept in `out`.
    """
    built_in = decisions is None and is_built_in(items)
    settings = audit_settings(
        methods=methods,
        orders=orders,
        protocol=protocol or ("all" if built_in else "coupled"),
        probs=probs,
        estimation_items=estimation_items,
        estimation_sizes=estimation_sizes,
        group_by=group_by,
        seed=seed,
        resamples=resamples,
        gold_ties=gold_ties,
        margin=margin,
        prompts=prompt_settings(prompt, template, labels, load_data(shots) if shots else ()),
        reask=reask,
    )
    load = partial(
        load_data,
        limit=limit,
        sample=sample,
        seed=seed,
        task=task,
        on_bad_item=on_bad_item,
        data_dir=data_dir,
    )
    directory = None if out is None else Path(out)
    reach = backend_settings(
        backend,
        base_url=base_url,
        max_connections=max_connections,
        timeout=timeout,
        max_retries=max_retries,
        patience=patience,
        prices=prices,
    )
    if decisions is not None:
        return audit_recorded(
            Path(decisions),
            None if items is None else load(items),
            settings,
            reach=reach,
            directory=directory,
            budget=budget,
            model=model,
            on_bad_item=on_bad_item,
        )
    source = DEFAULT_SET if items is None else items
    data = load(source)
    if model is None and not built_in:
        raise UsageError('which model should judge the items? Give model="provider/model".')
    named = {
        "data": _name_of(source),
        "limit": limit,
        "sample": sample,
        "data_dir": None if data_dir is None else str(data_dir),
        "task": task,
        "shots": _name_of(shots),
    }
    result = audit_calls(
        data,
        settings,
        model or judge_of(items),
        reach,
        directory=directory,
        budget=budget,
        given=named,
    )
    run = result.record.run
    if run.interrupted:
        raise KeyboardInterrupt
    if run.fatal and not run.calls.answered:
        raise BackendError(run.fatal)
    return result


def _name_of(source: Source) -> str | None:
    """What data are called in `run.json`: nothing where they were in memory."""
    return str(source) if isinstance(source, str | Path) else None


@checked
def calibrate(
    method: str,
    items: Source,
    model: str,
    *,
    out: str | Path,
    prompt: str | PromptSettings | None = None,
    template: str | Path | None = None,
    labels: str | Sequence[str] | None = None,
    shots: Source = (),
    task: str | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
    limit: int | None = None,
    data_dir: str | Path | None = None,
    base_url: str | None = None,
    max_connections: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    patience: float | None = None,
    reask: bool = True,
    calls: str | Path | None = None,
    backend: BackendSettings | None = None,
    force: bool = False,
) -> Calibration:
    """Fit a method on unlabelled items and write the file that `load_method` reads.

    Args:
        method: A method that learns, such as "pride".
        items: As for `audit`; gold is not looked at.
        model: `provider/model`.
        out: JSON file to write.
        prompt: Name of a prompt, or whole settings; None for the model's own, or else direct.
        template: Your own template file.
        labels: Label symbols, such as "X,Y".
        shots: Items with gold to show as examples.
        task: Take the items of this task only.
        on_bad_item: "stop" at the first bad line, or "skip" and count bad lines.
        limit: Use the first items only.
        data_dir: Folder with a copy of a benchmark's files.
        base_url: Address of an OpenAI-compatible server.
        max_connections: Most requests in flight.
        timeout: Most seconds for one attempt.
        max_retries: Attempts of one call after its first.
        patience: Seconds that a server is waited for while it answers nothing.
        backend: How else to reach the model; the options above are laid over it.
        reask: If True, ask once more for the label of a reply that could not be read.
        calls: Directory of recorded calls to use and fill; None for one beside `out`.
        force: Write the file even if it corrects nothing.

    Returns:
        What was learned.

    Raises:
        UnswayedError: If the method cannot be fitted on these items.
    """
    chosen = parse_method(method)
    data = load_data(items, limit=limit, task=task, on_bad_item=on_bad_item, data_dir=data_dir)
    reach = backend_settings(
        backend,
        base_url=base_url,
        max_connections=max_connections,
        timeout=timeout,
        max_retries=max_retries,
        patience=patience,
    )
    opened = open_backend(model, reach)
    examples = load_data(shots) if shots else ()
    prompts = prompts_for(opened, prompt_settings(prompt, template, labels, examples))
    check_calibration(chosen, data, opened, prompts)
    path = Path(out)
    directory = path.with_name(f"{path.stem}.calls") if calls is None else Path(calls)
    fitted = run_sync(
        _fit(chosen, data, opened, directory, RunSettings(prompts=prompts, reask=reask))
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
