"""The documentation is up to date: generated pages, worked numbers, links and options."""

import doctest
import json
import re
import warnings
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import unswayed as us
from scripts import load_script
from unswayed.methods import METHODS
from unswayed.methods.estimation import MethodWarning
from unswayed.model.parsing import endings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page
    for folder in (DOCS, ROOT / "design")
    for page in folder.rglob("*.md")
    if "node_modules" not in page.parts
)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return load_script("docs/generate.py")


def test_generated_pages_are_those_that_the_registry_gives(generate: ModuleType) -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generate.pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: python docs/generate.py"


def test_documented_finish_reasons_match_code() -> None:
    page = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    section = page.partition("### Finish reasons")[2].partition("\n## ")[0]
    listed = {
        kind: re.findall(r"`(\w+)`", words)
        for kind, words in re.findall(r"^\| (\w+) \| ([^|]+) \|", section, re.MULTILINE)[1:]
    }
    known = {kind.value: words.split() for kind, words in endings.WORDS.items()}
    assert listed == {**known, "broken": [], "failed": endings.FAILED.split()}


def absent(wanted: object, made: object, place: str = "") -> list[str]:
    """Keys of an example that a record lacks."""
    if not isinstance(wanted, dict):
        return []
    if not isinstance(made, dict):
        return [place]
    return [
        name
        for key, value in wanted.items()
        for name in (
            absent(value, made[key], f"{place}.{key}") if key in made else [f"{place}.{key}"]
        )
    ]


def test_example_of_metrics_has_the_keys_of_an_audit() -> None:
    page = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    example = json.loads(
        re.findall(r"```json\n(.*?)```", page.partition("## metrics.json")[2], re.DOTALL)[0]
    )
    made = us.audit("tiny/judge", limit=60, protocol="all", methods=["average"], resamples=100)
    assert absent(example, made.metrics) == []
    assert absent({"calls": {"none": 1}, "no": 2}, made.metrics) == [".calls.none", ".no"]


def test_pages_name_the_size_of_the_built_in_judge() -> None:
    from safetensors.numpy import load_file

    files = sorted((ROOT / "src" / "unswayed" / "tiny" / "weights").glob("*.safetensors"))
    size = sum(weight.size for file in files for weight in load_file(file).values())
    for name in ("glossary", "evidence/study", "evidence/beyond", "evidence/heads"):
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert f"{round(size, -3):,} parameters" in " ".join(text.split()), name


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_has_a_page_with_a_part_written_by_hand(
    generate: ModuleType, name: str
) -> None:
    assert len(generate.by_hand_of(DOCS / "methods" / f"{name}.md").split()) > 30


def test_every_parameter_of_every_method_is_described(generate: ModuleType) -> None:
    from unswayed.methods.names import parameters

    missing = [
        f"{name}:{key}"
        for name in METHODS
        for key in parameters(METHODS.load(name))
        if not generate.descriptions(METHODS.load(name)).get(key)
    ]
    assert missing == []


def test_what_stands_between_the_markers_is_kept(generate: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "vote.md"
    page.write_text(generate.method_page("vote", "\nMine.\n"), encoding="utf-8")
    assert generate.by_hand_of(page) == "\nMine.\n"
    assert generate.by_hand_of(tmp_path / "none.md") == "\n"


def test_the_table_of_a_readme_stands_between_its_markers(generate: ModuleType) -> None:
    text = "before\n<!-- methods: begin -->\nold\n<!-- methods: end -->\nafter\n"
    made = generate.with_table(text, "methods", generate.short_table())
    assert "old" not in made
    assert made.startswith("before\n")
    assert made.endswith("<!-- methods: end -->\nafter\n")
    assert "[`pride`](docs/methods/pride.md)" in made
    assert generate.with_table("no markers", "methods", "new") == "no markers"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_worked_numbers_are_what_the_code_gives(page: Path) -> None:
    blocks = [block for block in PYTHON.findall(page.read_text(encoding="utf-8")) if ">>>" in block]
    if not blocks:
        return
    parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)  # worked examples have a handful of items
        failed, tried = doctest.DocTestRunner(verbose=False).run(parsed, out=said.append)
    assert tried > 0
    assert failed == 0, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_no_page_names_a_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    files = [target for target in targets if "://" not in target]
    assert [target for target in files if not (page.parent / target).exists()] == []
    assert re.findall(r"/(?:tmp|home|root|mnt|srv)/", text) == []
    assert str(Path(__file__).resolve().parents[2]) not in text


def test_every_metric_is_explained() -> None:
    from unswayed.metrics import METRICS

    text = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in METRICS if f"`{name}`" not in text] == []


def test_the_contract_names_everything_public() -> None:
    import unswayed

    text = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    assert [name for name in unswayed.__all__ if f"`{name}`" not in text] == []


def test_reference_of_commands_names_all_options(generate: ModuleType) -> None:
    from unswayed.cli import COMMANDS

    sections = re.split(r"(?m)^## ", generate.command_help())
    told = {title: text for title, _, text in (part.partition("\n") for part in sections)}
    assert set(told) == {"", "unswayed", "Exit codes", *(f"unswayed {name}" for name in COMMANDS)}
    assert re.findall(r"(?m)^\| (\d+) \|", told["Exit codes"]) == ["0", "1", "2", "3", "4", "130"]
    assert "| `--max-connections <int range>` | " in told["unswayed judge"]
    assert "| `judge` | " in told["unswayed"]
    assert "..." not in told["unswayed"].partition("**Commands**")[2]  # no sentence is cut


def test_the_contract_names_every_field_of_items_and_decisions() -> None:
    from unswayed import Decision, Item

    text = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    fields = (*Item.__struct_fields__, *Decision.__struct_fields__)
    assert [name for name in fields if f"`{name}`" not in text] == []


def test_commands_and_options_in_the_documentation_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from unswayed.cli import COMMANDS, main

    known = {}
    for command in COMMANDS:
        assert main([*command.split(), "--help"]) == 0
        known[command] = capsys.readouterr().out
    wrong = []
    for page in PAGES:
        if page.parent.name == "design":
            continue
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^\$? ?(?:[A-Z_]+=\S+ )*unswayed (.*)$", text, re.MULTILINE):
            command, *words = line.split("#")[0].split()
            if words and f"{command} {words[0]}" in known:
                command, *words = f"{command} {words[0]}", *words[1:]
            if command not in known:
                wrong.append(f"{page.name}: unswayed {command}")
                continue
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            wrong += [
                f"{page.name}: {command} {option}"
                for option in options
                if option not in known[command]
            ]
    assert wrong == []


RUN = {
    "model": "some<judge>@sha256:1",
    "data": {"n_items": 1000},
    "recommendation": {"method": "pride"},
    "methods": {
        "direct": {
            "position_rate": [{"value": 0.75, "low": 0.7, "high": 0.8}, {"value": 0.25}],
            "consistency": {"value": 0.5, "low": 0.45, "high": 0.55},
            "accuracy": {"value": 0.6, "low": 0.55, "high": 0.65},
        },
        "pride": {
            "calls_per_item_amortised": 1.2,
            "position_rate": [{"value": 0.5, "low": 0.45, "high": 0.55}, {"value": 0.5}],
            "consistency": {"value": 0.9, "low": None, "high": None},
            "accuracy": {"value": 0.8, "low": 0.75, "high": 0.85},
        },
    },
}


def test_picture_draws_figures_of_run() -> None:
    root = ElementTree.fromstring(
        load_script("docs/picture.py").picture(RUN, "unswayed audit --methods all")
    )
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text or "" for element in root.iter(f"{space}text")]
    assert [text for text in texts if text.endswith("%")] == [
        "75.0%",
        "50.0%",
        "50.0%",
        "90.0%",
        "60.0%",
        "80.0%",
    ]
    bars = [
        (element.get("class"), float(element.get("width", "0")))
        for element in root.iter(f"{space}rect")
        if element.get("height") == "18" and element.get("class") != "track"
    ]
    # bars of 500 units: 75%, 50%, 50%, 90%, 60%, 80%
    assert bars == [
        ("before", 375.0),
        ("after", 250.0),
        ("before", 250.0),
        ("after", 450.0),
        ("before", 300.0),
        ("after", 400.0),
    ]
    lines = [element for element in root.iter(f"{space}line") if element.get("class") == "line"]
    assert len(lines) == 5  # one interval is not known
    assert "some<judge>" in texts[0]
    assert "unswayed audit --methods all" in (root.findtext(f"{space}desc") or "")


def test_run_without_recommendation_has_no_picture() -> None:
    with pytest.raises(ValueError, match="recommends no method"):
        load_script("docs/picture.py").picture({**RUN, "recommendation": {"method": "direct"}}, "")
