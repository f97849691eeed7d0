"""`unswayed serve`: decisions over HTTP that do not depend on the order of the options."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Literal

import typer

from unswayed.backends import BACKENDS, BackendSettings
from unswayed.base.errors import UsageError
from unswayed.calls.judge import Judge
from unswayed.cli.judge import Shadow, method_of
from unswayed.cli.options import with_options
from unswayed.methods.fitted_file import load_method
from unswayed.prompts import AskOptions


@with_options
def serve(
    *,
    model: Annotated[
        str, typer.Argument(help="systemone/NAME, decisions/NAME, or any other judge.")
    ],
    orders: Annotated[
        Literal["cyclic", "reverse", "williams", "all", "none"] | None,
        typer.Option(
            help="Orders of the options to average over; none keeps the given one. [default: cyclic]"
        ),
    ] = None,
    mean: Annotated[
        Literal["arithmetic", "log"] | None,
        typer.Option(
            help="Mean of the probabilities, or of their logarithms. [default: arithmetic]"
        ),
    ] = None,
    polarity: Annotated[
        bool,
        typer.Option("--polarity", help="Exchange the described sides of yes-no questions, too."),
    ] = False,
    method: Annotated[
        str | None,
        typer.Option(
            help="File that calibrate wrote or, except for systemone/ and decisions/, the name of a "
            "method."
        ),
    ] = None,
    shadow: Shadow = 0.0,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Spending limit in USD; beyond it, status 402.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8950,
    max_open: Annotated[int, typer.Option(min=1, help="Largest number of open requests.")] = 64,
    asking: AskOptions,
    reach: Annotated[
        BackendSettings, "base_url", "timeout", "max_retries", "patience", "prices", "extra_body"
    ],
) -> None:
    """Serve decisions that do not depend on the order of the options.

    Set the server's address as the base URL of your clients. Set UNSWAYED_SERVE_TOKEN to require a token.
    """
    from unswayed.backends.client import HttpBackend
    from unswayed.backends.typed_apis import APIS
    from unswayed.serving.correction import Correction
    from unswayed.serving.proxy import DecisionServer, Serving
    from unswayed.serving.server import JudgeServer, Server, run

    token = os.environ.get("UNSWAYED_SERVE_TOKEN", "")
    decides = f"/v1/{model.partition('/')[0]}" in APIS
    if shadow and method is None:
        raise UsageError("--shadow tests a fitted file. Give it with --method.")
    relayed = BackendSettings(base_url=reach.base_url, timeout=reach.timeout, prices=reach.prices)
    if decides and (asking != AskOptions() or reach != relayed):
        raise UsageError(
            f"{model} takes the questions of its clients unchanged, and each of them once. Remove --prompt, "
            "--template, --labels, --no-reask, --extra-body, --max-retries and --patience."
        )
    given = {"orders": orders, "mean": mean, "polarity": polarity}
    if named := [f"--{name}" for name, value in given.items() if value and not decides]:
        raise UsageError(
            f"{model} is not a decision model: {' and '.join(named)} would change nothing. Use --method."
        )
    if decides:
        provider, _, name = model.partition("/")  # no name: any that a request has
        backend = BACKENDS.load(provider)(name, replace(reach, pricing_only=not token).valid())
        assert isinstance(backend, HttpBackend)
        correction = None if method is None else Correction(load_method(method), backend, shadow)
        settings = Serving(
            orders=orders or "cyclic",
            mean=mean or "arithmetic",
            polarity=polarity,
            budget=budget,
        )
        server: Server = DecisionServer(
            backend, settings, correction=correction, token=token, max_open=max_open
        )
    else:
        judge = Judge(
            model,
            method=method_of(method, "given"),
            prompt=asking.prompts(),
            reask=asking.reask,
            budget=budget,
            backend=reach,
            shadow=shadow,
        )
        server = JudgeServer(judge, token=token, max_open=max_open)
    run(server, host=host, port=port, timeout=reach.timeout)
