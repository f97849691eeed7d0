"""The command that was typed, as it may be shown and kept."""

from __future__ import annotations

import re
import shlex
import sys

from unswayed.base.redaction import without_secrets


def command_line() -> str:
    """Return the command that was typed, without anything that looks like a key."""
    return shlex.join(["unswayed", *without_secrets(sys.argv[1:])])


def without_shard(command: str) -> str:
    """Return the command for all shards together."""
    return re.sub(r" --(shards?|engine|gpus-per-shard)[ =]\S+", "", command)


def with_budget(command: str, usd: float) -> str:
    """Return the command with a budget of so many USD, for its own."""
    from unswayed.calls import enough_usd

    plain = re.sub(r" --budget[ =]\S+", "", command)
    return f"{plain} --budget {enough_usd(usd):g}"
