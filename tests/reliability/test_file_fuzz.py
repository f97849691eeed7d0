"""Random files are read or refused with a reason: the minute-form of the harness."""

from pathlib import Path

import pytest

from reliability import file_fuzz


def test_no_reader_crashes_on_a_random_file() -> None:
    outcomes, crashes = file_fuzz.fuzz(4000, seed=1)
    assert not crashes
    for reader in ("item", "decisions", "recipe", "fitted"):
        assert outcomes[reader, "read"]
        assert outcomes[reader, "refused"]


def test_the_harness_notices_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(line: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(file_fuzz, "decode_item", crash)
    outcomes, crashes = file_fuzz.fuzz(300)
    assert outcomes["item", "crashed"]
    assert all(story.startswith("item: ZeroDivisionError") for story in crashes)
