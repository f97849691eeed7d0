"""Where files come from: the hub's cache, GitHub, a folder; and what is said where they do not come."""

from __future__ import annotations

import contextlib
import http.server
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors
from published_rows import ROWS, write

import unswayed as us
from unswayed.base.errors import ItemError, UnknownNameError, UsageError
from unswayed.data.benchmarks import BENCHMARKS, is_benchmark
from unswayed.data.benchmarks import copies as files

COMMIT = "0123456789abcdef0123456789abcdef01234567"
APART = files._apart
"""What a test that has a server puts back."""


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloads without a process of their own, so that a test can stand in for a server."""
    if "address" not in request.fixturenames:
        monkeypatch.setattr(files, "_apart", files._fault)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Sets what the hub answers, an error or a folder, and what it has cached; returns the requests."""

    def answers(answer: object, cached: object = None) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def download(repository: str, *, local_files_only: bool = False, **options: Any) -> str:
            if not local_files_only:
                asked.append({**options, "repository": repository})
            given = (answer if asked else cached) if local_files_only else answer
            if given is None or (local_files_only and isinstance(given, Exception)):
                raise errors.LocalEntryNotFoundError("not cached")
            if isinstance(given, Exception):
                raise given
            return str(given)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
        return asked

    return answers


Hub = Callable[..., list[dict[str, Any]]]


def refused(kind: type[errors.HfHubHTTPError]) -> Exception:
    return kind("no", response=SimpleNamespace(headers={}, request=None))  # type: ignore[arg-type]


def test_pinned_files_are_requested_and_their_commit_kept(tmp_path: Path, hub: Hub) -> None:
    asked = hub(write(tmp_path / "snapshots" / COMMIT, ROWS["mmlu"]))
    items = us.load_data("mmlu")
    revision = BENCHMARKS.load("mmlu").revision
    request = {"repository": "cais/mmlu", "repo_type": "dataset", "revision": revision}
    assert asked == [{**request, "allow_patterns": ["all/test-*.parquet"]}]
    assert (items.origin["commit"], items.origin["revision"]) == (COMMIT, revision)


def test_a_pinned_cached_file_needs_no_hub(tmp_path: Path, hub: Hub) -> None:
    folder = write(tmp_path / "snapshots" / COMMIT, ROWS["mmlu"])
    hub(ConnectionError("no route"), cached=folder)
    assert len(us.load_data("mmlu")) == 1
    with pytest.raises(UsageError, match="not cached"):
        us.load_data("mmlu:dev")  # another part of the same snapshot
    with pytest.raises(UsageError, match="not cached"):
        us.load_data("tiny-mmlu")  # not pinned: the newest is asked for


MMLU = "cais/mmlu at revision c30699e"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(errors.RepositoryNotFoundError), rf"hub has no {MMLU}.*all/test-\*\.parquet"),
        (refused(errors.RevisionNotFoundError), rf"hub has no {MMLU}.*all/test-\*\.parquet"),
        (errors.LocalEntryNotFoundError("no route"), rf"{MMLU}.* not cached.*--data-dir FOLDER"),
        (ConnectionError("no route"), rf"{MMLU}.* not cached.*--data-dir FOLDER"),
        (OSError("no route"), rf"{MMLU}.* not cached.*--data-dir FOLDER"),
        (
            OSError("403: your token Bearer hf_abcdefgh12345678 is bad"),
            r"token \[key hidden\] is bad",
        ),
        (None, r"cannot be fetched .*\(LocalEntryNotFoundError"),
        ("nowhere", r"has no file all/test-\*\.parquet: .* moved or changed"),
    ],
)
def test_hub_that_gives_no_files_says_which_and_what_to_do(
    answer: object, said: str, hub: Hub
) -> None:
    hub(answer)
    with pytest.raises(UsageError, match=said):
        us.load_data("mmlu")


def test_a_gated_set_says_where_to_ask(hub: Hub) -> None:
    hub(refused(errors.GatedRepoError))
    with pytest.raises(UsageError) as told:
        us.load_data("gpqa")
    for part in ("https://huggingface.co/datasets/Idavidrein/gpqa", "HF_TOKEN", "--data-dir"):
        assert part in str(told.value)


def test_set_without_files_is_reported(monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    hub(None)
    monkeypatch.setattr(files, "_apart", lambda fetch: "")
    with pytest.raises(UsageError, match=r"cannot be fetched .*\(it has none of the files\)"):
        us.load_data("mmlu")


def test_offline_mode_of_hub_gives_same_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match=f"mmlu: {MMLU}.* is not cached and cannot be fetched"):
        us.load_data("mmlu")


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], list[str]]:
    """Publishes a benchmark for some requests, after which nothing is reached; returns the addresses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def publish(name: str, answered: int) -> list[str]:
        addresses: list[str] = []
        source = write(tmp_path / "published", ROWS[name])

        def urlopen(address: str, timeout: float) -> Any:
            addresses.append(address)
            if len(addresses) > answered:
                raise ConnectionError("no route")
            return (source / address.partition(f"{BENCHMARKS.load(name).revision}/")[2]).open("rb")

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return addresses

    return publish


GitHub = Callable[[str, int], list[str]]


def test_files_of_github_are_fetched_once(github: GitHub) -> None:
    addresses = github("auto-j", 1)
    first, second = us.load_data("auto-j"), us.load_data("auto-j")
    assert first.items == second.items
    assert addresses == [
        "https://raw.githubusercontent.com/GAIR-NLP/auto-j/"
        "2ae17a3965d933232e9cd50302aa0f176249c83b/data/test/testdata_pairwise.jsonl"
    ]
    assert first.origin["commit"] == BENCHMARKS.load("auto-j").revision


def test_a_moving_revision_is_refetched_or_read_from_the_cache(github: GitHub) -> None:
    addresses = github("vicuna-bench", 2)
    loaded = [us.load_data("vicuna-bench") for _ in range(3)]
    assert len(addresses) == 3
    assert loaded[0].items == loaded[2].items
    assert "commit" not in loaded[0].origin


def test_github_out_of_reach_says_what_to_do(github: GitHub) -> None:
    github("hanna", 0)
    said = r"hanna: dig-team/.* cannot be fetched .*--data-dir FOLDER"
    with pytest.raises(UsageError, match=said):
        us.load_data("hanna")


def test_a_copy_may_lie_flat_in_another_format_and_compressed(tmp_path: Path) -> None:
    import gzip
    import json

    (rows,) = ROWS["mmlu"].values()
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    (tmp_path / "test-0.jsonl.gz").write_bytes(gzip.compress(text))
    assert us.load_data("mmlu", data_dir=tmp_path)[0].gold == 3


def test_missing_folder_and_foreign_data_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        us.load_data("mmlu", data_dir=tmp_path / "nowhere")
    with pytest.raises(
        UsageError, match="--data-dir works only with a benchmark, and tiny-mcq is not one"
    ):
        us.load_data("tiny-mcq", data_dir=tmp_path)


def test_an_unknown_part_or_name_is_told_what_there_is(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS["judgebench"])
    with pytest.raises(
        UsageError, match=r"no part, group or criterion 'Codign'. Did you mean 'Coding'"
    ):
        us.load_data("judgebench:Codign", data_dir=folder)
    with pytest.raises(UsageError, match="Did you mean 'mmlu'"):
        us.load_data("mmlux")
    assert not is_benchmark("mmlu.jsonl")
    assert not is_benchmark("./mmlu")
    assert not is_benchmark(None)
    with pytest.raises(UnknownNameError):
        BENCHMARKS.load("mmlux")


def test_a_sample_depends_on_seed_and_id_alone() -> None:
    items = us.load_data("tiny-mcq")

    def drawn(sample: int, seed: int, data: object = "tiny-mcq") -> list[str]:
        return [item.id for item in us.load_data(data, sample=sample, seed=seed)]  # type: ignore[arg-type]

    names = drawn(50, seed=3)
    assert len(names) == 50
    assert names == [item.id for item in items if item.id in set(names)]
    assert set(drawn(20, seed=3)) <= set(names)
    assert set(drawn(50, seed=4)) != set(names)
    assert set(drawn(50, 3, list(reversed(items.items)))) == set(names)
    assert len(us.load_data("tiny-mcq", sample=50, limit=7)) == 7
    with pytest.raises(UsageError, match="sample 0"):
        us.load_data("tiny-mcq", sample=0)


def test_listing_benchmarks_loads_nothing_of_the_hub() -> None:
    code = (
        "import sys\nimport unswayed\nfrom unswayed.cli import main\n"
        "assert main(['list', 'benchmarks']) == 0\nunswayed.load_data('tiny-mcq')\n"
        "print('loaded', *sorted({'huggingface_hub', 'pyarrow', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_a_copy_of_one_part_says_how_to_take_it(tmp_path: Path) -> None:
    file = "Dataset/LLMBar/Natural/dataset.json"
    write(tmp_path, {file: ROWS["llmbar"][file]})
    said = r"has no file Dataset/LLMBar/Adversarial/Neighbor/dataset\.json.*\.jsonl.*llmbar:Natural"
    with pytest.raises(UsageError, match=said):
        us.load_data("llmbar", data_dir=tmp_path)
    assert len(us.load_data("llmbar:Natural", data_dir=tmp_path)) == 1


def test_one_bare_file_is_not_every_part(tmp_path: Path) -> None:
    rows = [{"input": f"Do {k}.", "output_1": "a", "output_2": "b", "label": 1} for k in range(2)]
    write(tmp_path, {"dataset.json": rows})
    with pytest.raises(UsageError, match=r"one file, dataset\.json, for .*llmbar:Natural"):
        us.load_data("llmbar", data_dir=tmp_path)
    assert len(us.load_data("llmbar:Natural", data_dir=tmp_path)) == 2


def test_mmlu_folder_of_authors_is_read_without_header(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "test"
    folder.mkdir(parents=True)
    (folder / "anatomy_test.csv").write_text(
        'Which; of; these?,"a, b",c,d,None,D\n"It said ""no"".\nWhy?",1,2,3,4,A\n'
    )
    (folder / "virology_test.csv").write_text("Q,w,x,All of the above,z,B\n")
    for place in (tmp_path, tmp_path / "data", folder):
        items = us.load_data("mmlu", data_dir=place)
        assert [(item.id, item.group, item.gold) for item in items] == [
            ("mmlu-0", "anatomy", 3),
            ("mmlu-1", "anatomy", 0),
            ("mmlu-2", "virology", 1),
        ]
        assert items[0].prompt == "Which; of; these?"
        assert items[0].candidates == ("a, b", "c", "d", "None")
        assert items[1].prompt == 'It said "no".\nWhy?'
        assert [item.permutable for item in items] == [True, True, False]
    assert len(us.load_data("mmlu:virology", data_dir=tmp_path)) == 1
    (folder / "virology_test.csv").write_text("Q,w,x,y,z,B\nQ,w,x,y,B\n")
    with pytest.raises(ItemError, match=r"virology_test\.csv, row 3: row: 5 cells under 6 columns"):
        us.load_data("mmlu", data_dir=tmp_path)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_copy_is_found_below_root_of_repository(name: str, tmp_path: Path) -> None:
    write(tmp_path / "copy" / "own", ROWS[name])
    found = us.load_data(name, data_dir=tmp_path)
    assert found.items == us.load_data(name, data_dir=tmp_path / "copy" / "own").items


def test_copy_in_two_folders_is_refused(tmp_path: Path) -> None:
    for folder in ("new", "old"):
        write(tmp_path / folder, ROWS["mmlu"])
    said = r"all/test-\*\.parquet is in .*new and in .*old\. Give one of these"
    with pytest.raises(UsageError, match=said):
        us.load_data("mmlu", data_dir=tmp_path)


def test_bare_name_in_a_folder_below_is_another_file(tmp_path: Path) -> None:
    rows = [{"input": "Do.", "output_1": "a", "output_2": "b", "label": 1}]
    write(tmp_path, {"Natural/dataset.json": rows})
    with pytest.raises(UsageError, match="has no file Dataset/LLMBar/Adversarial/Neighbor"):
        us.load_data("llmbar:Adversarial/Neighbor", data_dir=tmp_path)


# --- downloads in a process of their own -------------------------------------------------------


def test_files_are_fetched_in_separate_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_apart", APART)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    revision = BENCHMARKS.load("auto-j").revision
    write(tmp_path / "GAIR-NLP" / "auto-j" / revision, ROWS["auto-j"])
    serve = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        monkeypatch.setattr(files, "RAW", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert len(us.load_data("auto-j"))
        with pytest.raises(
            UsageError, match=r"has no file .* \(HTTPError: HTTP Error 404.*moved or"
        ):
            us.load_data("hanna")
        server.shutdown()
        thread.join()
    assert len(us.load_data("auto-j"))  # it is kept


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that answers every request with bytes that never end, some at a time."""
    beginning, part, pause_s = request.param
    ended = threading.Event()

    class Endless(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            with contextlib.suppress(OSError):
                self.wfile.write(beginning)
                while not ended.wait(pause_s):
                    self.wfile.write(part)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        ended.set()
        server.shutdown()
        thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nX-Repo-Commit: 0\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("name", "address"),
    [("auto-j", (HEAD + b"\r\n", b"x", 0.1)), ("arc-challenge", (HEAD, b"X", 0.1))],
    indirect=["address"],
    ids=["github, body", "hub, head"],
)
def test_slow_server_is_given_up(
    name: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_S", 1.5)
    monkeypatch.setattr(files, "RAW", address)
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        UsageError, match=rf"{name}: .* \(the download takes longer than .*--data-dir FOLDER"
    ):
        us.load_data(name)
    assert not [file for file in tmp_path.rglob("*.jsonl") if file.is_file()]


@pytest.mark.parametrize(
    "address", [pytest.param((HEAD + b"\r\n", b"x" * 65536, 0.0), id="endless")], indirect=True
)
def test_endless_file_is_given_up(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST", 500_000)
    monkeypatch.setattr(files, "RAW", address)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"auto-j: .* cannot be fetched .*\(a file is larger than"):
        us.load_data("auto-j")
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_hub_file_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 1000)
    written = tmp_path / "file"
    assert APART(partial(written.write_bytes, b"x" * 1000)) == ""
    assert "larger than" in APART(partial(written.write_bytes, b"x" * 1001))
    assert written.stat().st_size == 1000
