"""Templates are compiled once; what is kept of them is used only for what it was made from."""

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from unswayed.report.template_code import KeptCode

TEXT = "{% if True %}\n{{ name }} & co\n{% endif %}"


class Counting(Environment):
    """An environment that counts what it compiles."""

    compiled = 0

    def _generate(self, *arguments: object, **options: object) -> str:
        self.compiled += 1
        return super()._generate(*arguments, **options)  # type: ignore[arg-type]


def said(folder: Path, text: str = TEXT, **syntax: bool) -> tuple[str, int]:
    """What a new process would render, and how many templates it would compile for it."""
    templates = Counting(
        loader=DictLoader({"page": text}), bytecode_cache=KeptCode(folder / "words.py"), **syntax
    )
    return templates.get_template("page").render(name="<a>"), templates.compiled


@pytest.fixture(autouse=True)
def _keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def test_a_template_is_compiled_once(tmp_path: Path) -> None:
    assert said(tmp_path) == ("\n<a> & co\n", 1)
    assert said(tmp_path) == ("\n<a> & co\n", 0)
    assert [file.parent for file in tmp_path.rglob("*.template")] == [tmp_path / "__pycache__"]


def test_another_text_and_another_syntax_are_compiled_anew(tmp_path: Path) -> None:
    said(tmp_path)
    assert said(tmp_path, "{{ name }}") == ("<a>", 1)
    assert said(tmp_path, "{{ name }}", autoescape=True) == ("&lt;a&gt;", 1)
    assert said(tmp_path, autoescape=True, trim_blocks=True) == ("&lt;a&gt; & co\n", 1)


def test_code_that_was_changed_is_not_run(tmp_path: Path) -> None:
    said(tmp_path)
    (kept,) = tmp_path.rglob("*.template")
    for damaged in (b"", kept.read_bytes()[:-1], kept.read_bytes()[:-1] + b"?"):
        kept.write_bytes(damaged)
        assert said(tmp_path) == ("\n<a> & co\n", 1)
        assert said(tmp_path) == ("\n<a> & co\n", 0)


def test_nothing_is_kept_where_python_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert said(tmp_path) == said(tmp_path) == ("\n<a> & co\n", 1)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").write_text("a file")
    assert said(tmp_path) == said(tmp_path) == ("\n<a> & co\n", 1)
