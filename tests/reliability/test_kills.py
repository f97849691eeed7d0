"""Commands that are killed go on where they were; an interrupt never looks like a crash."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reliability.counting import CountingServer
from reliability.kills import (
    MOST_AGAIN,
    Command,
    commands,
    interrupt_command,
    kill_command,
    paid_again,
    session,
)

Session = tuple[Path, dict[str, str], CountingServer]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("kills")
    with session(folder, n_pairs=40, n_log=40, latency_ms=10) as (environment, server):
        yield folder, environment, server


def named(name: str, folder: Path) -> Command:
    return next(command for command in commands(folder) if command.name == name)


@pytest.mark.parametrize("name", ["audit", "judge"])
def test_a_killed_command_ends_with_the_undisturbed_result(serving: Session, name: str) -> None:
    folder, environment, server = serving
    command = named(name, folder)
    chance = random.Random(name)
    row = kill_command(command, 1, folder / name, environment, server, chance=chance)
    assert (row.identical, row.half_written) == (row.trials, 0)
    assert row.complaints == []
    assert row.leftovers == []
    assert row.most_again <= MOST_AGAIN


def test_an_interrupt_ends_a_command_with_130_or_too_late(serving: Session) -> None:
    folder, environment, _ = serving
    audit = named("audit", folder)
    seen = interrupt_command(audit, signal.SIGINT, 2, folder / "signals", environment)
    assert seen.complaints == []
    assert sum(seen.codes.values()) == 2


def test_what_a_kill_makes_pay_again_is_counted_per_kill() -> None:
    # the first run's b and c come again, the second run's d does; e and f were paid once
    assert paid_again([["a", "b", "c"], ["b", "d"], ["c", "d", "e", "f"]]) == 2
    assert paid_again([["a"], ["b"]]) == 0
