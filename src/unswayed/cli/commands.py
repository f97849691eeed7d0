"""Commands of two words, such as `train advise`, and help with options in panels."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Commands(TyperGroup):
    """A table of commands in which a name may be two words: they go before the first one alone."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first words name, and the words after it."""
        name = " ".join(args[:2])
        if len(args) > 1 and name in self.commands:
            return name, self.commands[name], args[2:]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """First words; the second ones are completed as the argument of the first."""
        return [word for word in super().shell_complete(ctx, incomplete) if " " not in word.value]


class PanelCommand(TyperCommand):
    """A command whose plain help lists its options under their `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write each panel of options, in the order of first appearance."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                title = getattr(parameter, "rich_help_panel", None) or kind
                panels.setdefault(title, []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)
