"""Commands of two words, such as `train advise`, and help with options in panels."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

PANELS: Final = {
    "Data": "task on_bad_item limit sample data_dir columns",
    "Judge": "model decisions method order recipe prompt template labels reask shots",
    "Measurement": "methods orders design protocol probs estimation_items estimation_sizes group_by seed "
    "resamples gold_ties margin",
    "Output and gates": "out shard shards engine gpus_per_shard partial json max_flip_rate fail_if rule max_failed_share junit baseline margin calls force",
    "API calls and cost": "budget batch base_url max_connections timeout max_retries patience prices extra_body pack "
    "dry_run",
    "Local models (hf/, vllm/)": "device device_map dtype attn_implementation memory_gb threads "
    "tensor_parallel trust_remote_code",
}
PANEL_OF: Final = {name: title for title, names in PANELS.items() for name in names.split()}
"""Heading of an option in a command's help, other than "Options"."""


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
    """A command whose plain help lists its options in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write each panel of options, in the order of first appearance."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                own = PANEL_OF.get(parameter.name, "Options")
                title = "Arguments" if parameter.param_type_name == "argument" else own
                panels.setdefault(title, []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)
