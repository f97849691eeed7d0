"""Rollouts from a vLLM server: trl's own client, and a server that speaks its protocol."""

import json
import math
import os
from pathlib import Path

from fake_vllm import FakeVllm
from small_models import small_plan
from test_sharded import launch_environment, run, weights
from traced import largest_error

STUB = Path(__file__).with_name("stub_of_vllm")
LORA = "{rank = 4, alpha = 8}"


def served(model, out, n_processes, settings, environment=None):
    """A run with rollouts from the fake server; the processes' batches, and the server."""
    transfer = out.with_name("transfer")
    with FakeVllm(model, transfer) as server:
        asked = {
            **settings,
            "rollout_engine": "vllm-server",
            "rollout_server_url": json.dumps(server.url),
        }
        paths = os.pathsep.join(filter(None, (str(STUB), os.environ.get("PYTHONPATH"))))
        path = {"PYTHONPATH": paths, "FAKE_VLLM_TRANSFER": str(transfer)}
        ranks = run(model, out, n_processes, asked, {**(environment or {}), **path})
    return ranks, server


def gathered(ranks):
    """The batches of all processes as one: each holds the rows of rank 0, then of rank 1."""
    return [
        {key: [value for part in parts for value in part[key]] for key in parts[0]}
        for parts in zip(*(rank["batches"] for rank in ranks), strict=True)
    ]


def check_layout(model, server, batches, n, n_samples):
    """Each presentation was asked once for N responses, in order, and got the paper's advantages."""
    plan = small_plan(model, n=n)
    rows = [plan.chat.ids(row.messages) for row in plan.groups.rows]
    for request, batch in zip(server.asked, batches, strict=True):
        assert request["n"] == n_samples
        assert request["prompt"] == [rows[row] for row in batch["rows"][::n_samples]]
        assert batch["rows"] == [
            row for row in batch["rows"][::n_samples] for _ in range(n_samples)
        ]
        assert batch["ids"] == request["completions"]
        assert largest_error(batch, plan.groups, plan.settings, n_samples)[0] < 1e-5


def test_every_presentation_is_sampled_n_times_in_order(word_model, tmp_path):
    n, n_samples = 4, 2
    settings = {"n": n, "items": 6, "optimiser_steps": "2", "run_micro_batch": "4"}
    ranks, server = served(word_model, tmp_path / "out", 1, settings)
    check_layout(word_model, server, gathered(ranks), n, n_samples)
    assert len(server.asked) == 2


def test_a_sharded_model_with_an_adapter_is_served_as_it_is(word_model, tmp_path):
    import torch

    settings = {
        "items": 6,
        "optimiser_steps": "2",
        "lora": LORA,
        "sync_at_end": True,
        "run_micro_batch": "2",
    }
    out = tmp_path / "out"
    ranks, server = served(word_model, out, 2, settings, launch_environment("fsdp2"))
    check_layout(word_model, server, gathered(ranks), 2, 4)
    base, adapter = weights(word_model), weights(out)
    assert set(server.updates[0]) == set(base)
    sums = server.model.state_dict()
    moved = 0
    for name, weight in base.items():
        stem = f"base_model.model.{name.removesuffix('.weight')}"
        expected = weight
        if f"{stem}.lora_A.weight" in adapter:  # alpha / rank = 2
            expected = (
                weight + 2 * adapter[f"{stem}.lora_B.weight"] @ adapter[f"{stem}.lora_A.weight"]
            )
            moved += not torch.equal(expected, weight)
        assert torch.allclose(sums[name], expected, atol=1e-6, rtol=0)
    assert moved == 14  # 7 matrices in each of 2 layers
    assert all(
        math.isfinite(value) for batch in ranks[0]["batches"] for value in batch["advantages"]
    )
