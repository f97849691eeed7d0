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
        from unswayed.api import checked_audit
        from unswayed.auditing.gates import failures

        rule = options.setdefault("rule", request.config.getoption("--unswayed-rule") or "shown")
        result, checks = checked_audit(judge, items, **options)
        for own in checks:
            request.config.stash[LINES].append(f"{request.node.nodeid}: {own.said}")
            request.node.user_properties.append((f"unswayed {own.title}", own.estimate.value))
        failed = failures(checks, rule)
        if failed:
            raise AssertionError("the judge fails " + "\n  and ".join(failed))
        return result.metrics

    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show a line for each audit."""
    if config.stash[LINES]:
        terminalreporter.section("unswayed")
        for line in config.stash[LINES]:
            terminalreporter.line(line)
