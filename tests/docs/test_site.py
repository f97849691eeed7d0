"""The documentation site: its pages, links and Python reference."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import unswayed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", DOCS / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_python_reference_lists_public_names() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"(?m)^::: unswayed\.(\w+)$", page)) == unswayed.__all__


def test_links_out_of_docs_become_repository_urls(site: ModuleType) -> None:
    text = "[a](../../CONTRIBUTING.md#tests) [b](../../design/) [c](../index.md#d) [e](https://f.g) [h](#i)"
    written = site.for_site(text, DOCS / "reference" / "python.md")
    assert re.findall(r"\]\((.*?)\)", written) == [
        f"{site.repository()}/blob/main/CONTRIBUTING.md#tests",
        f"{site.repository()}/tree/main/design",
        "../index.md#d",
        "https://f.g",
        "#i",
    ]
    with pytest.raises(FileNotFoundError):
        site.for_site("[a](../NO_SUCH_FILE.md)", DOCS / "index.md")
