"""`unswayed` for shells, forked from a process that has made a small audit: modules and templates are loaded."""

import functools
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

CLIENT = """#!/bin/sh
exec '{python}' -IS -c '
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{socket}")
    socket.send_fds(server, [b"-"], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(8)))
' "$@"
"""
AUDIT = ("unswayed.cli.audit", "unswayed.report.page", "scipy.special")
TRAINING = (*AUDIT, "peft", "transformers.models.llama.modeling_llama", "trl.trainer.grpo_trainer")


@functools.cache
def folder_of_command(modules: tuple[str, ...]) -> Path:
    """A folder for PATH whose `unswayed` is forked from a process with these modules; that ends with this one."""
    folder = Path(tempfile.mkdtemp())
    place, command = folder / "socket", folder / "unswayed"
    command.write_text(CLIENT.format(python=sys.executable, socket=place), encoding="utf-8")
    command.chmod(0o755)
    begun = [sys.executable, __file__, str(place), *modules]
    server = subprocess.Popen(begun, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return folder


def serve(place: str, modules: list[str]) -> None:
    """Fork for every caller until the process that began this one has ended."""
    del sys.path[0]
    for name in modules:
        importlib.import_module(name)
    rehearse()
    gc.collect()
    gc.freeze()  # else each fork walks, and so copies, all that is loaded
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            caller, _ = server.accept()
            with caller:
                if os.fork() == 0:
                    answer(caller)
                    os._exit(0)
            with suppress(ChildProcessError):  # those that have ended meanwhile
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    shutil.rmtree(Path(place).parent)


def rehearse() -> None:
    """Make an audit that nobody sees: what is loaded on its way is there for every fork."""
    from unswayed.cli import main

    small = ["audit", "--limit", "24", "--methods", "all", "--out"]
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        main([*small, folder])
    warnings.onceregistry.clear()  # type: ignore[attr-defined]  # what was told once is told to each


def answer(caller: socket.socket) -> None:
    """Do what the caller asks for with its files, in a process of its own, and tell it the exit code."""
    files = socket.recv_fds(caller, 1, 3)[1]
    asked = b"".join(iter(lambda: caller.recv(65_536), b""))
    if not (process := os.fork()):
        for number, file in enumerate(files):
            os.dup2(file, number)
        arguments, folder, environment = json.loads(asked)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["unswayed", *arguments]
        runpy.run_module("unswayed", run_name="__main__", alter_sys=True)
        sys.exit()
    caller.sendall(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
