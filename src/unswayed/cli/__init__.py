"""The command line: one file per command, one line here."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from unswayed.errors import UnswayedError

__all__ = ["main"]

COMMANDS = {
    "audit": "unswayed.cli.audit:audit",
    "import": "unswayed.cli.import_:import_",
    "calibrate": "unswayed.cli.calibrate:calibrate",
    "judge": "unswayed.cli.judge:judge",
    "filter": "unswayed.cli.filter:filter_",
    "train": "unswayed.cli.train:train",
    "report": "unswayed.cli.report:report",
    "list": "unswayed.cli.list_:list_",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 done, 1 a gate failed, 2 bad usage or input, 3 finished but calls failed or the budget ran
    out, 130 interrupted.
    """
    import typer

    app = typer.Typer(
        name="unswayed",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Measure and remove position and label bias of LLM judges and multiple-choice answers.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def version(
        show: bool = typer.Option(False, "--version", help="Show the version and exit."),
    ) -> None:
        if show:
            import unswayed

            typer.echo(f"unswayed {unswayed.__version__}")
            raise typer.Exit

    for name, where in COMMANDS.items():
        module, _, attribute = where.partition(":")
        app.command(name)(getattr(importlib.import_module(module), attribute))
    try:
        result = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except UnswayedError as error:
        print(f"unswayed: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("unswayed: interrupted; the same command continues.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _usage_or_raise(error)
    return result if isinstance(result, int) else 0


def _usage_or_raise(error: Exception) -> int:
    """Print what the option parser objects to; anything else is a defect and keeps its trace."""
    show = getattr(error, "show", None)
    code = getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):
        show()
        return 2
    if isinstance(code, int):
        return code
    if type(error).__name__ == "Abort":
        return 130
    raise error
