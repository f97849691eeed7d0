"""The documentation site: its pages, links and Python reference."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import unswayed
from scripts import load_script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return load_script("docs/site.py")


def test_python_reference_lists_public_names() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"(?m)^::: unswayed\.(\w+)$", page)) == unswayed.__all__


def test_links_out_of_docs_become_repository_urls(site: ModuleType) -> None:
    text = "[a](../../CONTRIBUTING.md#tests) [b](../../design/) [c](../index.md#d) [e](https://f.g) [h](#i)"
    written = site.with_urls(text, DOCS / "reference" / "python.md", inside=DOCS)
    assert re.findall(r"\]\((.*?)\)", written) == [
        f"{site.repository()}/blob/main/CONTRIBUTING.md#tests",
        f"{site.repository()}/tree/main/design",
        "../index.md#d",
        "https://f.g",
        "#i",
    ]
    picture = site.with_urls("![a](docs/before-after.svg)", ROOT / "README.md")
    assert picture == f"![a]({site.repository()}/raw/main/docs/before-after.svg)"
    with pytest.raises(FileNotFoundError):
        site.with_urls("[a](../NO_SUCH_FILE.md)", DOCS / "index.md")


def test_code_in_tables_shows_bars_without_backslash(site: ModuleType) -> None:
    row = r"| `<a\|b>`, `c` | d\|e |"
    assert site.with_bars(row) == r"| <code>&lt;a&#124;b&gt;</code>, `c` | d\|e |"
    assert site.with_bars(r"`a\|b`") == r"`a\|b`"  # no table


def test_navigation_has_every_page_once(site: ModuleType) -> None:
    assert tomllib.loads(f"nav = {site.navigation()}")
    pages = re.findall(r'"([^"]+\.md)"', site.navigation())
    assert pages[:2] == ["index.md", "quickstart.md"]
    assert sorted(pages) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_citation_and_templates_match_project(site: ModuleType) -> None:
    files = [ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.yml")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert f"\nversion: {unswayed.__version__}\n" in text
    assert re.findall(r"https://[^/\s]+/[^/\s]+/[^/\s]+", text) == [site.repository()] * 2


def test_wheel_metadata_has_no_relative_link(tmp_path: Path) -> None:
    command = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", command, tmp_path], cwd=ROOT, check=True, capture_output=True
    )
    with zipfile.ZipFile(tmp_path / built.stdout.decode().split()[-1]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        head, _, description = wheel.read(name).decode().partition("\n\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert description.count("](") == readme.count("](") > 10
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", description) == []
    assert re.findall(r"(?:src|href)=\"(?!https://)[^\"]*", description) == []
    assert "\nProject-URL: Source, https://" in head
