"""Several processes of one run: joined before anything is written, parted when all is done.

A launcher (torchrun, accelerate) starts them and says in WORLD_SIZE how many there are. What touches
the run's folder is done by the first process, and all of them get its result or its error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.calls.interrupts import SIGNALS, catch_interrupt
from unswayed.training.devices import on_cpu
from unswayed.training.recipe_parts import Recipe

T = TypeVar("T")

TIMEOUT: Final = timedelta(minutes=30)
"""transformers' own, for whoever waits for a process that is at work."""

PATIENCE: Final = timedelta(days=7)
"""For work of the first process that grows with the data."""


@contextmanager
def joined(recipe: Recipe) -> Iterator[None]:
    """Join the processes of a launcher; part again when all of them have come to the end.

    After an error nothing is waited for: the others may be waiting for this process.
    """
    if process_count() == 1:
        yield
        return
    import torch.distributed as dist
    from accelerate import PartialState

    joins = not dist.is_initialized()
    if joins:
        PartialState(cpu=on_cpu(recipe), timeout=TIMEOUT)
    yield
    if joins:
        dist.barrier()
        dist.destroy_process_group()
        PartialState._reset_state()


def process_count(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of processes of this run, as its launcher announces them."""
    return int(environment.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Return True if this process is the first of the run, as its launcher numbers it."""
    return os.environ.get("RANK", "0") == "0"


def everyone(value: T) -> list[T]:
    """Return the value of each process, in their order. All have to take part."""
    if not _several():
        return [value]
    import torch.distributed as dist

    values: list[T] = [value] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def on_main(action: Callable[[], T], *, patient: bool = False) -> T:
    """Return the result of an action that only the first process runs for all, `patient` however long it takes.

    Its error is raised in the others as a `RunDirectoryError` with the same message; a signal that
    reaches another process while it waits patiently is a `KeyboardInterrupt` there.
    """
    if not _several():
        return action()
    import torch.distributed as dist

    group = dist.new_group(timeout=PATIENCE, backend="gloo") if patient else None
    outcome: list[Any] = [None, None]
    failure: Exception | None = None
    if dist.get_rank() == 0:
        try:
            outcome[0] = action()
        except Exception as error:
            failure, outcome[1] = error, str(error)
    waits = patient and dist.get_rank() != 0
    # the first one heard it too
    with catch_interrupt(signals=SIGNALS if waits else ()) as interrupt:
        dist.broadcast_object_list(outcome, src=0, group=group)
    if group is not None:
        dist.destroy_process_group(group)
    if interrupt.is_set():
        raise KeyboardInterrupt
    if failure is not None:
        raise failure
    if outcome[1] is not None:
        raise RunDirectoryError(outcome[1])
    value: T = outcome[0]
    return value


def any_process(asked: bool) -> bool:
    """Return True if any process was asked; every process has to ask this at the same place."""
    if not _several():
        return asked
    import torch
    import torch.distributed as dist

    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    answer = torch.tensor([int(asked)], device=device)
    dist.all_reduce(answer, op=dist.ReduceOp.MAX)
    return bool(answer.item())


def _several() -> bool:
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Sharing of a model among the processes of a run."""

    name: str = "one process"  # what users call it
    processes: int = 1  # of the run
    # weights, gradients, states: parts that each is cut into; 1 where every GPU holds it whole
    weights: int = 1
    gradients: int = 1
    states: int = 1

    @property
    def copies_gradients(self) -> bool:
        """True if gradients are held a second time, in the buckets that processes exchange."""
        return self.processes > 1 and self.gradients == 1


def sharding_of(environment: Mapping[str, str]) -> Sharding:
    """Return the sharding that accelerate's launcher announces to the processes it starts.

    Source: accelerate 1.15, `utils/launch.py` and `utils/dataclasses.py`.
    """
    world = process_count(environment)
    if _is_on(environment, "ACCELERATE_USE_FSDP"):
        return _fsdp(environment, world)
    if _is_on(environment, "ACCELERATE_USE_DEEPSPEED"):
        stage = _zero_stage(environment)
        weights, gradients, states = (world if stage >= least else 1 for least in (3, 2, 1))
        return Sharding(
            name=f"ZeRO-{stage}",
            processes=world,
            weights=weights,
            gradients=gradients,
            states=states,
        )
    return Sharding(name="data parallel" if world > 1 else "one process", processes=world)


def _fsdp(environment: Mapping[str, str], world: int) -> Sharding:
    """FSDP cuts gradients and states always, and weights too unless they stay after the forward."""
    version = environment.get("FSDP_VERSION", "1")
    kept = environment.get("FSDP_RESHARD_AFTER_FORWARD", "true").lower() == "false"
    name, parts = f"FSDP{version}", world
    if version == "1":
        strategy = environment.get("FSDP_SHARDING_STRATEGY", "FULL_SHARD").upper()
        kept = strategy in ("SHARD_GRAD_OP", "2")
        if strategy in ("NO_SHARD", "3"):
            return Sharding(name="FSDP without shards", processes=world)
        if strategy.startswith("HYBRID") or strategy in ("4", "5"):
            name, parts = "FSDP within each node", int(environment.get("LOCAL_WORLD_SIZE", world))
            kept = strategy in ("HYBRID_SHARD_ZERO2", "5")
    weights = 1 if kept else parts
    return Sharding(name=name, processes=world, weights=weights, gradients=parts, states=parts)


def _zero_stage(environment: Mapping[str, str]) -> int:
    file = environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "none")
    if file.lower() == "none":
        return int(environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2"))
    try:
        settings = json.loads(Path(file).read_text(encoding="utf-8"))
        return int(settings["zero_optimization"]["stage"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"DeepSpeed's configuration {file} states no zero_optimization.stage "
            f"({type(error).__name__}). Name one, or launch with --zero_stage."
        ) from None


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "false").lower() in ("true", "1", "yes", "on")
