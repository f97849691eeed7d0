"""Kill a training run at random moments, repeat the command, compare with an undisturbed run.

    python benchmarks/reliability/training_kills.py [--kills 30 --steps 6 --objective pa-grpo]

Every trial is a fresh folder: a run is killed (SIGKILL) up to four times and then left to finish.
Half of the kills come at any moment, half while a checkpoint is being written: from the moment its
folder is seen. Each run is forked from a process that has imported everything, so that a start
takes a second. Checked: the weights of the result and everything beside them have the bytes of an
undisturbed run, the log its lines (without times), no half checkpoint has a checkpoint's name.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

KILLS_PER_TRIAL = 4
WRITING_S = 0.08
"""Within which a checkpoint of the tiny judge is written, and a little after."""
MOST_S = 600.0

Train = Callable[[Path], None]


@dataclass
class Seen:
    """Results of all trials.

    Attributes:
        kills: Runs that were killed before they ended.
        writing: Kills that left a checkpoint half written, or half taken away.
        resumed: Runs that went on from a checkpoint.
        trials: Folders in which a run came to its end.
        complaints: What differed.
    """

    kills: int = 0
    writing: int = 0
    resumed: int = 0
    trials: int = 0
    complaints: list[str] = field(default_factory=list)


def forked(train: Train, out: Path) -> int:
    """The process id of a run in a process of its own."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        said = (out.parent / f"{out.name}.said").open("w", buffering=1)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        train(out)
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def ended(child: int, until: float) -> int | None:
    """The exit code of a process; None if it is still at work at that moment."""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.002)


def written(out: Path) -> set[str]:
    """The checkpoints that have a folder, under their name or where they are written."""
    with contextlib.suppress(FileNotFoundError):
        return {path.name for path in (*out.glob("checkpoint-*"), *out.glob(".writing/*-*"))}
    return set()


def kill_while_writing(child: int, out: Path, delay_s: float) -> int | None:
    """Kill a run some time after the next checkpoint's folder is seen; its code if it ends before."""
    before, until = written(out), time.monotonic() + MOST_S
    while not written(out) - before and time.monotonic() < until:
        if (code := ended(child, 0.0)) is not None:
            return code
    if (code := ended(child, time.monotonic() + delay_s)) is not None:
        return code
    os.kill(child, signal.SIGKILL)
    return ended(child, until)


def kill_after(child: int, delay_s: float) -> int | None:
    """Kill a run after some time; its code if it ends before."""
    if (code := ended(child, time.monotonic() + delay_s)) is not None:
        return code
    os.kill(child, signal.SIGKILL)
    return ended(child, time.monotonic() + MOST_S)


def result_of(out: Path) -> dict[str, object]:
    """Everything a run leaves that may not differ: files' bytes, and log lines without times."""
    lines = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    log = [{key: value for key, value in line.items() if "time" not in key} for line in lines]
    files = {
        path.name: path.read_bytes()
        for path in out.iterdir()
        if path.is_file() and path.name not in ("train.jsonl", "README.md")  # it names the folder
    }
    return {**files, "log": log, "checkpoints": sorted(p.name for p in out.glob("checkpoint-*"))}


def kill_training(train: Train, n_kills: int, folder: Path, *, chance: random.Random) -> Seen:
    """Kill and repeat until so many kills have hit, and compare every result."""
    begun = time.monotonic()
    whole = folder / "undisturbed"
    code = ended(forked(train, whole), time.monotonic() + MOST_S)
    if code != 0:
        raise RuntimeError((folder / "undisturbed.said").read_text()[-2000:])
    length, expected = time.monotonic() - begun, result_of(whole)
    seen = Seen()
    while seen.kills < n_kills:
        out = folder / f"trial-{seen.trials}"
        for _ in range(min(KILLS_PER_TRIAL, n_kills - seen.kills)):
            child = forked(train, out)
            if (seen.kills + seen.trials) % 2:
                code = kill_while_writing(child, out, chance.uniform(0, WRITING_S))
            else:
                code = kill_after(child, chance.uniform(0, length))
            seen.kills += code == -signal.SIGKILL
            seen.writing += any((out / ".writing").glob("*-*"))
            if code not in (0, -signal.SIGKILL):
                seen.complaints.append(f"{out.name}: {code}: {said(out)}")
        code = ended(forked(train, out), time.monotonic() + MOST_S)
        seen.trials += 1
        if code != 0:
            seen.complaints.append(f"{out.name}: {code}: {said(out)}")
            continue
        result = result_of(out)
        differing = [key for key in {**expected, **result} if expected.get(key) != result.get(key)]
        seen.complaints += [f"{out.name}: {', '.join(differing)} differ"] if differing else []
        seen.resumed += "resumed from" in said(out)
        shutil.rmtree(out)
    return seen


def said(out: Path) -> str:
    return (out.parent / f"{out.name}.said").read_text()[-600:]


@contextlib.contextmanager
def training(objective: str, steps: int, save_every: int) -> Iterator[Train]:
    """A short run of the tiny judge, with everything imported that it takes."""
    import accelerate  # noqa: F401
    import datasets  # noqa: F401
    import peft  # noqa: F401
    import transformers  # noqa: F401
    from trl.trainer.grpo_trainer import GRPOTrainer  # noqa: F401

    from unswayed.sources import load_data
    from unswayed.training.planning import plan_training
    from unswayed.training.recipe import load_recipe, with_changes
    from unswayed.training.run import train

    changes = {
        "data.held_out": "4",
        "optimiser.steps": str(steps),
        "optimiser.items_per_step": "4",
        "rollout.samples": "2",
        "run.save_every": str(save_every),
        "run.check_every": "2",
        "run.keep": "1",
        "run.loggers": "[]",
    }
    recipe = with_changes(load_recipe("tiny-judge"), changes)
    items = load_data("tiny-judge-train", limit=40)

    def run(out: Path) -> None:
        warnings.simplefilter("ignore", FutureWarning)
        plan = plan_training(objective, items, model="tiny/judge", recipe=recipe)
        result = train(plan, out)
        print(f"resumed from {result.resumed_from}" if result.resumed_from else "from the start")

    gc.freeze()  # so that a fork does not copy what it only looks at
    yield run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--objective", default="pa-grpo")
    parser.add_argument("--save-every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        training(given.objective, given.steps, given.save_every) as train,
    ):
        chance = random.Random(given.seed)
        seen = kill_training(train, given.kills, Path(name), chance=chance)
    print("| objective | kills | while writing | trials | resumed | identical |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {given.objective} | {seen.kills} | {seen.writing} | {seen.trials} | {seen.resumed} "
        f"| {seen.trials - len(seen.complaints)} |"
    )
    for complaint in seen.complaints:
        print(complaint, file=sys.stderr)
    sys.exit(1 if seen.complaints else 0)


if __name__ == "__main__":
    main()
