"""`unswayed audit --decisions`: what recorded decisions can and cannot tell, said plainly."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from cli_commands import SIMULATED, Ran, Run, choice, pair, write_lines

Row = dict[str, Any]


def decision(number: int, order: list[int], chosen: object, **changes: object) -> Row:
    return {
        "item_id": f"q{number}",
        "order": order,
        "labels": ["A", "B"],
        "label_set": ["A", "B"],
        "choice": chosen,
        "model": "judge-1",
        **changes,
    }


def both_orders(n_items: int = 30) -> list[Row]:
    """Items 0, 3, 6, ... are answered alike in both orders, the others by position."""
    return [
        decision(number, order, 0 if number % 3 == 0 else order[0])
        for number in range(n_items)
        for order in ([0, 1], [1, 0])
    ]


def audit(run: Run, rows: list[Row], *more: str | Path) -> Ran:
    data = write_lines("decisions.jsonl", rows)
    return run("audit", "--decisions", data, "--resamples", "100", "--out", "run", *more)


def test_figures_are_those_of_the_decisions(run: Run, pairs: Path) -> None:
    ran = audit(run, both_orders(), pairs, "--json")
    assert ran.code == 0
    direct = ran.json["methods"]["direct"]
    assert direct["consistency"]["value"] == pytest.approx(1 / 3)
    # by position 5 of 6 first; gold is 0 for even items: 10 consistent on 0 (5 right), 20 half right
    assert direct["position_rate"][0]["value"] == pytest.approx((10 + 40) / 60)
    assert direct["accuracy"]["value"] == pytest.approx((5 + 10) / 30)
    assert ran.json["calls"] == {**ran.json["calls"], "made": 0, "failed": 0, "cached": 60}
    assert ran.said == [
        "unswayed: skipped average: it needs label probabilities, and these answers have none."
    ]
    for name in ("run.json", "metrics.json", "report.html", "decisions.jsonl"):
        assert Path("run", name).is_file()


def test_items_are_not_needed_but_accuracy_is_null_without(run: Run) -> None:
    ran = audit(run, both_orders(), "--json")
    assert ran.code == 0
    direct = ran.json["methods"]["direct"]
    assert direct["consistency"]["value"] == pytest.approx(1 / 3)
    assert direct["accuracy"]["value"] is None
    assert direct["accuracy"]["reason"]


def test_several_models_are_refused_with_their_names(run: Run, pairs: Path) -> None:
    rows = both_orders() + [{**row, "model": "judge-2"} for row in both_orders(10)]
    ran = audit(run, rows, pairs)
    assert ran.code == 2
    assert "judge-1 (60), judge-2 (20). Choose one with --model" in ran.err
    assert audit(run, rows, pairs, "--model", "judge-2", "--json").json["calls"]["cached"] == 20
    wrong = audit(run, rows, pairs, "--model", "judge-3")
    assert wrong.code == 2
    assert "Models in the file: judge-1, judge-2" in wrong.err


def test_with_one_order_order_metrics_are_null(run: Run, pairs: Path) -> None:
    rows = [row for row in both_orders() if row["order"] == [0, 1]]
    ran = audit(run, rows, pairs, "--json")
    assert ran.code == 0
    direct = ran.json["methods"]["direct"]
    for metric in ("consistency", "consistent_accuracy"):
        assert direct[metric]["value"] is None
        assert "presentation" in direct[metric]["reason"]
    assert direct["accuracy"]["n"] == 30
    assert "vote" in ran.json["skipped"]
    assert "whether verdicts change" in Path("run/report.html").read_text()
    assert run("report", "run", "--out", "again.html").code == 0


def test_an_order_that_is_missing_for_some_items_leaves_them_out(run: Run, pairs: Path) -> None:
    rows = [row for row in both_orders() if row["order"] == [0, 1] or int(row["item_id"][1:]) < 12]
    direct = audit(run, rows, pairs, "--json").json["methods"]["direct"]
    assert direct["consistency"]["n"] == 12
    assert direct["incomplete"] == 18


def test_label_only_and_order_only_decisions_are_recognised(run: Run, pairs: Path) -> None:
    own = [decision(number, [0, 1], number % 2) for number in range(30)]
    labels = [decision(number, [0, 1], 0, labels=["B", "A"]) for number in range(30)]
    only_labels = audit(run, own + labels, pairs, "--json").json
    assert only_labels["protocols"]["label"]["consistency"]["value"] == 0.5
    assert only_labels["methods"]["direct"]["consistency"]["value"] is None
    orders = [decision(number, [1, 0], 1, labels=["B", "A"]) for number in range(30)]
    only_orders = audit(run, own + orders, pairs, "--json", "--out", "orders").json
    assert only_orders["protocols"]["order"]["consistency"]["value"] == 0.5
    assert only_orders["methods"]["direct"]["consistency"]["value"] is None
    everything = audit(run, both_orders() + labels, pairs, "--json").json
    assert sorted(everything["protocols"]) == ["coupled", "label"]


def test_ties_and_unread_answers_are_counted_and_never_verdicts(run: Run, pairs: Path) -> None:
    rows = both_orders()
    for row in rows:
        if row["item_id"] == "q1":
            row["choice"] = "tie"
        if row["item_id"] == "q2":
            row["choice"] = None
    direct = audit(run, rows, pairs, "--json").json["methods"]["direct"]
    assert direct["tie_rate"]["value"] == pytest.approx(1 / 30)
    assert direct["unparsed_rate"]["value"] == pytest.approx(1 / 30)
    assert direct["consistency"]["value"] == pytest.approx(11 / 30)  # tie-tie agrees, unread never


def test_decisions_about_other_items_are_counted_or_refused(run: Run, pairs: Path) -> None:
    strangers = [decision(1000 + number, [0, 1], 0) for number in range(5)]
    ran = audit(run, both_orders() + strangers, pairs)
    assert ran.code == 0
    assert any("5 decisions belong to no item of pairs" in line for line in ran.said)
    ran = audit(run, strangers, pairs)
    assert ran.code == 2
    assert "ids differ ('q1000' in decisions, 'q0' in items)" in ran.err


def test_items_without_decisions_are_counted(run: Run, pairs: Path) -> None:
    ran = audit(run, both_orders(20), pairs)
    assert any("10 of 30 items have no decision" in line for line in ran.said)


def test_a_question_answered_twice_is_refused_or_left_out(run: Run, pairs: Path) -> None:
    rows = [*both_orders(), both_orders()[0]]
    ran = audit(run, rows, pairs)
    assert ran.code == 2
    assert "decisions.jsonl:61: item_id: q0: the same question was answered on line 1" in ran.err
    ran = audit(run, rows, pairs, "--on-bad-item", "skip")
    assert ran.code == 0
    assert any("1 bad line left out: decisions.jsonl:61" in line for line in ran.said)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (decision(0, [0, 0], 0), "[0, 0] is not a permutation"),
        (decision(0, [0, 1], 2), "choice: 2 is out of range"),
        (decision(0, [0, 1], "tied"), "choice: Invalid enum value 'tied'"),
        ({"order": [0, 1]}, "missing required field `item_id`"),
        (
            {**decision(0, [0, 1, 2], 0), "labels": list("ABC"), "label_set": list("ABC")},
            "the item has 2 candidates, a decision about it 3",
        ),
    ],
)
def test_malformed_decisions_are_refused(row: Row, said: str, run: Run, pairs: Path) -> None:
    ran = audit(run, [row], pairs)
    assert ran.code == 2
    assert said in ran.err
    assert not Path("run").exists()


def test_no_decisions_are_an_error(run: Run, pairs: Path) -> None:
    assert "decisions.jsonl: no decisions" in audit(run, [], pairs).err
    assert "cannot read absent.jsonl" in run("audit", "--decisions", "absent.jsonl").err


def test_half_missing_probabilities_are_reported(run: Run, pairs: Path) -> None:
    rows = both_orders()
    for row in rows[:30]:
        row["probs"] = [0.8, 0.2] if row["choice"] == 0 else [0.2, 0.8]
    ran = audit(run, rows, pairs, "--json")
    assert ran.json["methods"]["average"]["unparsed_rate"]["value"] == pytest.approx(0.5)
    assert any("30 of 60 answers came without label probabilities" in line for line in ran.said)


def test_decisions_are_measured_per_number_of_candidates(run: Run) -> None:
    items = write_lines(
        "mcq.jsonl", [choice(n, 2) for n in range(10)] + [choice(n, 3) for n in range(10, 20)]
    )
    rows = [decision(0, [0, 1], 0, item_id=f"m{n}") for n in range(10)]
    rows += [
        decision(0, order, 0, item_id=f"m{n}", labels=list("ABC"), label_set=list("ABC"))
        for n in range(10, 20)
        for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1])
    ]
    found = audit(run, rows, items, "--json").json
    assert found["protocol"]["n_candidates"] == [2, 3]
    assert found["methods"]["direct"]["strata"]["3"]["consistency"]["value"] == 1.0


@pytest.mark.parametrize(
    "option",
    [
        ["--orders", "swap"],
        ["--protocol", "all"],
        ["--probs", "sampled:5"],
        ["--prompt", "reasoning"],
        ["--labels", "X,Y"],
        ["--template", "own.txt"],
        ["--prices", "prices.toml"],
        ["--budget", "1"],
        ["--base-url", "http://127.0.0.1:1/v1"],
        ["--max-connections", "3"],
        ["--timeout", "3"],
        ["--dry-run"],
    ],
)
def test_options_about_calls_are_refused_with_decisions(
    option: list[str], run: Run, pairs: Path
) -> None:
    ran = audit(run, both_orders(), pairs, *option)
    assert ran.code == 2
    assert f"{option[0]} has no effect on --decisions" in ran.err


def test_a_directory_of_calls_and_one_of_decisions_are_not_mixed(run: Run, pairs: Path) -> None:
    assert run("audit", pairs, "--model", SIMULATED, "--out", "run", "--resamples", "100").code == 0
    before = Path("run/metrics.json").read_bytes()
    ran = audit(run, both_orders(), pairs)
    assert ran.code == 2
    assert "run holds an audit of a model's calls" in ran.err
    assert Path("run/metrics.json").read_bytes() == before
    Path("run").rename("calls")
    assert audit(run, both_orders(), pairs).code == 0
    assert audit(run, both_orders(), pairs).code == 0  # the same again is fine
    other = [{**row, "model": "judge-2"} for row in both_orders()]
    assert "holds recorded decisions of judge-1 on pairs" in audit(run, other, pairs).err
    ran = run("audit", pairs, "--model", SIMULATED, "--out", "run")
    assert ran.code == 2
    assert "run holds an audit of recorded decisions" in ran.err


def test_the_gate_and_groups_work_on_decisions(run: Run) -> None:
    items = write_lines(
        "grouped.jsonl", [pair(n, group="odd" if n % 2 else "even") for n in range(30)]
    )
    ran = audit(run, both_orders(), items, "--json", "--max-flip-rate", "0.5")
    assert ran.code == 1
    assert sorted(ran.json["groups"]) == ["even", "odd"]
    assert ran.said[-1] == "unswayed: 66.7% of verdicts flip; --max-flip-rate allows 50.0%."


def test_import_names_the_command_that_audits_its_decisions(run: Run) -> None:
    rows = [{"pair": f"p{n}", "winner": "A", "swapped": s} for n in range(5) for s in (False, True)]
    log = write_lines("log.jsonl", rows)
    mapped = "id=pair,verdict=winner,order=swapped"
    ran = run("import", "jsonl", log, "--map", mapped, "--out", "d.jsonl")
    assert ran.code == 0
    *_, last = ran.out.splitlines()
    assert last == "next: unswayed audit --decisions d.jsonl"
    found = run(*last.split()[2:], "--resamples", "100", "--json").json["methods"]["direct"]
    assert found["consistency"]["value"] == 0.0  # the first answer, whichever it is


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["judgbench", "pairs.jsonl", "--out", "x"], "Did you mean 'judgebench'?"),
        (["auto", "pairs.jsonl", "--out", "x"], "audit them first (unswayed audit pairs.jsonl)."),
        (["jsonl", "absent.jsonl", "--out", "x"], "cannot read absent.jsonl"),
        (["jsonl", "pairs.jsonl", "--map", "id=", "--out", "x"], "write field=name"),
        (["jsonl", "pairs.jsonl", "--out", "pairs.jsonl"], "is both input and output"),
        (["jsonl", "d.jsonl", "--out", "x", "--items", "x"], "--out and --items are both x"),
        (["jsonl", "d.jsonl", "--out", "x", "--items", "i"], "Remove --items, or add"),
        (["jsonl", "d.jsonl", "--out", "."], "is a directory"),
    ],
)
def test_imports_that_cannot_be_done_write_nothing(
    arguments: list[str], said: str, run: Run, pairs: Path, folder: Path
) -> None:
    write_lines("d.jsonl", both_orders(2))
    before = pairs.read_bytes()
    ran = run("import", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert sorted(path.name for path in folder.iterdir()) == ["d.jsonl", "pairs.jsonl"]
    assert pairs.read_bytes() == before


def test_what_a_run_exports_as_parquet_is_audited_again(run: Run, pairs: Path) -> None:
    first = audit(run, both_orders(), pairs, "--json")
    assert run("export", "run", "--as", "parquet", "--out", "again.parquet").code == 0
    table = ("--decisions", "again.parquet", "--resamples", "100", "--out", "again", "--json")
    again = run("audit", pairs, *table)
    assert again.code == 0
    assert again.json == first.json
    assert run("export", "again", "--out", "again.jsonl").code == 0
    assert Path("again.jsonl").read_bytes() == Path("again", "decisions.jsonl").read_bytes()


def test_the_run_directory_keeps_used_lines_verbatim(run: Run) -> None:
    rows = [decision(number, [0, 1], 0, note="mine") for number in (3, 1, 2)]
    rows.append(decision(1, [1, 0], 0, prompt_id="other"))
    assert audit(run, rows).code == 0
    given = Path("decisions.jsonl").read_bytes().splitlines()
    assert Path("run", "decisions.jsonl").read_bytes().splitlines() == sorted(given[:3])


def test_a_run_is_audited_again_into_its_own_directory(run: Run, pairs: Path) -> None:
    first = audit(run, both_orders(), pairs, "--json")
    kept = Path("run", "decisions.jsonl").read_bytes()
    again = run(
        "audit", pairs, "--decisions", "run/decisions.jsonl", "--resamples", "100",
        "--out", "run", "--json",
    )  # fmt: skip
    assert again.json["methods"] == first.json["methods"]
    assert Path("run", "decisions.jsonl").read_bytes() == kept
    fewer = run(
        "audit", pairs, "--decisions", "run/decisions.jsonl", "--methods", "direct", "--out", "run"
    )
    assert fewer.code == 0
    (earlier,) = Path("run", "earlier").iterdir()
    assert json.loads((earlier / "metrics.json").read_text())["methods"] == first.json["methods"]


def test_decisions_of_finished_audit_are_kept_before_fewer(run: Run, pairs: Path) -> None:
    rows = both_orders()
    assert audit(run, rows, pairs).code == 0
    kept = Path("run", "decisions.jsonl").read_bytes()
    fewer = audit(run, rows[:-2], pairs)
    assert fewer.code == 0
    (earlier,) = Path("run", "earlier").iterdir()
    assert (earlier / "decisions.jsonl").read_bytes() == kept
    assert len(Path("run", "decisions.jsonl").read_bytes().splitlines()) == len(rows) - 2


def test_an_import_of_several_judges_says_how_to_choose_one(run: Run, folder: Path) -> None:
    rows = [{**row, "model": model} for model in ("one", "two b") for row in both_orders(2)]
    write_lines("d.jsonl", rows)
    ran = run("import", "auto", "d.jsonl", "--out", "x.jsonl")
    assert ran.out.splitlines()[-1] == "next: unswayed audit --decisions x.jsonl --model one"
    assert run(*shlex.split(ran.out.splitlines()[-1])[2:]).code == 0


def test_items_without_answers_are_not_called_after_auto(run: Run, folder: Path) -> None:
    pair = {"idx": 1, "instruction": "q", "input": "", "response1": "a", "response2": "b"}
    pair |= {f"annotator{k}": 1 for k in (1, 2, 3)}
    Path("testset-v1.json").write_text(json.dumps([pair]))
    ran = run("import", "auto", "testset-v1.json", "--out", "x.jsonl", "--items", "i.jsonl")
    assert ran.code == 2
    assert "Give --items without --out, or add the files with the answers" in ran.err


def test_outputs_of_another_tool_are_told_to_be_imported_first(run: Run, folder: Path) -> None:
    write_lines("outputs.jsonl", [{"pair_id": "p", "judgments": []}])
    ran = run("audit", "--decisions", "outputs.jsonl")
    assert ran.code == 2
    assert "unswayed import auto outputs.jsonl --out decisions.jsonl" in ran.err
    Path("book.xlsx").write_bytes(b"PK\x03\x04\x14\x00\n")
    for arguments in (["--decisions", "book.xlsx"], ["book.xlsx", "--model", "tiny/judge"]):
        ran = run("audit", *arguments)
        assert ran.code == 2
        assert "book.xlsx: not UTF-8 text" in ran.err
