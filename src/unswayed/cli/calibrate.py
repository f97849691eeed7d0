"""`unswayed calibrate`: fit on unlabelled items, write a file for production."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unswayed.cli.options import (
    BaseUrl,
    Labels,
    Limit,
    MaxConnections,
    Model,
    OnBadItem,
    Prompt,
    TaskName,
    Template,
    check_out,
    model_for,
    prompts_from,
)
from unswayed.cli.output import note, show, write

if TYPE_CHECKING:
    from unswayed.backends import Backend
    from unswayed.calibration import Calibration
    from unswayed.items import ItemSet
    from unswayed.methods import Method
    from unswayed.prompts import PromptSettings


def calibrate(
    method: Annotated[str, typer.Argument(help="A method that learns, such as pride.")],
    data: Annotated[str, typer.Argument(help="Items; gold is not looked at.")],
    out: Annotated[Path, typer.Option(help="JSON file to write.")],
    model: Model = None,
    prompt: Prompt = "direct",
    template: Template = None,
    labels: Labels = None,
    task: TaskName = None,
    on_bad_item: OnBadItem = "stop",
    limit: Limit = None,
    base_url: BaseUrl = None,
    max_connections: MaxConnections = 64,
    calls: Annotated[
        Path | None, typer.Option(help="Directory of recorded calls [default: beside --out]")
    ] = None,
) -> int:
    """Fit a method on unlabelled items and write a JSON file that `judge` loads."""
    import asyncio

    import unswayed
    from unswayed.api import load_data
    from unswayed.auditing.planning import left_out
    from unswayed.backends import BackendSettings, open_backend
    from unswayed.calibration import check_calibration, prompts_for
    from unswayed.methods.files import save_method
    from unswayed.methods.names import parse_method
    from unswayed.prompts import prompt_fingerprint

    chosen = parse_method(method)
    check_out(out, None if data == "-" else data)
    items = load_data(data, limit=limit, task=task, on_bad_item=on_bad_item)
    backend = open_backend(
        model_for(model, data), BackendSettings(base_url=base_url, max_connections=max_connections)
    )
    how = prompts_for(backend, prompts_from(prompt, template, labels))
    check_calibration(chosen, items, backend, how)
    directory = calls or out.with_name(f"{out.stem}.calls")
    made = asyncio.run(_run(chosen, items, backend, directory, how))
    save_method(
        out,
        made.method,
        model=backend.model,
        prompt_fingerprint=prompt_fingerprint(how),
        label_set=made.label_set,
        estimation_fingerprint=items.fingerprint,
        estimation_ids=[item.id for item in items if item.permutable],
        diagnostics=made.diagnostics,
        version=unswayed.__version__,
    )
    for warning in (*([left_out(items.bad_lines)] if items.bad_lines else []), *made.warnings):
        note(warning)
    _show(made)
    write(f"\n{out}")
    return 0


async def _run(
    method: Method, items: ItemSet, backend: Backend, directory: Path, prompts: PromptSettings
) -> Calibration:
    from unswayed.calibration import calibrate as fit
    from unswayed.errors import BackendError
    from unswayed.runner import Progress, stop_on_interrupt
    from unswayed.store import CallStore

    with CallStore.open(directory) as store, stop_on_interrupt() as stop:
        try:
            return await fit(
                method,
                items,
                backend,
                store,
                prompts,
                progress=Progress(),
                stop=stop,
            )
        except BackendError:
            if stop.is_set():  # the answers are missing because of Ctrl-C
                raise KeyboardInterrupt from None
            raise
        finally:
            await backend.close()


def _show(made: Calibration) -> None:
    """What was learned, with intervals."""
    from rich.table import Table

    table = Table("learned", "value", "95 % interval", box=None, pad_edge=False)
    for name, estimate in made.diagnostics["estimates"].items():
        value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
        between = "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
        table.add_row(name, "" if value is None else f"{value:.3f}", between)
    if table.row_count:
        show(table)
    counted = made.diagnostics
    write(
        f"{counted['estimation_items']:,} items, {counted['decisions']:,} decisions, "
        f"{counted['unparsed']:,} unparsed, {counted['without_probabilities']:,} without "
        "probabilities"
    )
