"""The shipped configurations of `accelerate launch`, one YAML file each in `launch/`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from unswayed.base.errors import UnknownNameError
from unswayed.base.registry import did_you_mean

FOLDER: Final = Path(__file__).with_name("launch")


def launch_names() -> tuple[str, ...]:
    """Their names: `ddp`, `fsdp2`, ..."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def launch_file(name: str) -> Path:
    """Return the path of a file for `accelerate launch --config_file`; `UnknownNameError` if there is none."""
    if name not in launch_names():
        raise UnknownNameError(
            f"unknown launch file {name!r}. {did_you_mean(name, launch_names())}"
        )
    return FOLDER / f"{name}.yaml"


def launch_title(name: str) -> str:
    """Return the purpose of a file: its first line."""
    first = launch_file(name).read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ")
