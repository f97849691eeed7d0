"""Open the model of an audit; a run whose calls are all recorded needs no key and no server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unswayed.backends import Backend, BackendSettings, backend_of, open_backend
from unswayed.backends.batches import FORMATS, HALF
from unswayed.backends.client import HttpBackend
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import MissingKeyError, UnswayedError, UsageError
from unswayed.base.sync import run_sync
from unswayed.calls import CallPlan
from unswayed.store import CallStore, Memory, Pool


def open_or_replay(
    model: str | Backend,
    settings: BackendSettings,
    directory: Path | None,
    *,
    batches: bool = False,
    of_shards: str | None = None,
) -> tuple[Backend, MissingKeyError | None]:
    """Open the model; without its key, replay its calls in a run directory, and tell what is missing to
    ask the model itself (see `check_recorded`). For `batches` no key is needed, and neither key nor weights
    for the recorded calls `of_shards`, the model's full name.
    """
    if of_shards is not None and isinstance(model, str) and directory is not None:
        return _open_recorded(model, of_shards, settings, directory), None
    if batches:
        return _open_for_batches(model, settings), None
    try:
        return backend_of(model, settings, keeps_calls=directory is not None), None
    except MissingKeyError as missing:
        if not isinstance(model, str) or directory is None or not _holds_calls_of(model, directory):
            raise
        return open_backend(f"replay/{directory}", settings), missing


def _open_recorded(model: str, full: str, settings: BackendSettings, directory: Path) -> Backend:
    """Open a model that is not asked, or replay its calls if it is not on this machine."""
    try:
        backend = open_backend(model, replace(settings, pricing_only=True))
    except UnswayedError:
        return open_backend(f"replay/{directory}", settings)
    if backend.model == full:
        return backend
    run_sync(backend.close())
    return open_backend(f"replay/{directory}", settings)


def _open_for_batches(model: str | Backend, settings: BackendSettings) -> HttpBackend:
    if isinstance(model, str) and model.partition("/")[0] in FORMATS:
        backend = open_backend(model, replace(settings, pricing_only=True))
        if isinstance(backend, HttpBackend):
            backend.share_of_price = HALF
            return backend
    name = model if isinstance(model, str) else model.model
    raise UsageError(
        f"{name} does not take batches. Leave out --batch, or choose a model of {', '.join(FORMATS)}."
    )


def recorded_calls(directory: Path | None) -> Pool:
    """Return the calls recorded in a directory, read only, to price a run; empty where there are none."""
    path = None if directory is None else directory / "calls.sqlite"
    if path is None or not path.exists():
        return Memory()
    return CallStore.open(path, read_only=True)


def check_recorded(plan: CallPlan, missing: MissingKeyError | None) -> None:
    """Check that nothing has to be asked where the model cannot be."""
    if missing is not None and plan.n_to_make:
        raise MissingKeyError(
            f"{missing} {plan.n_to_make:,} of {plural(plan.n_distinct, 'call')} "
            f"{agrees(plan.n_to_make, 'is', 'are')} not recorded yet."
        )


def _holds_calls_of(model: str, directory: Path) -> bool:
    try:
        with CallStore.open(directory, read_only=True) as store:
            return store.model == model
    except UnswayedError:
        return False
