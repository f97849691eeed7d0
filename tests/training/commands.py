"""`unswayed train` as processes of their own, with a step that takes as long as a test likes."""

import json
import os
import random
import socket
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from forks import children_of, ended
from small_models import small_command

REWARD = '''
import os, time
from pathlib import Path
from unswayed.training.reward_settings import Reward
from unswayed.training.rewards import consistency_reward

calls = 0

def slow(choices, right):
    """r_con; the call that SLOW_AT names takes SLOW_S, in the process that SLOW_RANK names."""
    global calls
    calls += 1
    if str(calls) == os.environ.get("SLOW_AT"):
        rank = os.environ.get("RANK", "0")
        Path(os.environ["SLOW_MARK"], rank).touch()
        if rank == os.environ.get("SLOW_RANK", "0"):
            time.sleep(float(os.environ["SLOW_S"]))
    return consistency_reward(choices, right.shape[-1])

SLOW = Reward("r_con that may take its time", sampled=slow)
'''
STEPS = {"optimiser_steps": "4", "run_micro_batch": "4"}


class Command:
    """A training command that can be started as one process or as several.

    Args:
        folder: For the items, the reward and what the reward leaves.
        model: The model to train.
        objective: How.
        consistency: The reward of consistency.
    """

    def __init__(self, folder, model, objective="rl", consistency="slow"):
        self.folder = folder
        self.words = small_command(
            folder, model, objective, 10, reward_consistency=consistency, **STEPS
        )
        site = folder / "site"
        info = site / "slow-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "slow_reward.py").write_text(REWARD)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[unswayed.rewards]\nslow = slow_reward:SLOW\n")
        self.path = os.pathsep.join([str(site), *filter(None, sys.path)])

    def arguments(self, out):
        return ["-m", "unswayed", *self.words, "--out", out]

    def environments(self, out, *, processes=1, slow_at=None, slow_rank=0, slow_s=600):
        """What each process is told: the step that follows `slow_at` whole ones is the slow one."""
        mark = self.mark(out)
        mark.mkdir(exist_ok=True)
        own = {"PYTHONPATH": self.path, "SLOW_MARK": str(mark), "SLOW_RANK": str(slow_rank)}
        own["SLOW_S"] = str(slow_s)
        if slow_at is not None:  # the plan tries the reward once before any step
            own["SLOW_AT"] = str(slow_at + 2)
        return environments(processes, own)

    def mark(self, out):
        """The folder in which the processes say that they have come to the slow step."""
        return self.folder / f"mark-{Path(out).name}"

    @contextmanager
    def started(self, out, *, slow_at=None, **how):
        """The processes, once they are in the slow step."""
        environments = self.environments(out, slow_at=slow_at, **how)
        with children_of(self.arguments(str(out)), environments) as children:
            if slow_at is not None:
                wait_for(self.mark(out), len(children), children)
            yield children

    def finished(self, out, **how):
        """Until the processes have ended, all of them well."""
        all_well(ended(self.arguments(str(out)), self.environments(out, **how)))


def run_processes(*command, processes=2, launch=None):
    """Run a script as the processes of one launcher, all of which have to end with 0.

    Args:
        *command: What Python runs, with its arguments.
        processes: How many; one is on its own.
        launch: What else the launcher puts into their environment.

    Returns:
        What each said on stdout and stderr.
    """
    return all_well(ended(command, environments(processes, launch or {})))


def all_well(processes):
    """What each said on stdout and stderr."""
    assert [process.code for process in processes] == [0] * len(processes), processes
    return [(process.out, process.err) for process in processes]


def environments(processes, own):
    """What each process of one launcher is told, the same of its own and this process's."""
    port = free_port()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **own}
    if processes == 1:
        return [environment]
    return [environment | launched(port, rank, processes) for rank in range(processes)]


def free_port():
    """A port that is free, and that the system gives to nobody who asks for any."""
    for port in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("none of 100 ports between 20000 and 30000 is free")


def launched(port, rank, processes):
    """What a launcher tells one of its processes."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1", **{key: str(value) for key, value in numbers.items()}}


def wait_for(mark, processes, children):
    """Until every process has come to the slow step."""
    until = time.monotonic() + 300
    while len(list(mark.iterdir())) < processes:
        for child in children:
            assert child.poll() is None, child.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)


def result_of(out):
    """What has to be equal: the weights' bytes, and the log without the time that steps took."""
    weights = {path.name: path.read_bytes() for path in Path(out).glob("*.safetensors")}
    lines = [json.loads(line) for line in (Path(out) / "train.jsonl").read_text().splitlines()]
    timeless = [{k: v for k, v in line.items() if "time" not in k} for line in lines]
    return weights, timeless
