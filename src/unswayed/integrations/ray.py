"""Shards as tasks of Ray."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from unswayed.base.errors import RunDirectoryError, UnswayedError
from unswayed.base.registry import require
from unswayed.model.items import Shard

T = TypeVar("T")


def on_ray(
    ask: Callable[[Shard], T], count: int, directory: Path, *, gpus: float | None
) -> Iterator[T]:
    """Yield the outcome of every shard as it ends; each is a task with one core.

    Tasks run on the cluster of `RAY_ADDRESS`, else on this machine; Ray repeats those whose worker died.
    Without `gpus`, a task has one GPU if there are any.

    Raises:
        RunDirectoryError: If a node does not see the run directory.
    """
    require("ray", extra="ray", feature="--engine ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    here, mark = Path.cwd(), directory.absolute() / f".ray-{secrets.token_hex(4)}"

    def task(number: int) -> T:
        os.chdir(here)
        if not mark.exists():
            raise RunDirectoryError(
                f"{mark.parent} is not shared by all nodes. Choose an --out that all nodes see."
            )
        return ask(Shard(number, count))

    directory.mkdir(parents=True, exist_ok=True)
    mark.touch()
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        if gpus is None:
            gpus = min(1, ray.cluster_resources().get("GPU", 0))
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=10)(task).remote
        pending = [remote(number) for number in range(count)]
        while pending:
            (done, *_), pending = ray.wait(pending)
            yield ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, UnswayedError) else error from None
    finally:
        ray.shutdown()
        mark.unlink(missing_ok=True)
