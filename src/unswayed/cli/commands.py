"""Commands of two words, such as `train advise`, beside the command that the first word is."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


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
