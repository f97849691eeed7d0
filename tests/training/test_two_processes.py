"""Two gloo processes, with groups split across them, train with the paper's advantages."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from small_models import colour_items, small_recipe
from traced import largest_error

from unswayed.training.planning import plan_training

SCRIPT = Path(__file__).with_name("traced.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_two(model, out, arguments):
    port, children = str(free_port()), []
    for rank in range(2):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, str(SCRIPT), str(model), str(out), json.dumps(arguments)]
        children.append(
            subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    for child in children:
        output, _ = child.communicate(timeout=300)
        assert child.returncode == 0, output[-3000:]
    return [json.loads((out / f"rank{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize(
    ("n", "n_samples", "changes"),
    [
        # One item a step, 10 responses: rank 0 gets presentations 0-1 and half of presentation 2.
        (4, 2, {"optimiser_items_per_step": "1", "run_micro_batch": "5"}),
        # LoRA, two items, and micro batches of half a presentation.
        (2, 4, {"run_micro_batch": "2", "lora": "{rank = 4, alpha = 8}"}),
    ],
    ids=["P=5 N=2", "P=2 N=4 lora"],
)
def test_groups_split_across_processes(word_model, tmp_path, n, n_samples, changes):
    arguments = {"n": n, "items": 4, "optimiser_steps": "3", **changes}
    ranks = run_two(word_model, tmp_path, arguments)
    assert [rank["processes"] for rank in ranks] == [2, 2]
    assert ranks[0]["weights"] == ranks[1]["weights"]
    recipe = small_recipe(n, **changes)
    plan = plan_training("pa-grpo", colour_items(4, n=n), model=str(word_model), recipe=recipe)
    groups, settings = plan.groups, plan.settings
    worst, split = 0.0, 0
    for first, second in zip(ranks[0]["trace"], ranks[1]["trace"], strict=True):
        whole = {key: first[key] + second[key] for key in ("rows", "texts", "advantages")}
        worst = max(worst, largest_error(whole, groups, settings, n_samples)[0])
        split += len(first["rows"]) % (groups.n_presentations * n_samples) != 0
        assert first["texts"] != second["texts"]  # each process samples for itself
    assert worst < 1e-5
    assert len(ranks[0]["trace"]) == 3
    # Without sharing prompts the same is sampled and learned.
    plain = run_two(word_model, tmp_path, {**arguments, "run_share_prompts": "false"})
    assert [rank["trace"] for rank in plain] == [rank["trace"] for rank in ranks]
    assert plain[0]["weights"] == pytest.approx(ranks[0]["weights"], rel=1e-5)
    assert split == (3 if n == 4 else 0)
