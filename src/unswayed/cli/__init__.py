"""The command line: one file per command, one line here."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TextIO

from unswayed.base.errors import UnswayedError, UsageError, WaitingError
from unswayed.cli.output import aside, drop_output, note, usable_streams

__all__ = ["main"]

COMMANDS: Final = {
    "audit": ("audit:audit", "pairs.jsonl --model openai/gpt-4.1-mini --dry-run"),
    "merge": ("merge:merge", "runs/pairs"),
    "import": ("import_:import_", "auto log.jsonl --out decisions.jsonl"),
    "calibrate": ("calibrate:calibrate", "pride items.jsonl --model MODEL --out pride.json"),
    "judge": ("judge:judge", "new.jsonl --model MODEL --method pride.json"),
    "serve": ("serve:serve", "systemone/NAME --base-url http://127.0.0.1:8000/v1"),
    "filter": ("filter:filter_", "items.jsonl --model hf/PATH --out train.jsonl"),
    "train": ("train:train", "distill items.jsonl --recipe RECIPE --out trained"),
    "train advise": ("advise:advise", "items.jsonl --model PATH"),
    "train merge": ("train_merge:merge", "trained --out merged"),
    "heads fit": ("heads:fit", "items.jsonl --model hf/PATH --out heads.safetensors"),
    "heads show": ("heads:show", "heads.safetensors"),
    "report": ("report:report", "RUN OTHER-RUN --out both.html"),
    "rank": ("rank:rank", "RUN --baseline gpt-4.1"),
    "gate": ("gate:gate", "RUN --fail-if 'flip_rate>0.1'"),
    "export": ("export:export", "tiny-judge --what items --out items.jsonl"),
    "check-table": ("check_table:check_table", "paper.md"),
    "list": ("list_:list_", "methods"),
}
"""Where each command is, in this package, and an example of what stands behind its name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 done, 1 a gate failed, 2 bad usage or input, 3 finished but calls failed or the budget ran
    out, 4 calls have no result in --batch yet, 130 interrupted.
    """
    usable_streams()
    try:
        with warnings.catch_warnings():
            _tell_warnings()
            code = _run(arguments)
        sys.stdout.flush()
        return code
    except UnswayedError as error:
        if isinstance(error, WaitingError):  # with the commands that upload
            aside(f"unswayed: {error}")
        else:
            note(error)
        return error.exit_code
    except KeyboardInterrupt:
        note("interrupted. Recorded calls will not be repeated.")
        return 130
    except BrokenPipeError:
        drop_output()
        return 0
    except OSError as error:
        drop_output()
        where = f" {error.filename}" if error.filename else ""
        note(f"cannot read or write{where}: {error.strerror or error}.")
        return 2


def _run(arguments: Sequence[str] | None) -> int:
    import typer

    from unswayed.cli.commands import Commands, PanelCommand

    app = typer.Typer(
        name="unswayed",
        cls=Commands,
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

    words = list(sys.argv[1:] if arguments is None else arguments)
    _check(words)
    named = {" ".join(words[:2]), *words[:1]} & COMMANDS.keys()
    if any(name.endswith("_COMPLETE") for name in os.environ):  # the words stand elsewhere
        named = set(COMMANDS)
    group = {name: COMMANDS[name] for name in COMMANDS if words and name.split()[:-1] == words[:1]}
    if group and not named and set(words[1:]) <= {"-h", "--help"}:
        del words[0]  # `heads` is no command by itself
    else:
        group = COMMANDS
    for name, (where, example) in group.items():
        if name in named:
            epilog = f"Example: unswayed {name} {example}"
            app.command(name, cls=PanelCommand, epilog=epilog)(_interruptible(command_of(name)))
        else:  # its options take time to load
            app.command(name, help=None if named else _summary(where))(lambda: None)
    try:
        result = app(
            args=words,
            prog_name="unswayed",  # completion is named after it; `python -m` names no command
            standalone_mode=False,
        )
    except (UnswayedError, OSError):
        raise
    except _InterruptedError:
        raise KeyboardInterrupt from None
    except SystemExit as stop:
        if stop.code:  # the parser's answer to a reader that left (`| head`)
            drop_output()
        return 0  # else a completion that it has printed
    except Exception as error:
        return _usage_or_raise(error)
    return result if isinstance(result, int) else 0


def _check(words: Sequence[str]) -> None:
    for before, word in zip(["unswayed", *words], words, strict=False):
        if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
            raise UsageError(
                f"the value after {word or before} is empty. Check the variable that it comes from."
            )
        if word != word.encode("utf-8", "replace").decode():
            raise UsageError(f"{word!a} is not UTF-8. Rename the file or correct the argument.")


def command_of(name: str) -> Callable[..., object]:
    """Load a command."""
    module, _, function = COMMANDS[name][0].partition(":")
    command: Callable[..., object] = getattr(
        importlib.import_module(f"{__name__}.{module}"), function
    )
    return command


def _summary(where: str) -> str | None:
    """Return the summary of a command, read without loading what it needs."""
    module, _, function = where.partition(":")
    file = Path(__file__).with_name(f"{module}.py")
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    commands = (
        node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == function
    )
    return ast.get_docstring(next(commands))


class _InterruptedError(Exception):
    """Ctrl-C on its way through the parser, which would swallow it."""


def _interruptible(command: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(command)
    def guarded(*values: object, **options: object) -> object:
        try:
            return command(*values, **options)
        except KeyboardInterrupt:
            raise _InterruptedError from None

    return guarded


TOLD: Final = ("MethodWarning", "RegistrationWarning", "ResumeWarning", "TrainingWarning")
"""Warnings for the user, by name: importing their modules takes time."""


def _tell_warnings() -> None:
    """Warnings of methods are for the user: one line each, once, without a place in the code."""
    default = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__name__ in TOLD:
            note(message)
        else:
            default(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.filterwarnings("once", category=UserWarning, module=r"unswayed\.")


def _usage_or_raise(error: Exception) -> int:
    """Say what the option parser objects to; anything else is a defect and keeps its trace."""
    code = getattr(error, "exit_code", None)
    if type(error).__name__ == "Abort":
        raise KeyboardInterrupt from None
    if not isinstance(code, int):
        raise error
    message = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]  # the parser's own: it prints the help
    elif message is not None:
        context = getattr(error, "ctx", None)
        path = "unswayed" if context is None else context.command_path
        said = message().replace("Value error, ", "").strip()
        note(f"{said}{'' if said.endswith(('.', '?')) else '.'} See {path} --help.")
        return 2
    return code
