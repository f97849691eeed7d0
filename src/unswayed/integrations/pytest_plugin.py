"""pytest plugin: the fixture `unswayed` audits a judge in a test. Loads nothing of this package before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

LINES = pytest.StashKey[list[str]]()
"""What the terminal shows of each audit."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--unswayed-rule`."""
    parser.getgroup("unswayed").addoption(
        "--unswayed-rule",
        choices=("shown", "strict", "point"),
        help="Rule of every audit of a test that names none [default: shown].",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin without lines."""
    config.stash[LINES] = []


@pytest.fixture
def unswayed(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Return `unswayed.assert_unswayed`, whose figures are shown in the terminal and in JUnit files."""

    def run(judge: Any, items: Any, **options: Any) -> dict[str, Any]:
        __tracebackhide__ = True
        from unswayed import assert_unswayed

        rule = request.config.getoption("--unswayed-rule")
        if rule is not None:
            options.setdefault("rule", rule)
        lines = request.config.stash[LINES]
        try:
            metrics = assert_unswayed(judge, items, **options)
        except AssertionError as error:
            lines.append(f"{request.node.nodeid}: {str(error).splitlines()[-1].strip()}")
            raise
        single = metrics["methods"]["direct"]["consistency"]
        if single["value"] is not None:
            flips, low, high = (1 - single[name] for name in ("value", "high", "low"))
            request.node.user_properties.append(("unswayed_flip_rate", round(flips, 4)))
            lines.append(
                f"{request.node.nodeid}: flips {flips:.3f} ({low:.3f} to {high:.3f}), {single['n']} items"
            )
        return metrics

    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show a line for each audit."""
    if config.stash[LINES]:
        terminalreporter.section("unswayed")
        for line in config.stash[LINES]:
            terminalreporter.line(line)
