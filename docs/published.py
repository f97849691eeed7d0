"""Write `evidence/data/published.json`: what projects publish about recorded judges next to what this package measures.

    python docs/published.py            # needs ../shared/data and ../shared/papers beside the checkout
    python docs/published.py --check    # exit code 1 if the committed data differ

Then `python docs/evidence.py` renders the page. Published figures are read from `expected/*.json` of that
folder (fields `repo_*`, `paper_*`, `pagrpo_*`) and from a paper's own tables, all but `PANDALM`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import evidence
from published_judges import (
    DATA,
    SHARED,
    Judge,
    all_pairs,
    audited,
    expected,
    judge,
    judgebench,
    mt_bench,
    number,
    read,
    recorded,
)

import unswayed as us
from unswayed.metrics import measure, outcomes_from_decisions
from unswayed.metrics.printed_table import check_table, markdown_rows

ALPACA = "weighted_gpt4_turbo_vicuna-7b.jsonl.gz"
PAPER = SHARED / "papers" / "pa-grpo.txt"
JUDGES = ("MT-Bench", "JudgeBench", "PreferenceBench", "RewardBench")
QUESTIONS = ("GPQA", "ARC-Challenge", "TinyMMLU")
WORST = 5
PANDALM = 0.7107
"""Accuracy of gpt-3.5-turbo as noted in the project's `data/compute_metrics.py`, which no file here holds."""

Table = tuple[Sequence[str], list[tuple[object, ...]]]


def percent(share: float, digits: int = 2) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f}".replace("-", "−")


def less(ours: float, theirs: float) -> str:
    """Points between two shares."""
    points = round(100 * (ours - theirs), 2)
    return f"{points:+.2f}".replace("-", "−") if points else "0"


def interval(cell: Any) -> str:
    """A share with its interval, in percent."""
    return f"{percent(cell.value, 1)} ({percent(cell.low, 1)}–{percent(cell.high, 1)})"


def recorded_table() -> Table:
    """Every recorded judge of pairs in two orders, audited."""
    rows: list[tuple[object, ...]] = []
    for name, made, ties in recorded():
        metrics = audited(made, methods="all", gold_ties=ties)
        direct, vote = metrics.methods["direct"], metrics.methods["vote"]
        rows.append(
            (
                name,
                len(made.items),
                interval(direct.values["position_rate"][0]),
                interval(direct["consistency"]),
                interval(direct["accuracy"]),
                interval(direct["consistent_accuracy"]),
                percent(direct["accuracy_fractional"].value, 1),
                percent(vote["accuracy_fractional"].value, 1),
                percent(vote["tie_rate"].value, 1),
                metrics.recommendation.state,
            )
        )
    heads = ("judge, data", "items", "first picked", "same verdict", "right", "right in both orders",
             "right, ties shared", "vote right, ties shared", "vote ties", "recommendation")  # fmt: skip
    return heads, rows


def alpaca_table() -> Table:
    """Tabulate `batch` on a judge asked in one order, where the first answer is the better one."""
    made = read(DATA / "alpaca_eval" / ALPACA)
    items = {item.id: item for item in made.items}
    own = [decision for decision in made.decisions if decision.order == (0, 1)]
    fitted = us.methods.Batch().fit(list(made.decisions))
    corrected = [fitted.decide(items[one.item_id], [one]).choice for one in own]
    metrics = audited(made, methods="direct")
    cells = (
        len(made.decisions),
        interval(metrics.methods["direct"].values["position_rate"][0]),
        f"{fitted.priors[0].values[0]:.4f}",
        len(own),
        sum(one.choice == 1 for one in own),
        sum(choice == 1 for choice in corrected),
    )
    heads = ("decisions", "first picked", "prior of the first label", "shown in their own order",
             "won by the second", "after `batch`")  # fmt: skip
    return heads, [cells]


def judgebench_table() -> Table:
    """JudgeBench: its paper, its code, ours."""
    rows: list[tuple[object, ...]] = []
    for name, bucket, own in judgebench():
        theirs = own.published.get("paper_pct")
        code = own.published["jb_accuracy_pct_repo_code"] / 100
        accuracy = number(own.row, "accuracy")
        rows.append(
            (
                name,
                bucket,
                "–" if theirs is None else f"{theirs:.2f}",
                percent(code),
                percent(accuracy),
                percent(own.consistency),
                percent(number(own.row, "consistent_accuracy")),
                less(accuracy, code if theirs is None else theirs / 100),
            )
        )
    heads = ("judge on answers of", "bucket", "paper", "project's code", "accuracy", "consistency",
             "consistent accuracy", "accuracy minus published")  # fmt: skip
    return heads, rows


def llmbar_table() -> Table:
    """LLMBar: its statistics and ours."""
    rows: list[tuple[object, ...]] = []
    for name, figures in expected("llmbar_recorded_judges")["judges"].items():
        made = read(DATA / figures["file"])
        own = judge(name.replace("|", ", "), made.items, made.decisions, figures)
        (outcomes,) = outcomes_from_decisions(made.items, made.decisions)
        orders = outcomes.right.mean(axis=0).tolist()
        ours = (*orders, number(own.row, "consistent_accuracy"), own.consistency)
        fields = ("correct_False", "correct_True", "correct_both", "equal")
        theirs = [share(figures["repo_statistics"][field]) for field in fields]
        cells = [f"{percent(t, 1)} / {percent(o, 1)}" for t, o in zip(theirs, ours, strict=True)]
        rows.append((own.name, *cells, less(own.consistency, theirs[-1])))
    heads = ("judge, data", "right, own order", "right, exchanged", "right in both", "same verdict",
             "same verdict minus published")  # fmt: skip
    return heads, rows


def share(text: str) -> float:
    """The share that `70 / 100 = 70.0%` says."""
    numerator, _, rest = text.partition(" / ")
    return int(numerator) / int(rest.partition(" = ")[0])


def by_rows(own: Judge) -> float:
    """The project's rate: read rows of consistent pairs, and rows whose other half was not read."""
    read_rows = [answer for pair in own.pairs.values() for answer in pair if answer]
    same = round(own.consistency * len(own.pairs))
    alone = sum(bool(a) != bool(b) for a, b in own.pairs.values())
    return (2 * same + alone) / len(read_rows)


def mt_bench_table(judges: Sequence[Judge]) -> Table:
    """The Position-Bias-Analyzer: its rate over rows and ours over pairs."""
    rows: list[tuple[object, ...]] = []
    for own in judges:
        log = own.published["repo_log"]
        published = log["consistent_rows"] / log["rows"]
        shares = (percent(published), percent(by_rows(own)), percent(own.consistency))
        rows.append((own.name, len(own.pairs), *shares, less(own.consistency, published)))
    heads = ("judge", "pairs", "published", "its definition, recomputed", "consistency",
             "consistency minus published")  # fmt: skip
    return heads, rows


def letters_table(judges: Sequence[Judge]) -> Table:
    """PA-GRPO's definition of consistency on every recorded judge."""
    rows: list[tuple[object, ...]] = []
    for own in judges:
        published = own.published["pagrpo_consistency_raw"]
        assert abs(own.letters_differ - published) < 1e-9, own.name
        shares = (percent(own.undecided), percent(own.letters_differ), percent(own.consistency))
        rows.append((own.name, len(own.pairs), *shares, less(own.consistency, own.letters_differ)))
    heads = ("judge", "pairs", "ties or unparsed", "letters differ", "consistency", "difference")
    return heads, rows


def pandalm_table() -> Table:
    """PandaLM: what its script makes of unread answers."""
    folder = DATA / "pandalm"
    made = read(folder / "testset-v1.json.gz", folder / "gpt-3.5-turbo-testset-v1.json.gz")
    strata = outcomes_from_decisions(made.items, made.decisions)
    accuracy = number(measure(strata, resamples=0, gold_ties="class"), "accuracy")
    gold = {item.id: item.gold for item in made.items}
    right = sum(
        ("tie" if decision.choice is None else decision.choice) == gold[decision.item_id]
        for decision in made.decisions
    )
    counted = sum(value is not None for value in gold.values())
    heads = ("judge", "pairs with a majority", "unparsed", "published", "unparsed as ties, recomputed",
             "accuracy, ties as a class", "accuracy minus published")  # fmt: skip
    cells = (
        "gpt-3.5-turbo",
        f"{counted} of {len(gold)}",
        made.counts["unparsed"],
        percent(PANDALM),
        percent(right / counted),
        percent(accuracy),
        less(accuracy, PANDALM),
    )
    return heads, [cells]


def paper_tables() -> Iterator[Table]:
    """Rows of a paper that no judge can produce, by benchmark, and the largest."""
    lines = markdown_rows(PAPER.read_text(encoding="utf-8"))
    rows: list[tuple[object, ...]] = []
    worst = []
    for benchmark in (*JUDGES, *QUESTIONS):
        several = benchmark in QUESTIONS
        checked = check_table(
            lines, only=[benchmark], candidates=4 if several else 2, views=24 if several else 2
        )
        impossible = checked.impossible
        largest = max((bad.excess for bad in impossible), default=0.0)
        cells = len({bad.row for bad in impossible})
        printed = sum(kind.n for kind in checked.kinds)
        rows.append((benchmark, printed, cells, f"{largest:.2f}" if cells else "–"))
        worst += impossible
    yield ("benchmark", "rows", "impossible", "largest excess, points"), rows
    worst.sort(key=lambda bad: -bad.excess)
    named: list[tuple[object, ...]] = [
        (bad.name, bad.rule, f"{bad.excess:.2f}", f"{bad.rounding:.3f}") for bad in worst[:WORST]
    ]
    yield ("row", "rule that fails", "excess, points", "explained by rounding, points"), named


def page_data() -> dict[str, Any]:
    """All tables and figures of the page."""
    judges = list(mt_bench())
    pairs = list(all_pairs(judges))
    impossible, largest = paper_tables()
    made = {
        "recorded": recorded_table(),
        "alpaca": alpaca_table(),
        "judgebench": judgebench_table(),
        "llmbar": llmbar_table(),
        "mt-bench": mt_bench_table(judges),
        "letters": letters_table(pairs),
        "pandalm": pandalm_table(),
        "impossible": impossible,
        "largest": largest,
    }
    tables = {
        name: {"columns": list(heads), "rows": [list(map(str, row)) for row in rows]}
        for name, (heads, rows) in made.items()
    }
    most = 100 * max(own.letters_differ - own.consistency for own in pairs)
    figures = {
        "most": f"{most:.1f} points",
        "haiku": f"{tables['recorded']['rows'][0][3].split()[0]}%",
    }
    return {"tables": tables, "figures": figures, "views": {}}


def main() -> int:
    """Write or check the data."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed data")
    check, data = parser.parse_args().check, page_data()
    if check:
        return int(evidence.load("published") != data)
    evidence.save("published", data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
