"""Build the documentation site into build/site/html: python docs/site.py

Needs the extra `docs`. The pages are those of this folder; a link that leaves the folder leads to the
repository on the site. The build fails if a link or an anchor does not exist, or if a docstring does not
match its signature.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "build" / "site"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def repository() -> str:
    """URL of the repository, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    url: str = project["urls"]["Source"]
    return url


def for_site(text: str, page: Path) -> str:
    """Page with every link that leaves the folder of the documentation turned into a URL.

    Raises:
        FileNotFoundError: If such a link leads nowhere.
    """

    def url(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        if target.is_relative_to(DOCS):
            return link[1]
        kind = "tree" if target.resolve(strict=True).is_dir() else "blob"
        return f"{repository()}/{kind}/main/{target.relative_to(ROOT).as_posix()}"

    return LINK.sub(url, text)


def main() -> int:
    """Copy the pages with links for the site, and build it."""
    shutil.rmtree(SITE, ignore_errors=True)
    for page in DOCS.rglob("*"):
        copy = SITE / page.relative_to(ROOT)
        if page.suffix in {".md", ".svg"}:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(for_site(page.read_text(encoding="utf-8"), page), encoding="utf-8")
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    settings = settings.replace("[project]\n", f'[project]\nrepo_url = "{repository()}"\n', 1)
    (SITE / "zensical.toml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=SITE, capture_output=True, text=True, check=False)
    print(built.stdout, built.stderr, sep="")
    return built.returncode or int("griffe: " in built.stdout + built.stderr)


if __name__ == "__main__":
    sys.exit(main())
