"""Help of the commands as Markdown, for `reference/cli.md`."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence

from evidence import markdown
from typer.core import TyperCommand

from unswayed.cli import COMMANDS
from unswayed.cli import main as run_command

CONTEXT = TyperCommand.context_class


class MarkdownHelp(CONTEXT.formatter_class):  # type: ignore[misc, name-defined]
    """Help of a command as Markdown."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(width=10_000)

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        self.write(f"`{prog} {args}`\n")

    def write_heading(self, heading: str) -> None:
        """Write the title of a group of options."""
        self.write(f"**{heading}**\n\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs; those of commands are lists of code."""
        self.write(re.sub(r"(?m)^ *(unswayed .*)$", r"- `\1`", text).strip() + "\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], *_: object, **__: object) -> None:
        """Write names with their meanings."""
        texts = (" ".join(text.split()).replace("] [", r"] \[") for _, text in rows)  # not a link
        cells = ((f"`{name}`", text) for (name, _), text in zip(rows, texts, strict=True))
        self.write(markdown(("", ""), cells) + "\n")


def command_help() -> str:
    """Help of every command as `--help` shows it, and the exit codes."""
    plain, CONTEXT.formatter_class = CONTEXT.formatter_class, MarkdownHelp
    parts = []
    try:
        for words in ([], *map(str.split, COMMANDS)):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                run_command([*words, "--help"])
            parts += [f"## {' '.join(['unswayed', *words])}", printed.getvalue().strip()]
    finally:
        CONTEXT.formatter_class = plain
    told = " ".join((run_command.__doc__ or "").split())
    codes = re.findall(r"(\d+) ([^,\d]+)[,.]", told)
    return "\n\n".join([*parts, "## Exit codes", markdown(("code", "meaning"), codes)])
