"""Into how many parts the launcher cuts weights, gradients and optimiser states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unswayed.errors import UsageError
from unswayed.training.processes import process_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """How the processes of a run share a model."""

    name: str = "one process"  # what users call it
    processes: int = 1  # of the run
    # weights, gradients, states: parts that each is cut into; 1 where every GPU holds it whole
    weights: int = 1
    gradients: int = 1
    states: int = 1

    @property
    def copies_gradients(self) -> bool:
        """Whether gradients are held a second time, in the buckets that processes exchange."""
        return self.processes > 1 and self.gradients == 1


def sharding_of(environment: Mapping[str, str]) -> Sharding:
    """The sharding that accelerate's launcher announces to the processes it starts.

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
    if version == "1":
        strategy = environment.get("FSDP_SHARDING_STRATEGY", "FULL_SHARD").upper()
        kept = strategy in ("SHARD_GRAD_OP", "2")
        if strategy in ("NO_SHARD", "3"):
            return Sharding(name="FSDP without shards", processes=world)
        if strategy.startswith("HYBRID") or strategy in ("4", "5"):
            local = int(environment.get("LOCAL_WORLD_SIZE", str(world)))
            kept = strategy in ("HYBRID_SHARD_ZERO2", "5")
            return Sharding(
                name="FSDP within each node",
                processes=world,
                weights=1 if kept else local,
                gradients=local,
                states=local,
            )
    return Sharding(
        name=f"FSDP{version}",
        processes=world,
        weights=1 if kept else world,
        gradients=world,
        states=world,
    )


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
