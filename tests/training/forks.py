"""Python commands in processes of their own that need not import trl and its like again.

A process is forked from one that has imported what takes seconds; nothing of Unswayed is imported
there, nor is torch used. Where it matters what is installed a process begins with nothing.
"""

import multiprocessing
import os
import runpy
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

HEAVY = ["datasets", "peft", "transformers.models.llama.modeling_llama", "trl.trainer.grpo_trainer"]
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(HEAVY)
FRESH = multiprocessing.get_context("spawn")
MOST_S = 300


class Ended(NamedTuple):
    """What is left of a process."""

    code: int | None
    out: str
    err: str


def ended(command, environments, context=FORKED):
    """What became of `python COMMAND` in each of the environments, side by side.

    Args:
        command: A script, or `-m` and a module, and what comes after it.
        environments: Whole ones, of a process each.
        context: `FRESH` where another vLLM is installed than here: trl looks once.
    """
    arguments = [*map(str, command)]
    with TemporaryDirectory() as folder:
        said = [
            tuple(Path(folder, f"{number}.{name}") for name in ("out", "err"))
            for number in range(len(environments))
        ]
        children = [
            context.Process(target=be_python, args=(arguments, environment, files))
            for environment, files in zip(environments, said, strict=True)
        ]
        try:
            for child in children:
                child.start()
            for child in children:
                child.join(MOST_S)
            codes = [child.exitcode for child in children]
        finally:
            for child in children:
                child.kill()
                child.join()
        return [
            Ended(code, *(file.read_text(encoding="utf-8") for file in files))
            for code, files in zip(codes, said, strict=True)
        ]


def be_python(arguments, environment, said):
    """Do in this process what `python ARGUMENTS` does, with stdout and stderr in two files."""
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(said, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    is_module = arguments[0] == "-m"
    first = os.getcwd() if is_module else str(Path(arguments[0]).parent)
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [first, *filter(None, path)]
    sys.modules.pop("sitecustomize", None)
    with suppress(ImportError):
        import sitecustomize  # noqa: F401
    if is_module:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
