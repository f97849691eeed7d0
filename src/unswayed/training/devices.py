"""Device and precision of a run: a GPU of this machine, an assumed one, or the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from unswayed.base.errors import UsageError
from unswayed.training.recipe_parts import Recipe

Precision = Literal["float32", "bfloat16"]
BYTES: Final[Mapping[Precision, int]] = {"float32": 4, "bfloat16": 2}

ASSUMED_BYTES: Final = 80 * 10**9
"""Memory of a GPU where there is none to ask."""


class Device(NamedTuple):
    """A device of one process."""

    size: int = ASSUMED_BYTES  # its memory in bytes
    text: str = "per GPU of 80 GB (assumed: no GPU here)"  # what it is, to follow "12 GB"
    is_gpu: bool = True  # whether it is a GPU


def device_of(recipe: Recipe) -> Device:
    """Return the device that a run with this recipe is planned for."""
    import torch

    if recipe.run.device == "cpu":
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Device(size, f"of {size / 1e9:.3g} GB of main memory", is_gpu=False)
    if not torch.cuda.is_available():
        return Device()
    size = torch.cuda.get_device_properties(0).total_memory
    return Device(size, f"per GPU of {size / 1e9:.3g} GB")


def on_cpu(recipe: Recipe) -> bool:
    """Return True if a run on this machine computes on the CPU."""
    import torch

    return recipe.run.device == "cpu" or not torch.cuda.is_available()


def computed_in(recipe: Recipe, *, on_gpu: bool) -> Precision:
    """Return the precision in which a run computes."""
    if recipe.run.precision == "auto":
        return "bfloat16" if on_gpu else "float32"
    return recipe.run.precision


def loaded_in(recipe: Recipe, *, on_gpu: bool) -> Precision:
    """Return the precision in which the base's weights are loaded.

    Frozen weights under an adapter lose nothing in bfloat16; weights that are trained stay in
    float32, because an update of 1e-5 of their size is below bfloat16's resolution.
    """
    return "float32" if recipe.lora is None else computed_in(recipe, on_gpu=on_gpu)


def check_device(recipe: Recipe, environment: Mapping[str, str]) -> None:
    """Check that the GPUs of this machine can run the recipe as it was started.

    A launcher sets LOCAL_RANK in the environment.
    """
    import torch

    if on_cpu(recipe):
        return
    gpus = torch.cuda.device_count()
    if gpus > 1 and "LOCAL_RANK" not in environment:
        raise UsageError(
            f"{gpus} GPUs are visible to one process, which trl refuses. Start with accelerate "
            f"launch --num_processes {gpus} -m unswayed train ..., or show it one GPU with "
            "CUDA_VISIBLE_DEVICES=0."
        )
    if recipe.run.precision != "float32" and not torch.cuda.is_bf16_supported():
        raise UsageError(
            f"run.precision is {recipe.run.precision}, and this GPU "
            f"({torch.cuda.get_device_name(0)}) does not compute in bfloat16. "
            'Set run.precision = "float32".'
        )
