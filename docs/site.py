"""Build the documentation site into build/site/html: python docs/site.py

Needs the extra `docs`. The pages are those of this folder; a link that leaves the folder leads to the
repository on the site. The build fails if a link or an anchor does not exist, or if a docstring does not
match its signature.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "build" / "site"
FIRST = (
    "index", "quickstart", "start-from-what-you-have", "your-data", "your-judge", "report", "correct", "ship", "scale", "ci",
    "lists-and-scales", "train", "train-on-gpus", "benchmarks",
)  # fmt: skip
FOLDERS = ("methods", "reference", "evidence")
LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\]\()(?![a-z]+:|#)(?P<target>[^)\s#]+)")


def repository() -> str:
    """URL of the repository, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    url: str = project["urls"]["Source"]
    return url


def with_urls(text: str, page: Path, *, inside: Path | None = None) -> str:
    """Return a page with URLs in place of relative links, except to files `inside` a folder.

    Raises:
        FileNotFoundError: If such a link leads nowhere.
    """

    def absolute(link: re.Match[str]) -> str:
        target = (page.parent / link["target"]).resolve()
        if inside is not None and target.is_relative_to(inside):
            return link[0]
        target.stat()
        kind = "raw" if link["image"] else "tree" if target.is_dir() else "blob"
        path = target.relative_to(ROOT).as_posix()
        return f"{link['image']}{link['text']}{repository()}/{kind}/main/{path}"

    return LINK.sub(absolute, text)


def with_bars(text: str) -> str:
    """Return a page with bars as entities in the code of tables: the site would show their backslash."""

    def code(span: re.Match[str]) -> str:
        shown = html.escape(span[1].replace("\\|", "|"), quote=False).replace("|", "&#124;")
        return f"<code>{shown}</code>"

    return re.sub(r"(?m)^\|.*", lambda row: re.sub(r"`([^`]*\\\|[^`]*)`", code, row[0]), text)


def navigation() -> str:
    """Return the navigation in TOML: pages in the order of a reader's tasks, then one section per folder."""
    places = {f"{name}.md": place for place, name in enumerate(FIRST)}
    pages = sorted(
        DOCS.glob("*.md"), key=lambda page: (places.get(page.name, len(FIRST)), page.name)
    )
    parts = [json.dumps(page.name) for page in pages]
    for folder in FOLDERS:
        pages = sorted(
            (DOCS / folder).glob("*.md"), key=lambda page: (page.stem != "index", page.stem)
        )
        names = json.dumps([page.relative_to(DOCS).as_posix() for page in pages])
        parts.append(f'{{ "{folder.capitalize()}" = {names} }}')
    return f"[{', '.join(parts)}]"


def main() -> int:
    """Copy the pages with links for the site, and build it."""
    shutil.rmtree(SITE, ignore_errors=True)
    for page in DOCS.rglob("*"):
        copy = SITE / page.relative_to(ROOT)
        if page.suffix in {".md", ".svg"}:
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = with_bars(with_urls(page.read_text(encoding="utf-8"), page, inside=DOCS))
            copy.write_text(text, encoding="utf-8")
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    own = f'[project]\nrepo_url = "{repository()}"\nnav = {navigation()}\n'
    settings = settings.replace("[project]\n", own, 1)
    (SITE / "zensical.toml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=SITE, capture_output=True, text=True, check=False)
    print(built.stdout, built.stderr, sep="")
    return built.returncode or int("griffe: " in built.stdout + built.stderr)


if __name__ == "__main__":
    sys.exit(main())
