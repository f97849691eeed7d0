"""Remedies for a missing extra work wherever the package was installed from."""

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from unswayed.base.errors import MissingExtraError
from unswayed.base.registry import install_command, require


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'pip install "unswayed[figures]"'),
        ('{"url": "file:///a/b.whl", "archive_info": {}}', 'pip install "unswayed[figures]"'),
        (
            '{"url": "file:///a/my%20copy", "dir_info": {"editable": true}}',
            'pip install -e "/a/my copy[figures]"',
        ),
        ('{"url": "file:///a/copy", "dir_info": {}}', 'pip install "/a/copy[figures]"'),
    ],
)
def test_install_command_names_source_of_package(
    origin: str | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str) -> SimpleNamespace:
        return SimpleNamespace(read_text={"direct_url.json": origin}.__getitem__)

    monkeypatch.setattr(importlib.metadata, "distribution", installed)
    assert install_command("figures") == command
    with pytest.raises(MissingExtraError) as refused:
        require("no_such_module", extra="figures", feature="A figure")
    assert str(refused.value).endswith(f"Install it with: {command}")


def test_install_command_works_without_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert install_command("figures") == 'pip install "unswayed[figures]"'
