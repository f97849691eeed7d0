"""Find sentences that break the style guide: `python tests/docs/prose.py` prints PLACE:LINE: RULE: TEXT.

Reads Markdown without its code, docstrings, strings below a constant, literal parts of raised messages,
sentence templates, comments (percent signs alone) and test names. `design/language.md` explains the rules.
"""

import ast
import collections
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
ANYWHERE = {
    "percent-space": r"\d[ \u00a0\u202f]%(?!\})|&#8239;%",
    "retired-word": r"(?i)\b(mends?|mended|seldom|besides|whereof|hence|likewise|anew|for want of)\b",
    "told-from": r"(?i)\b(cannot|can|could|be) (be )?told (from|apart)\b",
    "those-of": r"(?:^|[.:;] )(Those|That|The one|The ones) of\b",
    "cannot-be-had": r"(?i)\bcannot be (had|known|seen to)\b|(?<!\bthere )\bis (no|none) [a-z]+[.,;:]",
    "of-first": r"(?m)^(Of|From|By|With|Beside) (the|a|an|each|every|answers|what|whom)\b",
    "first-person": r"(?<![\w/])[Ww]e (?!set lambda)",  # but for the quotation in calibraeval.py
    "count-plural": r"(?<![\d,.])1 (ties|items|folds|calls|verdicts|rows|lines|pairs)\b",
}
PAGES = {
    "date": r"\b(?<!\w-)(?<!= \")20\d\d-\d\d-\d\d\b",
    "history": r"(?i)\b(came to be|before the redesign|before this|was said before|since then|the run before|until now)\b",
    "what-starts": r"(?m)^#+ (What|Where|Whether|How often)\b(?!.*\?)",
    "we-say": r"(?i)\b(is said|are said|be said|it says|says so|stands in)\b",
    "percent-word": r"[\d)]\s+percent\b",
    "our": r"\b[Oo]urs?\b",
    "long-sentence": r"(?:(?:[\w’'%/&+=<>,()–−-]|\.\w)+[ \n]+){40,}[^\s.]",
}
DATE = {"date": PAGES["date"]}
FIRST = {"nominal-relative": r"^(What|Whether|Where|Which|How|That which|Those|Of|From|Who)\b"}
NAMES = {
    "possessive": r"_s_",
    "long-name": r"^.{61,}$",
    "passive-saying": r"_(is|are)_said(_|$)|_says_(so|nothing)",
    "no-noun": r"_is_no_|_are_no_|_are_none(_|$)",
}
ASIDE = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`\n]*`|<!--.*?-->|^\|.*?$|(?<=\])\([^)]*\)", re.DOTALL | re.M
)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _matches(
    rules: Mapping[str, str], text: str, place: object, line: int = 1
) -> Iterator[tuple[str, str]]:
    for rule, pattern in rules.items():
        for found in re.finditer(pattern, text):
            here = line + text.count("\n", 0, found.start())
            around = text[max(0, found.start() - 30) : found.start() + 70]
            yield rule, f"{place}:{here}: {rule}: {' '.join(around.split())}"


def _literals(node: ast.AST) -> str:
    parts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return "".join(part for part in parts if isinstance(part, str))


def page_findings(page: Path) -> Iterator[tuple[str, str]]:
    """Rule and line of every finding in a Markdown page."""
    text = page.read_text(encoding="utf-8")
    tables = {"percent-space": ANYWHERE["percent-space"], **DATE}
    place = page.relative_to(ROOT)
    yield from _matches({**ANYWHERE, **PAGES}, ASIDE.sub(_blank, text), place)
    rows = "\n".join(line if line.startswith("|") else "" for line in text.split("\n"))
    yield from _matches(tables, rows, place)


def code_findings(module: Path) -> Iterator[tuple[str, str]]:
    """Rule and line of every finding in a module's docstrings, comments and messages."""
    place, text = module.relative_to(ROOT), module.read_text(encoding="utf-8")
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(said := getattr(node.value, "value", 0), str):
            plain = re.sub(r"`[^`\n]*`", _blank, said)
            yield from _matches({**ANYWHERE, **DATE}, plain, place, node.lineno)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            yield from _matches(FIRST, first, place, getattr(node, "lineno", 1))
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for rule, found in _matches(ANYWHERE, _literals(node.exc), place, node.lineno):
                yield f"{rule} in a message", found
    comments = re.sub(r"(?m)^((?!.* # ).)*$|^.*? # ", "", text)
    yield from _matches({"percent-space": ANYWHERE["percent-space"]}, comments, place)


def name_findings(module: Path) -> Iterator[tuple[str, str]]:
    """Rule and line of every finding in the names of a module's tests."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from _matches(NAMES, node.name, module.relative_to(ROOT), node.lineno)


def findings() -> Iterator[tuple[str, str]]:
    """Rule and line of every finding in the repository."""
    rooms = [ROOT / room for room in ("docs", "design", "examples")]
    for page in [*ROOT.glob("*.md"), *(page for room in rooms for page in room.rglob("*.md"))]:
        yield from page_findings(page)
    for page in sorted((ROOT / "src").rglob("*.j2")):
        text = page.read_text(encoding="utf-8")
        for rule, found in _matches(ANYWHERE, text, page.relative_to(ROOT)):
            yield f"{rule} in a template", found
    for room in ("src", "benchmarks", "examples", "docs"):
        for module in sorted((ROOT / room).rglob("*.py")):
            yield from code_findings(module)
    for module in sorted((ROOT / "tests").rglob("test_*.py")):
        yield from name_findings(module)
    for module in sorted((ROOT / "tests").rglob("*.py")):
        if module.parent.name != "docs":  # which quotes what is wrong
            yield from (found for found in code_findings(module) if found[0] == "percent-space")


def main() -> int:
    """Print every finding, and the number of each rule on standard error."""
    counts: collections.Counter[str] = collections.Counter()
    for rule, found in findings():
        counts[rule] += 1
        print(found)
    for rule, count in counts.most_common():
        print(f"{count:6d} {rule}", file=sys.stderr)
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
