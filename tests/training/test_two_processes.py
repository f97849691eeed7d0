"""Several gloo processes: groups split across them, one that writes for all, a clean end."""

import json
from pathlib import Path

import pytest
from commands import run_processes
from test_sharded import run
from traced import largest_error

STARTS = Path(__file__).with_name("starts.py")


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
def test_groups_split_across_processes(planned, word_model, tmp_path, n, n_samples, changes):
    arguments = {"n": n, "items": 4, "optimiser_steps": "2", **changes}
    ranks = run(word_model, tmp_path / "out", 2, arguments)
    assert ranks[0]["weights"] == ranks[1]["weights"]
    plan = planned(items=4, n=n, **changes)
    groups, settings = plan.groups, plan.settings
    worst, split = 0.0, 0
    for first, second in zip(ranks[0]["batches"], ranks[1]["batches"], strict=True):
        whole = {key: first[key] + second[key] for key in ("rows", "texts", "advantages")}
        worst = max(worst, largest_error(whole, groups, settings, n_samples)[0])
        split += len(first["rows"]) % (groups.n_presentations * n_samples) != 0
        assert first["texts"] != second["texts"]  # each process samples for itself
    assert worst < 1e-5
    assert len(ranks[0]["batches"]) == 2
    assert split == (2 if n == 4 else 0)
    if n == 4:  # without sharing prompts the same is sampled and learned
        plain = run(word_model, tmp_path / "plain", 2, {**arguments, "run_share_prompts": "false"})
        assert [rank["batches"] for rank in plain] == [rank["batches"] for rank in ranks]
        assert plain[0]["weights"] == pytest.approx(ranks[0]["weights"], rel=1e-5)


def test_many_starts_of_several_processes_do_not_race(tmp_path):
    # Each process for itself: 8 processes x 150 starts ended in 675 errors.
    count, processes = 30, 4
    run_processes(STARTS, tmp_path, count, processes=processes)
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(processes)]
    assert all(rank == ranks[0] for rank in ranks)
    starts = ranks[0]
    assert len(starts) == count
    assert [start["resume"] for start in starts[0::3]] == [None] * (count // 3)
    assert [start["finished"] for start in starts[1::3]] == [None] * (count // 3)
    assert all("holds another run: kind was" in start["error"] for start in starts[2::3])
    logs = [
        (tmp_path / f"run{number}" / "train.jsonl").read_text() for number in range(0, count, 3)
    ]
    assert logs == ['{"step": 0}\n'] * (count // 3)  # what was after the start is forgotten, once
