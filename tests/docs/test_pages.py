"""The pages that people read: size, commands, output, links and language."""

import collections
import re
from pathlib import Path

import prose
import pytest
import run_page

import warm

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUDGETS = {  # words outside code, tables, comments and generated blocks
    "index.md": 250,
    "quickstart.md": 700,
    "start-from-what-you-have.md": 420,
    "your-data.md": 850,
    "your-judge.md": 1_020,
    "report.md": 720,
    "correct.md": 950,
    "ship.md": 700,
    "scale.md": 480,
    "decisions.md": 540,
    "ci.md": 410,
    "lists-and-scales.md": 900,
    "train.md": 1_120,
    "train-on-gpus.md": 450,
    "benchmarks.md": 400,
    "glossary.md": 700,
    "reference/cli.md": 200,
    "reference/formats.md": 1_380,
    "reference/metrics.md": 1_110,
    "reference/extending.md": 200,
    "reference/python.md": 200,
    "methods/index.md": 500,
    **dict.fromkeys(
        (
            f"methods/{name}.md"
            for name in (
                [
                    "average",
                    "vote",
                    "pride",
                    "calibraeval",
                    "escalate",
                    "pcf",
                    "apoc",
                    "balanced-rubric",
                    "bias-cost",
                ]
            )
        ),
        350,
    ),
    "evidence/claims.md": 1_180,
    "evidence/reliability.md": 925,
    "evidence/performance.md": 1_200,
    "evidence/study.md": 1_500,
    "evidence/published.md": 600,
    "evidence/real-models.md": 580,
    "evidence/stability.md": 600,
    "evidence/reproducing.md": 800,
    "evidence/beyond.md": 1_700,
    "evidence/heads.md": 500,
}
OTHER_METHOD = 150
USER_PAGES = sorted(
    page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in {"evidence"}
)
GENERATED = re.compile(r"<!--\s+(\w[\w.-]*):\s+begin\s+-->.*?<!--\s+\1:\s+end\s+-->", re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def path_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def words(text: str) -> int:
    """Words that are read as prose: without code, tables, comments and generated blocks."""
    text = GENERATED.sub("", text)
    text = re.sub(r"```.*?```|<!--.*?-->|^\|.*?$", "", text, flags=re.DOTALL | re.M)
    return len(re.sub(r"\]\([^)]*\)", "]", text).split())


def test_the_prose_check_finds_nothing() -> None:
    assert not list(prose.findings())


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_page_keeps_its_budget(page: Path) -> None:
    budget = BUDGETS.get(name_of(page), OTHER_METHOD if page.parent.name == "methods" else None)
    assert budget is not None, "give the page a budget"
    assert words(page.read_text(encoding="utf-8")) <= budget


def test_readme_has_at_most_125_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 125


def test_user_pages_together_keep_their_budget() -> None:
    assert sum(words(page.read_text(encoding="utf-8")) for page in USER_PAGES) <= 15_000


SERVED = [DOCS / "decisions.md"]  # needs a server: tests/serving/test_serve_command.py runs it


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *(page for page in USER_PAGES if page not in SERVED)], ids=path_of
)
def test_commands_of_page_run_in_a_shell(page: Path, tmp_path: Path) -> None:
    commands = []
    if page.parent != ROOT:  # the README is for the command that is installed
        commands.append(
            warm.folder_of_command(warm.TRAINING if page.stem == "train" else warm.AUDIT)
        )
    run_page.run_page(page, tmp_path, *commands)


def test_few_blocks_are_skipped() -> None:
    pages = [ROOT / "README.md", *USER_PAGES]
    reasons = re.findall(r"<!-- skip: .+? -->", "".join(page.read_text("utf-8") for page in pages))
    assert len(reasons) <= 25


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    made: collections.Counter[str] = collections.Counter()
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"(?m)^#+ (.+)$", text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(f"{slug}-{made[slug]}" if made[slug] else slug)
        made[slug] += 1
    return found


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted([*DOCS.rglob("*.md"), *(ROOT / "design").rglob("*.md")]),
    ],
    ids=path_of,
)
def test_anchors_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    missing = []
    for target, anchor in links:
        other = page if not target else page.parent / target
        if "://" not in target and other.suffix == ".md" and anchor not in anchors(other):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_output_is_checked_in_order(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Run:\n\n```\necho one; echo two; echo three\n```\n\n```text\none\n…\nthree\n```\n"
    )
    assert run_page.run_page(page, tmp_path) == (1, [])
    page.write_text(page.read_text().replace("one\n…\nthree\n```", "three\n…\none\n```"))
    with pytest.raises(AssertionError, match="was not printed"):
        run_page.run_page(page, tmp_path)
    page.write_text("Run:\n\n```\nfalse | cat\n```\n")
    with pytest.raises(AssertionError, match="exit code 1"):
        run_page.run_page(page, tmp_path)
    page.write_text("Write `a.json`:\n\n```json\n{}\n```\n\n```\nls\n```\n\n```text\na.json\n```\n")
    assert run_page.run_page(page, tmp_path).ran == 1
    page.write_text("Not here:\n\n<!-- skip: needs a GPU -->\n```\nfalse\n```\n")
    assert run_page.run_page(page, tmp_path) == (0, ["needs a GPU"])


@pytest.mark.parametrize(
    ("name", "rule", "text"),
    [
        ("page.md", "percent-space", "It is 95 % of all."),
        ("page.md", "first-person", "Then we measure."),
        ("page.md", "percent-word", "It is 95 percent of all."),
        ("page.md", "our", "The rule is ours."),
        ("page.md", "told-from", "The two cannot be told apart."),
        ("page.md", "date", "Measured on 2026-11-22."),
        ("page.md", "long-sentence", "word " * 41 + "end."),
        ("page.md", "what-starts", "# What it does\n"),
        ("page.md", "those-of", "Those of the others."),
        ("a.py", "percent-space", '"""Module."""\n\nLIMIT = 5\n"""At 95 % of all."""\n'),
        ("a.py", "percent-space", "x = 1  # 2 % of all\n"),
        ("a.py", "date", '"""Measured on 2026-11-22."""\n'),
        ("a.py", "cannot-be-had in a message", 'raise ValueError("it cannot be had")\n'),
    ],
)
def test_prose_check_finds_what_it_should(
    name: str, rule: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    findings = prose.page_findings if name == "page.md" else prose.code_findings
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert {found for found, _ in findings(file)} == {rule}
    allowed = f"```\n{text}\n```\n" if name == "page.md" else "x = 100 % 7  # a rest\n"
    file.write_text(allowed, encoding="utf-8")
    assert list(findings(file)) == []
