"""The paper's training study in miniature, on the built-in tiny judge: one command, on a CPU.

    python examples/study/run.py [--seeds 5] [--out runs/study] [--device cpu] [--base FOLDER]

Base, inference-time methods, GRPO, + r_con, + A_PA, PA-GRPO, permuted SFT and PIF over several
seeds and kinds of gold; sweeps over lambda and P; labels and orders permuted apart. Every run is one file, so the
same command goes on where it was stopped. Writes `study.md`, `study.json` and, with matplotlib,
`study.svg`. With a GPU, a larger judge trained from scratch on the same world (21 million
parameters): `--device cuda --hidden 512 --layers 8 --heads 8 --pretrain-rate 3e-4
--pretrain-steps 4000 --seeds 10`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from arms import DECOMPOSED, LAYOUTS, SETTINGS, Job, Setting, jobs
from inference import inference_rows
from loop import train_arm
from outcome import measure_model
from tables import write_tables
from torch import nn
from world import Pool, evaluation_items, inconsistent_items, make_pool

from unswayed.items import Item, Task
from unswayed.tiny.backend import WEIGHTS

MEASURED_AT = (10, 25, 50, 100)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="training seeds per arm (5)")
    parser.add_argument("--out", type=Path, default=Path("runs/study"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--base", type=Path, default=WEIGHTS, help="another tiny judge")
    parser.add_argument("--hidden", type=int, help="train a base of this width first")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--pretrain-steps", type=int, default=700)
    parser.add_argument("--pretrain-rate", type=float, default=3e-3)
    given = parser.parse_args()
    torch.set_num_threads(1)  # one thread is fastest for a model of this size
    (given.out / "runs").mkdir(parents=True, exist_ok=True)
    base = given.base if given.hidden is None else own_base(given)
    study = Study(base, given.out, torch.device(given.device))
    todo = [job for job in jobs(given.seeds) if not study.done(job)]
    total = sum(1 for _ in jobs(given.seeds))
    print(f"{total} runs, {len(todo)} to do", flush=True)
    study.base_figures()
    try:
        for number, job in enumerate(todo, start=1):
            began = time.perf_counter()
            end = study.run(job)
            print(
                f"[{number}/{len(todo)}] {job.name}: Con {end['Con']:.1f} CA {end['CA']:.1f} "
                f"({time.perf_counter() - began:.1f} s)",
                flush=True,
            )
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    command = f"python examples/study/run.py --seeds {given.seeds}"
    print(write_tables(given.out, seeds=given.seeds, command=command))
    return 0


def own_base(given: argparse.Namespace) -> Path:
    """Train a base model of another size from scratch, once per folder of results."""
    from unswayed.tiny.train import TrainSettings, save, train

    folder: Path = given.out / "base-model"
    if not (folder / "model.safetensors").exists():
        settings = TrainSettings(
            hidden=given.hidden,
            layers=given.layers,
            heads=given.heads,
            steps=given.pretrain_steps,
            learning_rate=given.pretrain_rate,
        )
        with torch.device(given.device):
            made = train(settings)
        save(made.to("cpu"), folder)
    return folder


class Study:
    """One base model and its folder of results."""

    def __init__(self, base: Path, out: Path, device: torch.device) -> None:
        from transformers import AutoModelForCausalLM

        self.out = out
        self.folder = base
        loaded: nn.Module = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        self.base = loaded.to(device).requires_grad_(False)
        weights = (base / "model.safetensors").read_bytes()
        self.fingerprint = hashlib.sha256(weights).hexdigest()[:16]
        self._items: dict[tuple[Task, int], tuple[tuple[Item, ...], float]] = {}

    def path(self, job: Job) -> Path:
        """Where a run's figures lie."""
        return self.out / "runs" / f"{job.name}.json"

    def done(self, job: Job) -> bool:
        """Whether this very run is on disk."""
        found = _read(self.path(job))
        return found is not None and found["fingerprint"] == job.fingerprint(self.fingerprint)

    def base_figures(self) -> None:
        """Measure the untrained model and the inference-time methods, once."""
        path = self.out / "base.json"
        found = _read(path)
        if found is not None and found["fingerprint"] == self.fingerprint:
            return
        figures: dict[str, object] = {"fingerprint": self.fingerprint}
        for task in dict.fromkeys(setting.task for setting in SETTINGS):
            items = evaluation_items(task)
            figures[task.value] = {
                protocol: measure_model(self.base, items, protocol=protocol) for protocol in LAYOUTS
            }
        figures["methods"] = inference_rows(self.folder)
        _write(path, figures)

    def run(self, job: Job) -> dict[str, float]:
        """Train, measure, write; the figures after the last step."""
        items = evaluation_items(job.setting.task)
        pool = self.pool(job.setting, job.seed)
        decomposed = job.setting.name in DECOMPOSED
        steps: dict[str, dict[str, float]] = {}
        protocols: dict[str, dict[str, float]] = {}

        def note(step: int, model: nn.Module) -> None:
            steps[str(step)] = measure_model(model, items)
            if step == job.setting.steps and decomposed:
                for protocol in LAYOUTS:
                    protocols[protocol] = measure_model(model, items, protocol=protocol)

        measured_at = MEASURED_AT if decomposed else (job.setting.steps,)
        seconds = train_arm(
            self.base,
            pool,
            job,
            at_steps={at: lambda model, at=at: note(at, model) for at in measured_at},
        )
        record = {
            "fingerprint": job.fingerprint(self.fingerprint),
            "setting": job.setting.name,
            "arm": job.arm,
            "seed": job.seed,
            "steps": steps,
            "protocols": protocols,
            "seconds": seconds,
            "wrong_gold": pool.wrong_gold,
            "kept": pool.kept,
        }
        _write(self.path(job), record)
        return steps[str(job.setting.steps)]

    def pool(self, setting: Setting, seed: int) -> Pool:
        """The training items of a setting and seed; the arms of one seed share them."""
        key = (setting.task, seed)
        if key not in self._items:
            self._items[key] = inconsistent_items(self.base, setting.task, seed, wanted=1600)
        items, kept = self._items[key]
        return make_pool(items, kept, setting, seed)


def _read(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _write(path: Path, record: dict) -> None:
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=1))
    beside.replace(path)  # a kill leaves the old file or the new one, never half of one


if __name__ == "__main__":
    sys.exit(main())
