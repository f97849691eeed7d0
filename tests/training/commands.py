"""`unswayed train` as processes of their own, with a step that takes as long as a test likes."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from small_models import colour_items

from unswayed.items import encode_item

REWARD = '''
import os, time
from pathlib import Path
from unswayed.reward_settings import Reward
from unswayed.rewards import consistency_reward

calls = 0

def slow(choices, right):
    """r_con; the call that SLOW_AT names takes ten minutes, in the process that SLOW_RANK names."""
    global calls
    calls += 1
    if str(calls) == os.environ.get("SLOW_AT"):
        rank = os.environ.get("RANK", "0")
        Path(os.environ["SLOW_MARK"], rank).touch()
        if rank == os.environ.get("SLOW_RANK", "0"):
            time.sleep(600)
    return consistency_reward(choices, right.shape[-1])

SLOW = Reward("r_con that may take its time", sampled=slow)
'''
SETTINGS = {
    "data.held_out": "0",
    "data.max_prompt_tokens": "64",
    "prompt.max_response_tokens": "1",
    "reward.consistency": "slow",
    "rollout.samples": "4",
    "optimiser.items_per_step": "2",
    "optimiser.steps": "4",
    "optimiser.learning_rate": "1e-3",
    "run.micro_batch": "4",
    "run.save_every": "0",
    "run.check_every": "0",
    "run.loggers": "[]",
}


class Command:
    """A training command that can be started as one process or as several.

    Args:
        folder: For the items, the reward and what the reward leaves.
        model: The model to train.
    """

    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        self.items = folder / "items.jsonl"
        self.items.write_bytes(b"\n".join(map(encode_item, colour_items(10))) + b"\n")
        site = folder / "site"
        info = site / "slow-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "slow_reward.py").write_text(REWARD)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[unswayed.rewards]\nslow = slow_reward:SLOW\n")
        self.path = os.pathsep.join([str(site), *filter(None, sys.path)])

    def arguments(self, out, changes):
        settings = {**SETTINGS, **changes}
        sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "unswayed", "train", "rl", str(self.items)]
        return [*command, "--recipe", "tiny-judge", "--model", str(self.model), *sets, "--out", out]

    @contextmanager
    def started(self, out, *, processes=1, slow_at=None, slow_rank=0, **changes):
        """The processes; the step that follows `slow_at` whole ones is the slow one."""
        mark = self.folder / f"mark-{Path(out).name}"
        mark.mkdir(exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": self.path, "OMP_NUM_THREADS": "1"}
        environment |= {"SLOW_MARK": str(mark), "SLOW_RANK": str(slow_rank)}
        if slow_at is not None:  # the plan tries the reward once before any step
            environment["SLOW_AT"] = str(slow_at + 2)
        changes = {key.replace("_", ".", 1): value for key, value in changes.items()}
        port = free_port()
        children = [
            subprocess.Popen(
                self.arguments(str(out), changes),
                env=environment | (launched(port, rank, processes) if processes > 1 else {}),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(processes)
        ]
        try:
            if slow_at is not None:
                wait_for(mark, processes, children)
            yield children
        finally:
            for child in children:
                child.kill()
                child.wait()

    def finished(self, out, **how):
        """What the processes said on stderr, once all have ended well."""
        with self.started(out, **how) as children:
            said = [child.communicate(timeout=300)[1] for child in children]
            codes = [child.returncode for child in children]
        assert codes == [0] * len(children), said
        return said


def run_processes(*command, processes=2, launch=None):
    """Run a script as the processes of one launcher, all of which have to end with 0.

    Args:
        *command: What Python runs, with its arguments.
        processes: How many; one is on its own.
        launch: What else the launcher puts into their environment.

    Returns:
        What each said on stdout and stderr.
    """
    port = free_port()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(launch or {})}
    children = [
        subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=environment | (launched(port, rank, processes) if processes > 1 else {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        said = [child.communicate(timeout=300) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert [child.returncode for child in children] == [0] * processes, said
    return said


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
