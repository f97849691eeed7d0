"""Where metrics go beside the log file: the integrations that transformers knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from unswayed.errors import UnknownNameError, UsageError
from unswayed.registry import did_you_mean, require

WHOLE: Final = (("all",), ("none",))
"""Words of transformers for every logger that is installed, and for none."""

UNLISTED: Final = frozenset({"flyte", "azure_ml"})
"""Loggers that transformers leaves out of its list of the installed ones, or may leave out."""


def check_loggers(names: Sequence[str]) -> None:
    """Check that every logger exists and that its package is installed."""
    from transformers.integrations import integration_utils

    untyped: Any = integration_utils
    if tuple(names) in WHOLE:
        return
    callbacks = untyped.INTEGRATION_TO_CALLBACK
    usable = UNLISTED.union(untyped.get_available_reporting_integrations())
    for name in names:
        if name not in callbacks:
            raise UnknownNameError(
                f"run.loggers: unknown logger {name!r}. {did_you_mean(name, callbacks)}"
            )
        if name == "tensorboard":
            require("tensorboard", extra="train", feature='run.loggers = ["tensorboard"]')
        elif name not in usable:
            raise UsageError(
                f"run.loggers: {name} cannot be used: its package is not installed or not set up. "
                f"Install it (pip install {name.replace('_', '-')}), or take it out of run.loggers."
            )
