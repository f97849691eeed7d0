"""What the processes of one run tell each other; in a run of one process nothing is sent."""

from __future__ import annotations

import os
from typing import TypeVar

__all__ = ["everyone", "from_main", "is_main_process"]

Value = TypeVar("Value")


def everyone(value: Value) -> list[Value]:
    """The value of each process, in their order. All have to take part."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return [value]
    values: list[Value] = [value] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def from_main(value: Value) -> Value:
    """The value of the main process. All have to take part."""
    return everyone(value)[0]


def is_main_process() -> bool:
    """Whether this process is the one that talks, as its launcher (accelerate, torchrun) numbers it."""
    return os.environ.get("RANK", "0") == "0"
