"""The command that was typed, as it may be shown and kept."""

from __future__ import annotations

import re
import shlex
import sys

__all__ = ["command_line", "with_budget"]


def command_line() -> str:
    """The command that was typed, without anything that looks like a key."""
    from unswayed.backends.addresses import Secret

    # the query and the user name of an address may be secrets
    plain = [re.sub(r"(https?://)(?:[^/@\s]*@)?([^?#\s]*)\S*", r"\1\2", a) for a in sys.argv[1:]]
    return shlex.join(["unswayed", *(Secret().scrub(argument) for argument in plain)])


def with_budget(command: str, usd: float) -> str:
    """The command with a budget of so many USD, for its own."""
    from unswayed.runner import enough_usd

    plain = re.sub(r" --budget[ =]\S+", "", command)
    return f"{plain} --budget {enough_usd(usd):g}"
