"""Python commands in processes of their own that need not import trl and its like again.

A process is forked from one that has imported what takes seconds; torch is not used there.
"""

import gc
import multiprocessing
import os
import runpy
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

HEAVY = [
    *("datasets", "peft", "transformers.models.llama.modeling_llama", "trl.trainer.grpo_trainer"),
    *("unswayed.training.trl_engine", "unswayed.training.one_token", "unswayed.training.run"),
]
"""Nothing of the command, which reads entry points when it is imported."""
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(HEAVY)
MOST_S = 300


class Ended(NamedTuple):
    """What is left of a process."""

    code: int | None
    out: str
    err: str


class Child:
    """A process that does what `python COMMAND` does, used as `subprocess.Popen` is.

    Args:
        command: A script, or `-m` and a module, and what comes after it.
        environment: All variables of the process.
    """

    def __init__(self, command, environment):
        self.folder = TemporaryDirectory()
        self.files = [Path(self.folder.name, name) for name in ("out", "err")]
        arguments = [*map(str, command)], environment, self.files
        self.process = FORKED.Process(target=be_python, args=arguments)
        self.process.start()

    def poll(self):
        return self.process.exitcode

    returncode = property(poll)

    def send_signal(self, number):
        os.kill(self.process.pid, number)

    def communicate(self, timeout=MOST_S):
        """Wait for the end and return standard output and error."""
        self.process.join(timeout)
        assert self.returncode is not None, f"still at work after {timeout} s"
        return tuple(file.read_text(encoding="utf-8") for file in self.files)

    def kill(self):
        self.process.kill()
        self.process.join()
        self.folder.cleanup()


@contextmanager
def children_of(command, environments):
    """`python COMMAND` in each of the environments, side by side; killed at the end."""
    children = []
    try:
        children.extend(Child(command, environment) for environment in environments)
        yield children
    finally:
        for child in children:
            child.kill()


def ended(command, environments):
    """What became of `python COMMAND` in each of the environments."""
    with children_of(command, environments) as children:
        said = [child.communicate() for child in children]
        return [Ended(child.returncode, *it) for child, it in zip(children, said, strict=True)]


def be_python(arguments, environment, said):
    """Do in this process what `python ARGUMENTS` does, with stdout and stderr in two files."""
    gc.freeze()  # else the first collection copies what the fork shares
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
