"""The paper's training study in miniature, on the built-in tiny judge: one command, on a CPU.

    python examples/study/run.py [--seeds 5] [--part main ...] [--out runs/study] [--base FOLDER]

Every arm of `arms.py` in every setting of `settings.py`, over several seeds: the main settings, the
secondary ones with the sweeps, what is held out (robustness), and the finalists on a second base
with fresh seeds and items (confirmation). Every run is one file, so the same command goes on where
it was stopped, and parts may run side by side. Writes `study.csv` (one record per arm, setting and
step, and per difference of two arms), `study.json` and, with matplotlib, `study.svg` of whatever is
there; with `--write` also the data of the documentation. With a GPU, a larger judge trained from
scratch on the same world (21 million parameters): `--device cuda --hidden 512 --layers 8 --heads 8
--pretrain-rate 3e-4 --pretrain-steps 4000 --seeds 10`.
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
from inference import inference_rows
from loop import train_arm
from outcome import measure_average, measure_model
from settings import LAYOUTS, PARTS, Job, Setting, jobs
from tables import DOCS, keep_pages, write_tables
from torch import nn
from world import Pool, evaluation_items, inconsistent_items, make_pool

from unswayed.model.items import Item
from unswayed.tiny.backend import WEIGHTS


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="training seeds per arm (5)")
    parser.add_argument(
        "--part", nargs="+", choices=PARTS, default=list(PARTS), help="what is run (all)"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/study"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--base", type=Path, default=WEIGHTS, help="another tiny judge")
    parser.add_argument("--hidden", type=int, help="train a base of this width first")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--pretrain-steps", type=int, default=700)
    parser.add_argument("--pretrain-rate", type=float, default=3e-3)
    parser.add_argument(
        "--write", action="store_true", help="keep the tables in docs/evidence/data"
    )
    given = parser.parse_args()
    if given.write and set(given.part) != set(PARTS):
        parser.error("--write needs all parts. Leave --part out.")
    torch.set_num_threads(1)  # one thread is fastest for a model of this size
    (given.out / "runs").mkdir(parents=True, exist_ok=True)
    base = given.base if given.hidden is None else own_base(given, given.out / "base-model", seed=0)
    device = torch.device(given.device)
    first = Study(base, given.out, device)
    studies = {False: first}
    if "confirmation" in given.part:
        second = own_base(given, given.out / "second-base-model", seed=1)
        studies[True] = Study(second, given.out, device)
    planned = list(jobs(given.seeds, given.part))
    todo = [job for job in planned if not studies[job.setting.second].done(job)]
    print(f"{len(planned)} runs, {len(todo)} to do", flush=True)
    first.base_figures()
    try:
        for number, job in enumerate(todo, start=1):
            began = time.perf_counter()
            end = studies[job.setting.second].run(job)
            print(
                f"[{number}/{len(todo)}] {job.name}: Con {end['Con']:.1f} CA {end['CA']:.1f} "
                f"({time.perf_counter() - began:.1f} s)",
                flush=True,
            )
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    records = write_tables(given.out, seeds=given.seeds)
    print(f"{len(records)} records in {given.out / 'study.csv'}")
    if given.write:
        command = f"python examples/study/run.py --seeds {given.seeds}"
        today = time.strftime("%Y-%m-%d")
        keep_pages(records, DOCS / "evidence", command=command, measured=today)
    return 0


def own_base(given: argparse.Namespace, folder: Path, *, seed: int) -> Path:
    """Train a base model from scratch, once per folder; of the built-in size if none is given."""
    from unswayed.tiny.train import TrainSettings, save, train

    if not (folder / "model.safetensors").exists():
        settings = TrainSettings(
            seed=seed,
            hidden=given.hidden or TrainSettings().hidden,
            layers=given.layers,
            heads=given.heads,
            steps=given.pretrain_steps,
            learning_rate=given.pretrain_rate,
        )
        with torch.device(given.device):
            model = train(settings)
        save(model.to("cpu"), folder)
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
        self._items: dict[tuple[object, ...], tuple[tuple[Item, ...], float]] = {}
        self._untrained: dict[tuple[object, ...], dict[str, dict[str, float]]] = {}

    def path(self, job: Job) -> Path:
        """Return the file of a run's figures."""
        return self.out / "runs" / f"{job.name}.json"

    def done(self, job: Job) -> bool:
        """Return True if this very run is on disk."""
        record = _read(self.path(job))
        return record is not None and record["fingerprint"] == job.fingerprint(self.fingerprint)

    def base_figures(self) -> None:
        """Measure the untrained model in every layout and the inference-time methods, once."""
        path = self.out / "base.json"
        record = _read(path)
        if record is not None and record["fingerprint"] == self.fingerprint:
            return
        figures: dict[str, object] = {"fingerprint": self.fingerprint}
        for task, setting in {setting.task: setting for setting in PARTS["main"]}.items():
            items = evaluation_items(setting)
            figures[task.value] = {
                protocol: measure_model(self.base, items, protocol=protocol) for protocol in LAYOUTS
            }
        figures["methods"] = inference_rows(self.folder)
        _write(path, figures)

    def run(self, job: Job) -> dict[str, float]:
        """Train, measure, write; the figures after the last step."""
        items = evaluation_items(job.setting, job.seed)
        pool = self.pool(job.setting, job.seed)
        steps: dict[str, dict[str, float]] = {}
        protocols: dict[str, dict[str, float]] = {}

        def note(step: int, model: nn.Module) -> None:
            steps[str(step)] = measure_model(model, items)
            if step == job.setting.steps and job.decomposed:
                protocols["coupled"] = steps[str(step)]
                for protocol in LAYOUTS[1:]:
                    protocols[protocol] = measure_model(model, items, protocol=protocol)

        seconds = train_arm(
            self.base,
            pool,
            job,
            at_steps={at: lambda model, at=at: note(at, model) for at in job.measured_at},
        )
        record = {
            "fingerprint": job.fingerprint(self.fingerprint),
            "setting": job.setting.name,
            "arm": job.arm,
            "seed": job.seed,
            "steps": steps,
            "protocols": protocols,
            "untrained": self.untrained(job),
            "seconds": seconds.steps,
            "seconds_before": seconds.before,
            "wrong_gold": pool.wrong_gold,
            "kept": pool.kept,
        }
        _write(self.path(job), record)
        return steps[str(job.setting.steps)]

    def untrained(self, job: Job) -> dict[str, dict[str, float]]:
        """The base on a run's evaluation items: one call, and the mean probability of all orders."""
        setting = job.setting
        topic = job.seed if setting.held_out == "topic" else None
        key = (setting.task, setting.held_out, topic)
        if key not in self._untrained:
            items = evaluation_items(setting, job.seed)
            self._untrained[key] = {
                "base": measure_model(self.base, items),
                "base averaged": measure_average(self.base, items),
            }
        return self._untrained[key]

    def pool(self, setting: Setting, seed: int) -> Pool:
        """The training items of a setting and seed; the arms of one seed share them."""
        key = (setting.task, setting.held_out, seed)
        if key not in self._items:
            self._items[key] = inconsistent_items(self.base, setting, seed, wanted=1600)
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
