"""`unswayed heads fit` and `heads show`: what is printed, written and refused."""

import errno
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from cli_commands import Run

from unswayed.cli import main

pytest.importorskip("torch")

FILE = "heads.safetensors"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """What a fit prints, and the file that it writes."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(TextIOWrapper(BytesIO())) as shown:
        patch.chdir(tmp_path_factory.mktemp("heads"))
        assert main(["heads", "fit", "tiny-judge-train", "--out", FILE]) == 0
        shown.seek(0)
        return shown.read(), Path(FILE).read_bytes()


@pytest.fixture
def masked(fitted: tuple[str, bytes], folder: Path) -> str:
    """What the fit printed whose file lies in the folder of the test."""
    Path(FILE).write_bytes(fitted[1])
    return fitted[0]


def test_fit_prints_mask_figures_and_next_command(run: Run, masked: str) -> None:
    lines = masked.splitlines()
    assert lines[0].startswith("tiny/judge: unibias, 40 items, 2 orders, ")
    assert any(line.startswith("layer 0: 4 neurons of 128: 46 (-4), ") for line in lines)
    assert any(line.startswith("imbalance       0.498 -> 0.4") for line in lines)
    assert any(line.startswith("variance ratio  0.747 -> 0.5") for line in lines)
    assert f"unswayed audit DATA --model tiny/judge+heads={FILE}" in masked
    shown = run("heads", "show", FILE)
    assert shown.code == 0
    assert masked.startswith(shown.out)


def test_fit_claims_no_gain(run: Run) -> None:
    ran = run("heads", "fit", "tiny-mcq-train", "--limit", "20", "--out", FILE)
    assert "20 items, 4 orders" in ran.out
    assert "they are not evidence of a gain" in ran.err
    assert "A prior (`unswayed calibrate pride`) did better" in ran.err


def test_masked_judge_is_another_model(run: Run, masked: str) -> None:
    out = ("--methods", "direct", "--limit", "20", "--out", "runs")
    assert run("audit", "tiny-judge", *out).code == 0
    other = run("audit", "tiny-judge", "--model", f"tiny/judge+heads={FILE}", *out)
    assert other.code == 2
    assert "+heads=" in other.err


def test_nothing_found_writes_no_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unswayed.training.unibias.STAGES", ())
    ran = run("heads", "fit", "tiny-judge-train", "--out", FILE)
    assert ran.code == 2
    assert "UniBias found nothing to mask, so no file was written." in ran.err
    assert not Path(FILE).exists()


def test_full_disk_names_the_file(run: Run, masked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = Path(FILE).read_bytes()
    monkeypatch.setattr("unswayed.backends.head_scales.whole_file", full)
    ran = run("heads", "fit", "tiny-judge-train", "--limit", "10", "--out", FILE)
    assert ran.code == 2
    assert f"cannot write {FILE}: No space left on device." in ran.err
    assert Path(FILE).read_bytes() == before


def test_file_that_no_model_can_name_is_refused_before_fit(run: Run) -> None:
    ran = run("heads", "fit", "tiny-judge-train", "--out", "a+b=c")
    assert ran.code == 2
    assert "a+b=c: a model name cannot contain this path." in ran.err


def test_masked_model_is_not_trained(run: Run, masked: str) -> None:
    recipe = ("--recipe", "tiny-judge", "--out", "trained", "--dry-run")
    ran = run("train", "distill", "tiny-judge-train", "--model", f"hf/x+heads={FILE}", *recipe)
    assert ran.code == 2
    assert "Remove +heads" in ran.err
