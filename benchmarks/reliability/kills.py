"""Kill commands at random moments, repeat them until they finish, compare with undisturbed runs.

    python benchmarks/reliability/kills.py [--audit 100 --judge 50 --others 30 --signals 20]

A fake server counts every request. Each trial is a fresh directory in which a command is killed
(SIGKILL) up to three times and then left to finish. Checked: the result is that of an undisturbed
run; a kill makes the server see at most the calls in flight and one batch again; an output file
is whole whenever it is there; nothing but the results is left over. Then SIGINT and SIGTERM are
sent at evenly spaced moments from the first line of our code to the end.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from reliability.commands import CONNECTIONS, Command, commands, finish, session, start
from reliability.counting import CountingServer

MOST_AGAIN = CONNECTIONS + 100
"""Requests that one kill may repeat: those in flight and the last uncommitted batch."""
KILLS_PER_TRIAL = 3
TIMES = {"latency_s", "made", "cached", "time_s", "created"}
"""Keys that differ between two runs by their nature."""


@dataclass
class Row:
    """Results of the trials of one command."""

    kills: int = 0
    trials: int = 0
    identical: int = 0
    most_again: int = 0
    half_written: int = 0
    leftovers: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return (
            self.identical == self.trials
            and self.most_again <= MOST_AGAIN
            and not (self.half_written or self.leftovers or self.complaints)
        )


def without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in TIMES}
    return [without_times(part) for part in value] if isinstance(value, list) else value


def content(file: Path) -> object:
    """Return the content of an output without times and counts of the run; None if it is not there.

    Raises:
        ValueError: If it is not whole.
    """
    if not file.exists():
        return None
    text = file.read_text()
    if file.suffix == ".json":
        return without_times(json.loads(text))
    if text and not text.endswith("\n"):
        raise ValueError(f"{file.name} ends within a line")
    return [without_times(json.loads(line)) for line in text.splitlines()]


def spent(metrics: object) -> object:
    """A `metrics.json` without what a resumed run did not pay itself."""
    if not isinstance(metrics, dict) or "calls" not in metrics:
        return metrics
    own = {"input_tokens", "output_tokens", "cost_usd"}
    calls = {key: value for key, value in metrics["calls"].items() if key not in own}
    return {**metrics, "calls": calls}


def is_half_written(command: Command, folder: Path, expected: Sequence[object]) -> bool:
    """Return True if an output is there and is not the whole one."""
    if command.streams:
        return False
    for name, whole in zip(command.outputs, expected, strict=True):
        try:
            seen = content(folder / name)
        except ValueError:
            return True
        if seen is not None and spent(seen) != whole:
            return True
    return False


def paid_again(segments: Sequence[Sequence[str]]) -> int:
    """Most requests of one killed run that a later one made again."""
    again = [
        len(set(segment) & {body for later in segments[place + 1 :] for body in later})
        for place, segment in enumerate(segments)
    ]
    return max(again, default=0)


def moments(length_s: float, chance: random.Random) -> Iterator[float]:
    """Moments to kill at: half anywhere, half in the second half, where files are written."""
    while True:
        yield chance.uniform(0, length_s)
        yield chance.uniform(length_s / 2, length_s)


def kill_command(
    command: Command,
    n_kills: int,
    folder: Path,
    environment: Mapping[str, str],
    server: CountingServer,
    *,
    chance: random.Random,
    most_s: float = float("inf"),
) -> Row:
    """Kill one command so many times, or until `most_s` seconds have passed."""
    row, begun = Row(), time.monotonic()
    (folder / "undisturbed").mkdir(parents=True)
    length = finish(command.arguments, folder / "undisturbed", environment)
    expected = [spent(content(folder / "undisturbed" / name)) for name in command.outputs]
    when = moments(length, chance)
    while row.kills < n_kills and time.monotonic() - begun < most_s:
        trial = folder / f"trial-{row.trials}"
        trial.mkdir()
        row.trials += 1
        segments: list[list[str]] = []
        for _ in range(min(KILLS_PER_TRIAL, n_kills - row.kills)):
            before = server.n_received
            process = start(command.arguments, trial, environment)
            time.sleep(next(when))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            segments.append(server.received(before))
            row.kills += process.returncode == -signal.SIGKILL
            row.half_written += is_half_written(command, trial, expected)
        before = server.n_received
        try:
            finish(command.arguments, trial, environment)
            row.identical += [spent(content(trial / name)) for name in command.outputs] == expected
        except (RuntimeError, ValueError) as error:
            row.complaints.append(f"{trial.name}: {error}")
        segments.append(server.received(before))
        row.most_again = max(row.most_again, paid_again(segments))
        row.leftovers += leftovers(command, trial)
        shutil.rmtree(trial)
    return row


def leftovers(command: Command, folder: Path) -> list[str]:
    """Files that nobody asked for."""
    expected = {*command.outputs, *command.others}
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if str(path.relative_to(folder)) not in expected
    ]


@dataclass
class Interrupts:
    """Exit codes of a command that was sent a signal at evenly spaced moments."""

    codes: dict[int, int] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


def interrupt_command(
    command: Command,
    number: signal.Signals,
    n_moments: int,
    folder: Path,
    environment: Mapping[str, str],
) -> Interrupts:
    """Send a signal at moments from the first line of our code to the end of the process."""
    seen = Interrupts()
    first = startup_s(environment)
    (folder / "undisturbed").mkdir(parents=True)
    length = finish(command.arguments, folder / "undisturbed", environment)
    allowed = {0, 130} if number is signal.SIGINT else {0, 130, -number}
    for place in range(n_moments):
        trial = folder / f"at-{place}"
        trial.mkdir()
        process = start(command.arguments, trial, environment)
        moment = first + (length - first) * place / max(1, n_moments - 1)
        time.sleep(moment)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        code = process.returncode
        seen.codes[code] = seen.codes.get(code, 0) + 1
        if place == 0 and code == -number and "in run\n" not in said:
            continue  # this process took longer to reach `run` than those timed before
        if code not in allowed or "Traceback" in said:
            seen.complaints.append(f"at {moment:.3f} s: {code}: {said[-300:]}")
        shutil.rmtree(trial)
    return seen


def startup_s(environment: Mapping[str, str]) -> float:
    """Seconds until our code runs; before that an interrupt is Python's own affair."""
    code = "import unswayed, os; os._exit(0)"
    times = []
    for _ in range(3):
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        times.append(time.monotonic() - begun)
    return max(times)


COLUMNS = (
    "command", "kills", "trials", "resumed identical", "most paid twice", "half-written",
    "leftovers",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--audit", type=int, default=100, help="kills of audit")
    parser.add_argument("--judge", type=int, default=50, help="kills of judge")
    parser.add_argument("--others", type=int, default=30, help="kills of each other command")
    parser.add_argument("--signals", type=int, default=20, help="SIGINTs and SIGTERMs of each")
    parser.add_argument("--pairs", type=int, default=300, help="items; two calls each")
    parser.add_argument("--log", type=int, default=5000, help="records to import")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-s", type=float, default=float("inf"), help="seconds per command")
    parser.add_argument("--only", default="", help="names of commands, separated by commas")
    add_write(parser, "reliability")
    given = parser.parse_args()
    kills = {"audit": given.audit, "judge": given.judge}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with session(folder, n_pairs=given.pairs, n_log=given.log) as (environment, server):
            chosen = [
                command
                for command in commands(folder)
                if command.name in (given.only or command.name).split(",")
            ]
            bad = []
            table = Table(COLUMNS)
            for command in chosen:
                row = kill_command(
                    command,
                    kills.get(command.name, given.others),
                    folder / command.name,
                    environment,
                    server,
                    chance=random.Random(given.seed),
                    most_s=given.most_s,
                )
                print(f"{command.name}: {row}", file=sys.stderr, flush=True)
                table.add(
                    command.name, row.kills, row.trials, row.identical, row.most_again,
                    row.half_written, len(row.leftovers),
                )  # fmt: skip
                bad += [] if row.clean else [command.name]
            if given.write:
                table.keep("reliability", "kills")
            if given.signals:
                signals, complaints = signal_table(chosen, given.signals, folder, environment)
                bad += complaints
                if given.write:
                    signals.keep("reliability", "signals")
    sys.exit(f"not clean: {', '.join(bad)}" if bad else 0)


def signal_table(
    chosen: Sequence[Command], n_moments: int, folder: Path, environment: Mapping[str, str]
) -> tuple[Table, list[str]]:
    """Print exit codes by command and signal; returns the table and what was not clean."""
    bad = []
    print()
    table = Table(("command", "signal", "exit codes (times)"))
    for command in chosen:
        for number in (signal.SIGINT, signal.SIGTERM):
            place = folder / f"{command.name}-{number.name}"
            seen = interrupt_command(command, number, n_moments, place, environment)
            codes = ", ".join(f"{code} ({count})" for code, count in sorted(seen.codes.items()))
            table.add(command.name, number.name, codes)
            for line in seen.complaints:
                print(f"{command.name}, {number.name}, {line}", file=sys.stderr)
            bad += [f"{command.name} {number.name}"] if seen.complaints else []
    return table, bad


if __name__ == "__main__":
    main()
