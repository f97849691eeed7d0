"""`unswayed rank`: a ranking from a run, a log, or decisions with their items."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Run, write_lines

import unswayed as us
from unswayed.base.errors import ItemError

MODELS = ("good", "fair", "poor")


def items(questions: int = 12, **changes: object) -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{question}-{model}",
            "prompt": f"Question {question}?",
            "candidates": [f"{model} answer {question}", f"base answer {question}"],
            "candidates_by": [model, "base"],
            **changes,
        }
        for question in range(questions)
        for model in MODELS
    ]


def decisions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Good always wins, poor never, fair where it is shown first."""
    return [
        {
            "item_id": row["id"],
            "order": order,
            "labels": ["A", "B"],
            "model": "judge-1",
            "choice": {"good": 0, "fair": order[0], "poor": 1}[row["id"].partition("-")[2]],
        }
        for row in rows
        for order in ([0, 1], [1, 0])
    ]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.chdir(tmp_path)
    rows = items()
    return write_lines("items.jsonl", rows), write_lines("decisions.jsonl", decisions(rows))


def test_decisions_and_items_give_a_ranking(run: Run, files: tuple[Path, Path]) -> None:
    ran = run("rank", files[1], "--items", files[0], "--json")
    assert ran.code == 0
    scores = {own["model"]: own["score"]["value"] for own in ran.json["models"]}
    assert scores == {"good": 1.0, "fair": 0.5, "base": 0.5, "poor": 0.0}
    assert ran.json["baseline"] == "base"
    assert ran.json["position_effect"]["value"] == pytest.approx(1 / 3)
    assert (ran.json["questions"], ran.json["comparisons"]) == (12, 72)
    assert ran.json["changed_if_first"] == 1
    certain = {own["model"]: own["certainly_above"] for own in ran.json["models"]}
    lowest = ["poor"]
    assert certain == {"good": ["base", "fair", "poor"], "base": lowest, "fair": lowest, "poor": []}


def test_table_says_what_one_side_would_have_said(
    run: Run, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("rank", files[1], "--items", files[0])
    assert ran.code == 0
    assert "Position effect: +33.3 points" in ran.out
    assert (
        "The order is certain for 5 of 6 pairs of models: good over base, good over fair, "
    ) in re.sub(r"\s+", " ", ran.out)
    assert "base (baseline)" in ran.out
    assert "If always shown first, 1 of 3 models would be on the other side of 50%" in ran.out
    assert "A judge that always takes the first answer would give 50.0% for every model." in ran.out
    monkeypatch.setattr("unswayed.report.board.LISTED", 4)
    assert "certain for 5 of 6 pairs of models.\n" in run("rank", files[1], "--items", files[0]).out


def test_long_name_leaves_room_for_figures(run: Run, files: tuple[Path, Path]) -> None:
    name = "organisation/" + "model-" * 20
    rows = [{**row, "candidates_by": [name, "base"]} for row in items()[::3]]
    ran = run("rank", files[1], "--items", write_lines("long.jsonl", rows))
    assert re.search(r"\d\d\.\d–\d\d\.\d", ran.out)
    assert "…" not in ran.out


@pytest.mark.parametrize("name", [" ", " base", "base\n"])
def test_name_with_outer_space_is_refused(run: Run, files: tuple[Path, Path], name: str) -> None:
    rows = write_lines("bad.jsonl", items(candidates_by=["good", name]))
    ran = run("rank", files[1], "--items", rows)
    assert ran.code == 2
    assert "are not names of 2 models" in ran.err


def test_run_directory_needs_no_items(run: Run, files: tuple[Path, Path]) -> None:
    ran = run("audit", files[0], "--model", "simulated/judge?slot=2", "--out", "run")
    assert ran.code == 0
    ranked = run("rank", "run", "--json")
    assert ranked.code == 0
    assert {own["model"] for own in ranked.json["models"]} == {*MODELS, "base"}
    assert ranked.json["comparisons"] == 72
    assert json.loads(Path("run/run.json").read_text())["calls"]["planned"] == 72


def test_balanced_design_asks_once_on_sides_common_to_models(
    run: Run, files: tuple[Path, Path]
) -> None:
    balanced = ("--model", "simulated/judge?slot=2", "--design", "balanced", "--out", "run")
    assert run("audit", files[0], *balanced).code == 0
    assert json.loads(Path("run/run.json").read_text())["calls"]["planned"] == 36
    ranking = us.rank("run")
    assert ranking.comparisons == 36
    assert [own.shown_first for own in ranking.models] == [0.5] * 4
    assert run("export", "run", "--what", "items", "--out", "shown.jsonl").code == 0
    first = {(item.candidates_by or ("",))[0] == "base" for item in us.load_data("shown.jsonl")[:3]}
    assert len(first) == 1  # one question


def test_balanced_design_moves_gold_along(files: tuple[Path, Path]) -> None:
    rows = [{**row, "gold": 0} for row in items()]
    audited = us.audit("simulated/judge", rows, design="balanced")
    shown = audited.record.plan.items
    assert {item.gold for item in shown} == {0, 1}
    for item in shown:
        assert isinstance(item.gold, int)
        assert item.candidates[item.gold].split()[0] in MODELS


def test_swapped_pairs_keep_the_worth_of_their_answers(run: Run, files: tuple[Path, Path]) -> None:
    given = write_lines("worth.jsonl", items(meta={"utility": [5, 0]}))
    asked = ("--model", "simulated/judge?slot=0&label=0&noise=0", "--design", "balanced")
    assert run("audit", given, *asked, "--out", "run").code == 0
    scores = {own.model: own.score.value for own in us.rank("run").models}
    assert scores == {**dict.fromkeys(MODELS, 1.0), "base": 0.5}
    assert run("export", "run", "--what", "decisions", "--out", "asked.jsonl").code == 0
    with pytest.raises(ItemError, match="on one side"):  # swapped ones are other items
        us.rank("asked.jsonl", given)


@pytest.mark.parametrize(
    "more", [("--orders", "swap"), ("--methods", "vote"), ("--protocol", "label")]
)
def test_balanced_design_excludes_other_orders(
    run: Run, files: tuple[Path, Path], more: tuple[str, str]
) -> None:
    ran = run("audit", files[0], "--model", "simulated/judge", "--design", "balanced", *more)
    assert ran.code == 2
    assert "--design balanced asks once. Leave out --orders, --methods and --protocol." in ran.err


def test_balanced_design_needs_names(run: Run, pairs: Path) -> None:
    ran = run("audit", pairs, "--model", "simulated/judge", "--design", "balanced")
    assert ran.code == 2
    assert "--design balanced needs pairs of two models" in ran.err


def test_recorded_run_takes_the_items_it_was_audited_with(
    run: Run, files: tuple[Path, Path]
) -> None:
    assert run("audit", files[0], "--decisions", files[1], "--out", "run").code == 0
    assert (
        "run: items are missing. Name their file: --items, in Python items=."
        in run("rank", "run").err
    )
    assert run("rank", "run", "--items", files[0], "--json").json["questions"] == 12


def test_audit_in_memory_is_ranked_alike(files: tuple[Path, Path]) -> None:
    audited = us.audit(items=files[0], decisions=files[1])
    ranking = us.rank(audited, baseline="base")
    assert ranking.models == us.rank(files[1], files[0]).models
    assert str(ranking).startswith("Position effect: +33.3 points")


def test_repetitions_alone_are_named_as_such(run: Run, tmp_path: Path) -> None:
    samples = [{**row, "sample": 1} for row in decisions(items())]
    i, d = write_lines(tmp_path / "i.jsonl", items()), write_lines(tmp_path / "d.jsonl", samples)
    assert "only repeated samples are recorded" in run("rank", d, "--items", i).err


def test_own_log_with_names_is_ranked(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    log = [
        {"q": q, "a": pair[0], "b": pair[1], "v": "first"}
        for q in range(6)
        for pair in (("x", "y"), ("y", "x"))
    ]
    fields = "id=q,names=a|b,labels=first|second,verdict=v"
    written = ("--out", "d.jsonl", "--items", "i.jsonl")
    assert (
        run("import", "jsonl", write_lines("log.jsonl", log), "--map", fields, *written).code == 0
    )
    ran = run("rank", "d.jsonl", "--items", "i.jsonl", "--json")
    assert [own["score"]["value"] for own in ran.json["models"]] == [0.5, 0.5]
    assert ran.json["questions"] == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates_by": None}, 'Give each pair "candidates_by"'),
        ({"candidates_by": ["m", "m"]}, "no item is a pair that names two models"),
        ({"candidates_by": ["m"]}, "candidates_by: ['m'] are not names of 2 models"),
        ({"prompt": "Compare."}, "that could be read are about 1 question"),
    ],
)
def test_items_that_rank_nothing_are_refused(
    files: tuple[Path, Path], changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ItemError) as refused:
        us.rank(files[1], items(**changes))
    assert message in str(refused.value)


def test_item_given_twice_is_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(ItemError, match="q0-good"):
        us.rank(files[1], [*items(), items()[0]])


def test_items_alone_are_to_be_audited_first(run: Run, files: tuple[Path, Path]) -> None:
    ran = run("rank", files[0])
    assert ran.code == 2
    assert "unswayed" in ran.err


def test_names_in_a_table_are_json(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines("items.jsonl", items(2))
    assert run("export", "items.jsonl", "--what", "items", "--out", "items.csv").code == 0
    assert us.load_data("items.csv")[0].candidates_by == ("good", "base")
