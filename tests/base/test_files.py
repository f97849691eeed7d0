"""A file appears whole or not at all, what a killed writer left behind goes, and devices are not read."""

import contextlib
import multiprocessing
import os
import socket
import threading
from pathlib import Path

import pytest

import needs
from unswayed.base import files
from unswayed.base.files import lock, open_file, read_whole, sweep, whole_file


def _write_and_die(path: str) -> None:
    with whole_file(Path(path)) as file:
        file.write(b"half")
        file.flush()
        os._exit(1)


def _write_and_wait(path: str, begun, end) -> None:  # type: ignore[no-untyped-def]
    with whole_file(Path(path)) as file:
        file.write(b"first")
        begun.set()
        end.wait(30)


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"old")
    with contextlib.suppress(ZeroDivisionError), whole_file(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.json"]


def test_what_a_killed_writer_left_is_swept_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    context = multiprocessing.get_context("spawn")
    dying = context.Process(target=_write_and_die, args=(str(path),))
    dying.start()
    dying.join()
    assert len(list(tmp_path.iterdir())) == 1
    with whole_file(path) as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_writer_at_work_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    context = multiprocessing.get_context("spawn")
    begun, end = context.Event(), context.Event()
    other = context.Process(target=_write_and_wait, args=(str(path), begun, end))
    other.start()
    assert begun.wait(30)
    with whole_file(path) as file:
        file.write(b"second")
    assert path.read_bytes() == b"second"
    end.set()
    other.join()
    assert other.exitcode == 0
    assert path.read_bytes() == b"first"


def test_a_device_is_written_and_not_replaced() -> None:
    with whole_file(Path(os.devnull)) as file:
        file.write(b"x")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("holds", [False, True])
def test_a_lock_file_removed_as_stale_is_made_again(
    holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    tried: list[int] = []

    def contended(file) -> None:  # type: ignore[no-untyped-def]
        tried.append(file.fileno())
        if len(tried) == 1 and holds:
            raise BlockingIOError
        if len(tried) == 1:
            monkeypatch.setattr(files, "lock", lock)
            sweep(path)  # of the other process
            monkeypatch.setattr(files, "lock", contended)
        lock(file)

    monkeypatch.setattr(files, "lock", contended)
    with whole_file(path) as file:
        file.write(b"new")
    assert len(tried) == 2
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x.json"]


def _write_often(path: str) -> None:
    for _ in range(300):
        with whole_file(Path(path)) as file:
            file.write(b"x")


def test_writers_of_one_file_do_not_hinder_each_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(str(tmp_path / "x"),)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["x"]


# --- what is opened for reading ----------------------------------------------------------------


@needs.posix
@pytest.mark.parametrize("wait_s", [0.0, 0.2])
def test_pipe_is_read_whole_with_early_or_late_writer(
    wait_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIPE_MS", 50 if wait_s else 5000)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    opened = threading.Event()

    def write() -> None:
        with path.open("wb") as pipe:
            if wait_s:
                opened.wait(30)
            pipe.write(b"first\n" * 50_000)  # more than a pipe holds

    writer = threading.Thread(target=write)
    writer.start()
    with open_file(path) as pipe:
        opened.set()
        assert pipe.read() == b"first\n" * 50_000
    writer.join()


@needs.posix
def test_pipe_without_writer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIPE_MS", 10)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no process writes to this pipe"):
        open_file(tmp_path / "pipe")


@needs.linux
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random", "/dev/full", "/dev/null"])
def test_device_is_refused(device: str) -> None:
    with pytest.raises(OSError, match="it is a device"):
        open_file(device)


def test_terminal_is_read() -> None:
    import pty

    outer, inner = pty.openpty()
    os.write(outer, b"typed\n")
    with open_file(os.ttyname(inner)) as terminal:
        assert terminal.readline() == b"typed\n"
    os.close(outer)
    os.close(inner)


def test_folder_and_socket_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as served:
        served.bind("socket")
        with pytest.raises(OSError, match="No such device"):
            open_file("socket")
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)


def test_small_file_has_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "template"
    with path.open("wb") as file:
        file.truncate(files.LARGEST + 1)  # takes no room on the disk
    with pytest.raises(OSError, match="larger than 64 MB"):
        read_whole(path)
    monkeypatch.setattr(files, "LARGEST", 5)
    path.write_bytes(b"12345")
    assert read_whole(path) == b"12345"
