"""Write published.md: what projects publish about their recorded judges beside what this package makes of them.

    python docs/published.py            # needs ../shared/data and ../shared/papers beside the checkout
    python docs/published.py --check    # exit code 1 if the committed page differs

No figure of the page is typed but one (`PANDALM`): published ones are read from `expected/*.json` of that folder (fields
`repo_*`, `paper_*`, `pagrpo_*`) and from a paper's own tables, ours are measured from the recorded files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from published_judges import (
    DATA,
    SHARED,
    Judge,
    all_pairs,
    expected,
    judge,
    judgebench,
    mt_bench,
    number,
    read,
)

from unswayed.metrics import measure, outcomes_from_decisions
from unswayed.metrics.printed_table import check_table, markdown_rows

DOCS = Path(__file__).parent
PAPER = SHARED / "papers" / "pa-grpo.txt"
JUDGES = ("MT-Bench", "JudgeBench", "PreferenceBench", "RewardBench")
QUESTIONS = ("GPQA", "ARC-Challenge", "TinyMMLU")
WORST = 5
PANDALM = 0.7107
"""Accuracy of gpt-3.5-turbo as noted in the project's `data/compute_metrics.py`, which no file here holds."""


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def percent(share: float, digits: int = 2) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f}"


def less(ours: float, theirs: float) -> str:
    """Points between two shares."""
    points = round(100 * (ours - theirs), 2)
    return f"{points:+.2f}" if points else "0"


# JudgeBench


def judgebench_section() -> str:
    """JudgeBench: its paper, its code, ours."""
    rows = []
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
    heads = ("judge, answers of", "bucket", "paper", "project's code", "accuracy", "consistency",
             "consistent accuracy", "accuracy less published")  # fmt: skip
    return f"""## JudgeBench

The project's accuracy is per pair: each of the two verdicts counts +1 if it is right and −1 if it is the
opposite, a tie or an unread answer 0, and a pair is right above 0. So a pair of which one verdict is right and
the other a tie is right as a whole, while our accuracy counts it half, and one with a right and an opposite verdict is
wrong as a whole, and half here. In %:

```
unswayed import judgebench OUTPUTS.jsonl.gz --out decisions.jsonl --items items.jsonl
unswayed audit items.jsonl --decisions decisions.jsonl --methods direct
```

{table(heads, rows)}"""


# LLMBar


def llmbar_section() -> str:
    """LLMBar: its statistics beside ours."""
    rows = []
    for name, figures in expected("llmbar_recorded_judges")["judges"].items():
        made = read(DATA / figures["file"])
        own = judge(name.replace("|", ", "), made.items, made.decisions, figures)
        (outcomes,) = outcomes_from_decisions(made.items, made.decisions)
        orders = outcomes.right.mean(axis=0).tolist()
        both = number(own.row, "consistent_accuracy")
        ours = (*orders, both, own.consistency)
        fields = ("correct_False", "correct_True", "correct_both", "equal")
        theirs = [share(figures["repo_statistics"][field]) for field in fields]
        cells = [f"{percent(t, 1)} / {percent(o, 1)}" for t, o in zip(theirs, ours, strict=True)]
        rows.append((own.name, *cells, less(own.consistency, theirs[-1])))
    heads = ("judge, data", "right, own order", "right, exchanged", "right in both", "same verdict",
             "same verdict less published")  # fmt: skip
    return f"""## LLMBar

Published (`statistics.json` of the project) / ours, in %. Its "equal" compares strings, so two answers that
could not be read are equal there and disagree here; in these files no pair has two of them.

```
unswayed import llmbar RESULT.json.gz --out decisions.jsonl --items items.jsonl
unswayed audit items.jsonl --decisions decisions.jsonl --methods direct
```

{table(heads, rows)}"""


def share(text: str) -> float:
    """The share that `70 / 100 = 70.0%` says."""
    numerator, _, rest = text.partition(" / ")
    return int(numerator) / int(rest.partition(" = ")[0])


# MT-Bench


def by_rows(own: Judge) -> float:
    """The project's rate: read rows of consistent pairs, and rows whose other half was not read."""
    read_rows = [answer for pair in own.pairs.values() for answer in pair if answer]
    same = round(own.consistency * len(own.pairs))
    alone = sum(bool(a) != bool(b) for a, b in own.pairs.values())
    return (2 * same + alone) / len(read_rows)


def mt_bench_section(judges: Sequence[Judge]) -> str:
    """The Position-Bias-Analyzer: its rate over rows beside ours over pairs."""
    rows = []
    for own in judges:
        log = own.published["repo_log"]
        published = log["consistent_rows"] / log["rows"]
        rows.append(
            (
                own.name,
                len(own.pairs),
                percent(published),
                percent(by_rows(own)),
                percent(own.consistency),
                less(own.consistency, published),
            )
        )
    heads = ("judge", "pairs", "published", "its definition, recomputed", "consistency",
             "consistency less published")  # fmt: skip
    return f"""## MT-Bench by the Position-Bias-Analyzer

The project's rate is over the rows that were read: answers that were not read are left out, and a row whose
other half was not read counts as consistent. Ours is over pairs, and what was not read agrees with nothing. In %:

```
unswayed import mt-bench RECORD.tsv.gz --out decisions.jsonl --items items.jsonl
unswayed audit items.jsonl --decisions decisions.jsonl --methods direct
```

{table(heads, rows)}"""


# one definition on all judges


def letters_section(judges: Sequence[Judge]) -> str:
    """PA-GRPO's definition of consistency on every recorded judge."""
    rows = []
    for own in judges:
        published = own.published["pagrpo_consistency_raw"]
        assert abs(own.letters_differ - published) < 1e-9, own.name
        rows.append(
            (
                own.name,
                len(own.pairs),
                percent(own.undecided),
                percent(own.letters_differ),
                percent(own.consistency),
                less(own.consistency, own.letters_differ),
            )
        )
    most = 100 * max(own.letters_differ - own.consistency for own in judges)
    heads = ("judge", "pairs", "ties or unread", "letters differ", "consistency", "difference")
    return f"""## Where an unread answer is consistent

The evaluation published with PA-GRPO calls a pair consistent if its two answers differ as strings (in the
exchanged order the same verdict is the other letter). An answer that could not be read, or a tie, differs from every
letter: with one such answer a pair is "consistent", with two equal ones it is not. On recorded judges, in %:

{table(heads, rows)}

Without ties and unread answers both are one. With them letters that differ overstate consistency by up to
{most:.1f} points here; pairs of two ties, which are one verdict and no different letters, pull the other way, and are rarer."""


# PandaLM


def pandalm_section() -> str:
    """PandaLM: what its script makes of unread answers."""
    folder = DATA / "pandalm"
    made = read(folder / "testset-v1.json.gz", folder / "gpt-3.5-turbo-testset-v1.json.gz")
    strata = outcomes_from_decisions(made.items, made.decisions)
    row = measure(strata, resamples=0, gold_ties="class")
    gold = {item.id: item.gold for item in made.items}
    right = sum(
        ("tie" if decision.choice is None else decision.choice) == gold[decision.item_id]
        for decision in made.decisions
    )
    counted = sum(value is not None for value in gold.values())
    accuracy = number(row, "accuracy")
    heads = ("judge", "pairs with a majority", "unread", "published", "unread as ties, recomputed",
             "accuracy, ties a class", "accuracy less published")  # fmt: skip
    cells = (
        "gpt-3.5-turbo",
        f"{counted} of {len(gold)}",
        made.counts["unparsed"],
        percent(PANDALM),
        percent(right / counted),
        percent(accuracy),
        less(accuracy, PANDALM),
    )
    return f"""## PandaLM

The project's script counts an answer that could not be read as a tie, and where three annotators disagree takes
the first. Here the first is wrong and the second has no gold. One order was asked. In %:

```
unswayed import pandalm testset-v1.json.gz gpt-3.5-turbo-testset-v1.json.gz --out decisions.jsonl --items items.jsonl
unswayed audit items.jsonl --decisions decisions.jsonl --gold-ties class
```

{table(heads, [cells])}"""


# a paper's tables


def paper_section() -> str:
    """Rows of a paper that no judge can produce."""
    lines = markdown_rows(PAPER.read_text(encoding="utf-8"))
    rows = []
    worst = []
    for benchmark in (*JUDGES, *QUESTIONS):
        several = benchmark in QUESTIONS
        checked = check_table(
            lines, only=[benchmark], candidates=4 if several else 2, views=24 if several else 2
        )
        impossible = checked.impossible
        largest = max((bad.excess for bad in impossible), default=0.0)
        cells = len({bad.row for bad in impossible})
        rows.append(
            (
                benchmark,
                sum(kind.n for kind in checked.kinds),
                cells,
                f"{largest:.2f}" if cells else "–",
            )
        )
        worst += impossible
    worst.sort(key=lambda bad: -bad.excess)
    named = [
        (bad.name, bad.rule, f"{bad.excess:.2f}", f"{bad.rounding:.3f}") for bad in worst[:WORST]
    ]
    return f"""## Cells that cannot be

The tables of the PA-GRPO paper (arXiv 2603.21016) print accuracy, consistency and consistent accuracy of judges in two
orders and of four options in 24. The rules of [`check-table`](../reference/metrics.md#the-self-check), its rows counted as often as they are
printed:

```
unswayed check-table PAPER.md --only MT-Bench --only JudgeBench --only PreferenceBench --only RewardBench
unswayed check-table PAPER.md --only GPQA --only ARC --only TinyMMLU --candidates 4 --orders 24
```

{table(("benchmark", "rows", "impossible", "largest excess, points"), rows)}

The largest:

{table(("row", "rule that fails", "by, points", "rounding explains"), named)}

A definition that counts an unread answer as consistent (above) can make such rows without an error of
arithmetic: an excess of x points needs at least 2x % of the pairs to have one unread answer."""


def page() -> str:
    """The whole page."""
    judges = list(mt_bench())
    parts = [
        "<!-- Written by docs/published.py from recorded files; do not edit. -->",
        "# Published figures beside ours",
        "What projects publish about judges whose outputs they recorded, and what `unswayed import` and\n"
        "`unswayed audit` make of the same outputs. `python docs/published.py` writes this page from the folder\n"
        "`shared` beside the checkout, which is not part of the project; no row of theirs is shown. Some files there\n"
        "are fixed subsets: what was published about a whole set is not compared with a part. Files whose projects\n"
        "publish no such figure (AlpacaEval, HANNA, Prometheus, SummEval) are checked against independent ones\n"
        "instead ([recorded judges](recorded-judges.md#checked-against-figures-computed-elsewhere)).",
        judgebench_section(),
        llmbar_section(),
        mt_bench_section(judges),
        letters_section(list(all_pairs(judges))),
        pandalm_section(),
        paper_section(),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed page")
    arguments = parser.parse_args()
    target, text = DOCS / "evidence" / "published.md", page()
    if arguments.check:
        return int(target.read_text(encoding="utf-8") != text)
    target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
