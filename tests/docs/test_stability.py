"""The stability table repeats, and agrees with figures computed straight from the recorded files."""

import gzip
import hashlib
import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from needs import DATA, recorded

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs" / "evidence"
KEPT = json.loads((EVIDENCE / "data" / "stability.json").read_text(encoding="utf-8"))
PAIRS = KEPT["tables"]["pairs"]
FLIPS = PAIRS["columns"][4]

Verdicts = dict[str, dict[str, list[str | None]]]
"""By item: what two displays, "own" and "other", said, by sample: candidate "0", "1", "tie" or None."""


def rows_of(text: str) -> list[list[str]]:
    """Cells of every row of the printed tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines]


def kept_row(judge: str, data: str, table: Mapping[str, Any] = PAIRS) -> dict[str, str]:
    (row,) = (row for row in table["rows"] if row[:2] == [judge, data])
    return dict(zip(table["columns"], row, strict=True))


def numbers(cell: str) -> list[float]:
    """Value and ends of a cell, in percent."""
    return [float(part) for part in re.findall(r"[-+]?\d+\.?\d*", cell.replace("−", "-"))]


def lines_of(name: str) -> list[Any]:
    text = gzip.decompress((DATA / name).read_bytes()).decode()
    return json.loads(text) if text[0] == "[" else [json.loads(line) for line in text.splitlines()]


def llmbar() -> Verdicts:
    said: Verdicts = {}
    for at, row in enumerate(lines_of("llmbar/Natural_ChatGPT_CoT.json.gz")):
        last = row["results"][-1]
        own, other = (
            {"1": "0", "2": "1"}.get(last[f"swap = {swap}"]["winner"]) for swap in (False, True)
        )
        said[str(at)] = {"own": [own], "other": [other]}
    return said


def judgebench() -> Verdicts:
    said: Verdicts = {}
    name = "claude-3-5-sonnet-20240620_judge=arena_hard_claude-3-haiku-20240307"
    for at, row in enumerate(lines_of(f"judgebench/outputs_resp={name}.jsonl.gz")):
        first, second = (part["decision"] for part in row["judgments"])
        own = {"A>B": "0", "B>A": "1", "A=B": "tie"}.get(first)
        other = {"A>B": "1", "B>A": "0", "A=B": "tie"}.get(second)
        said[str(at)] = {"own": [own], "other": [other]}
    return said


def mt_bench() -> Verdicts:
    """Three repetitions, pairs as `question;model`."""
    import csv
    import io

    said: Verdicts = defaultdict(lambda: {"own": [], "other": []})
    csv.field_size_limit(10**9)
    for number in (1, 2, 3):
        file = f"mtbench/repetition{number}_claude-3-haiku-20240307_192.tsv.gz"
        text = gzip.decompress((DATA / file).read_bytes()).decode()
        for row in csv.DictReader(io.StringIO(text), delimiter="\t"):
            question, first, second = row["cmp_index"].split(";")
            found = re.search(r"\[\[([A-D])\]\]", row["claude-3-haiku-20240307"])
            letter = found[1] if found else None
            own = first == "vicuna-13b-v1.3"
            place = {"A": 0, "B": 1}.get(letter or "")
            choice = None if place is None else str(place if own else 1 - place)
            said[f"{question};{second if own else first}"]["own" if own else "other"].append(
                "tie" if letter == "C" else choice
            )
    return said


CASES = [
    (llmbar, "ChatGPT_CoT", "LLMBar Natural"),
    (
        judgebench,
        "claude-3-haiku-20240307",
        "JudgeBench, answers of claude-3-5-sonnet-20240620",
    ),
    (mt_bench, "claude-3-haiku-20240307", "MT-Bench, repeated"),
]


def differ(one: str | None, two: str | None) -> bool:
    return one is None or one != two


def quantiles(values: Sequence[float], units: Iterable[str]) -> np.ndarray:
    """Ends of a percentile bootstrap of the mean, drawn by unit."""
    by_unit = defaultdict(list)
    for value, unit in zip(values, units, strict=True):
        by_unit[unit].append(value)
    sums = np.array([(sum(own), len(own)) for own in by_unit.values()])
    drawn = np.random.default_rng(1).integers(0, len(sums), size=(20_000, len(sums)))
    totals = sums[drawn].sum(axis=1)
    return np.quantile(totals[:, 0] / totals[:, 1], [0.025, 0.975])


@recorded
@pytest.mark.parametrize(("read", "judge", "data"), CASES, ids=[case[2] for case in CASES])
def test_row_agrees_with_raw_file(read: Any, judge: str, data: str) -> None:
    said, row = read(), kept_row(judge, data)
    firsts = [(own["own"][0], own["other"][0]) for own in said.values()]
    flips = [float(differ(*pair)) for pair in firsts]
    units = [name.partition(";")[0] for name in said]
    assert (row["items"], row["units"]) == (f"{len(said)}", f"{len(set(units))}")
    value, *ends = numbers(row[FLIPS])
    assert value == pytest.approx(100 * np.mean(flips), abs=0.0501)
    assert ends == pytest.approx(100 * quantiles(flips, units), abs=2.5)
    calls = [choice for pair in firsts for choice in pair]
    first = [pair[0] == "0" for pair in firsts if pair[0] in ("0", "1")]
    first += [pair[1] == "1" for pair in firsts if pair[1] in ("0", "1")]
    points = numbers(row["first position, points"])[0]
    told = [int(row[name].replace(",", "")) for name in ("calls", "ties", "unparsed")]
    assert told == [len(calls), calls.count("tie"), calls.count(None)]
    assert points == pytest.approx(100 * np.mean(first) - 50, abs=0.0501)


@recorded
def test_repeat_noise_agrees_with_raw_files() -> None:
    within, across = [], []
    for own in mt_bench().values():
        pairs = [(0, 1), (0, 2), (1, 2)]
        both = [differ(said[a], said[b]) for said in own.values() for a, b in pairs]
        within.append(np.mean(both))
        across.append(np.mean([differ(a, b) for a in own["own"] for b in own["other"]]))
    row = kept_row("claude-3-haiku-20240307", "MT-Bench, repeated", KEPT["tables"]["noise"])
    got = [numbers(row[name])[0] for name in list(row)[5:]]
    want = 100 * np.array([np.mean(within), np.mean(across), np.mean(across) - np.mean(within)])
    assert got == pytest.approx(want, abs=0.0501)


@recorded
def test_rows_agree_with_figures_computed_elsewhere() -> None:
    def expected(name: str) -> Any:
        return json.loads((DATA / "expected" / f"{name}.json").read_text())

    wanted = {}
    for figures in expected("llmbar_recorded_judges")["judges"].values():
        data, judge = re.findall(r"llmbar/(\w+?)_(.+)\.json", figures["file"])[0]
        wanted[judge, f"LLMBar {data}"] = figures
    for name, figures in expected("judgebench_recorded_judges")["judges"].items():
        answers, _, judge = name.split(" | ")
        wanted[judge.replace("/", "_"), f"JudgeBench, answers of {answers}"] = figures["buckets"][
            "Overall"
        ]
    wanted["Auto-J", "Auto-J"] = expected("autoj_recorded")["dev"]
    for name, figures in expected("mtbench_position_bias_judges")["judges"].items():
        wanted[name, "MT-Bench"] = figures["overall"]
    for name, figures in expected("mtbench_repetition_judges")["judges"].items():
        wanted[name, "MT-Bench, repeated"] = figures["repetition1"]
    assert len(wanted) == 14
    for (judge, data), figures in wanted.items():
        row = kept_row(judge, data)
        flips, points = (numbers(row[name])[0] for name in (FLIPS, "first position, points"))
        assert flips == pytest.approx(100 * (1 - figures["consistency_strict"]), abs=0.0501), judge
        first = 100 * figures["first_position_rate"] - 50
        assert points == pytest.approx(first, abs=0.0501), (judge, data)
        counts = figures["verdicts_total"]
        assert [int(row["ties"]), int(row["unparsed"])] == [counts["tie"], counts["unparsed"]]


@recorded
def test_command_repeats_rows_of_a_subset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stability

    only = "FairEval|Auto-J|AlpacaEval|Vicuna|qwen"
    monkeypatch.setattr("sys.argv", ["stability.py", "--only", only])
    stability.main()
    printed = rows_of(capsys.readouterr().out)
    for name, count in (("pairs", 6), ("options", 4), ("noise", 1), ("decisions", 2)):
        kept = KEPT["tables"][name]["rows"]
        assert sum(row in kept for row in printed) == count, name


def test_rows_of_real_models_are_those_of_their_page() -> None:
    import stability

    kept = [*PAIRS["rows"], *KEPT["tables"]["options"]["rows"]]
    made = [list(map(str, row.cells())) for row in stability.committed()]
    assert made
    assert all(row in kept for row in made), "run: python benchmarks/stability.py --write"
    assert [list(map(str, row)) for row in stability.decision_rows()] == KEPT["tables"][
        "decisions"
    ]["rows"]


@recorded
def test_inputs_have_the_digests_of_the_page() -> None:
    assert len(KEPT["inputs"]) == 20
    for name, digest in KEPT["inputs"].items():
        path = ROOT / name if name.startswith("src/") else DATA / name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest, name


def test_recordings_do_not_tell_order_from_label() -> None:
    own = [row for row in PAIRS["rows"] if not row[0].startswith("tiny/")]
    assert len(own) == 18
    assert {tuple(row[5:7]) for row in own} == {("–", "–")}
    assert kept_row("weighted_gpt4_turbo", "AlpacaEval, vicuna-7b")[FLIPS] == "–"


def test_page_names_the_least_and_most_flips_recorded() -> None:
    from_logs = [row for row in PAIRS["rows"] if row[9] != "–" and row[4] != "–"]
    values = {numbers(row[4])[0]: row[4] for row in from_logs if not row[0].startswith("tiny/")}
    text = " ".join((EVIDENCE / "stability.md").read_text(encoding="utf-8").split())
    for name, value in (("steadiest", min(values)), ("chatgpt", max(values))):
        assert f"<!-- {name}: begin -->{values[value]}<!-- {name}: end -->" in text


def test_plot_tells_the_flips_of_the_table() -> None:
    drawn = html.unescape((EVIDENCE / "stability.svg").read_text(encoding="utf-8"))
    told = [row for row in PAIRS["rows"] if row[4] != "–"]
    assert drawn.count("<circle") == len(told)
    for judge, data, *_ in told:
        value = numbers(kept_row(judge, data)[FLIPS])[0]
        assert f"{judge}, {data}: {value:.1f}%." in drawn


def test_equal_judges_are_rarely_separated() -> None:
    import stability_rates

    generator = np.random.default_rng(5)
    wrong = [stability_rates.trial(generator, 6, 100, 100, 0)[0] for _ in range(40)]
    right = [stability_rates.trial(generator, 6, 100, 100, 40)[1] for _ in range(10)]
    assert sum(wrong) <= 6  # more than 6 of 40 at a rate of 5% has a probability of 1 in 300
    assert np.mean(right) > 0.9


def test_figures_without_value_are_dashes() -> None:
    import stability
    from unswayed.model.decisions import Estimate

    share = Estimate(value=0.25, low=0.125, high=0.5, n=8)
    assert stability.shown(stability.moved(share, 1.0, turned=True)) == "75.0 (50.0 to 87.5)"
    assert stability.shown(stability.moved(share, -0.5), signed=True) == "−25.0 (−37.5 to +0.0)"
    assert stability.shown(Estimate(value=0.5), signed=True) == "+50"
    assert stability.shown(stability.moved(Estimate(value=None), 1.0)) == "–"


def test_run_directory_becomes_a_row(tmp_path: Path) -> None:
    import stability
    from unswayed.api import audit

    methods, folder = ("direct",), tmp_path / "mine"
    made = audit("tiny/judge", "tiny-judge", limit=30, methods=methods, protocol="all", out=folder)
    (row,) = stability.runs(tmp_path)
    kept = made.record.metrics.protocols
    assert (row.judge, row.data, row.items, row.counts) == ("mine", "tiny-judge", 30, ("60", "0", "0"))  # fmt: skip
    for own, name in ((row.flips, "coupled"), (row.order, "order"), (row.label, "label")):
        assert own is not None
        assert own.value == pytest.approx(1 - (kept[name]["consistency"].value or 0))
    assert row.noise is None
