"""Every field of `expected/*.json`: through the importers, from `unswayed audit` where it has the figure.

What a file states without its own figure being computable here is named in `ABSENT` with the reason.
"""

import csv
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pytest
from foreign_files import table
from pair_figures import figures, pairs_of, symbol

import unswayed as us
from needs import DATA, recorded
from unswayed.cli import main
from unswayed.data.importers import Imported, import_files, parse_map
from unswayed.metrics.correlation import Pairs, kendall, pearson, spearman
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, iter_objects

pytestmark = recorded

PUBLISHED = ("repo_", "paper_", "published_", "pagrpo_")
"""Beginnings of fields that restate somebody's own figure: docs/evidence/published.md."""
ABSENT = {
    "file": "where the rows lie",
    "matches_repo_statistics": "compares two published figures",
    "matches_paper_2dp": "compares two published figures",
    "tie_rule": "a sentence",
}
MAP = (
    "id=extra_info.original_question_id,order=extra_info.permutation,"
    "verdict=extra_info.model_answer,gold=reward_model.ground_truth,gold_is=label"
)
ARENA_FILE = DATA / "pagrpo_train" / "chatbot_arena_filter_2perm_think_dev.jsonl.gz"


def expected(name: str) -> dict[str, Any]:
    """Figures of a file, {} where the data are absent."""
    path = DATA / "expected" / name
    return json.loads(path.read_text()) if path.is_file() else {}


JUDGEBENCH = expected("judgebench_recorded_judges.json").get("judges", {})
LLMBAR = expected("llmbar_recorded_judges.json").get("judges", {})
MTBENCH = expected("mtbench_position_bias_judges.json").get("judges", {})
REPEATED = expected("mtbench_repetition_judges.json").get("judges", {})
RUBRICS = expected("prometheus_rubric_gpt4_scores.json").get("sets", {})
HANNA = expected("hanna_llm_vs_human.json").get("splits", {}).get("dev", {})


def assert_same(got: Mapping[str, Any], want: Mapping[str, Any], where: str = "") -> None:
    """Every field that is wanted is there and equal; one that is neither is named."""
    for name, value in want.items():
        if name.startswith(PUBLISHED) or name in ABSENT:
            continue
        assert name in got, f"{where}{name} is not computed"
        if isinstance(value, Mapping):
            assert_same(got[name], value, f"{where}{name}.")
        elif value is None:
            assert got[name] is None, f"{where}{name}"
        else:
            sliver = 1e-8 if name == "ckld_AB_only" else 1e-9  # 1e-10 is added to the shares
            assert got[name] == pytest.approx(value, rel=1e-9, abs=sliver), f"{where}{name}"


@cache
def imported(file: Path) -> Imported:
    fields = parse_map(MAP) if file == ARENA_FILE else None
    return import_files("jsonl" if fields else "auto", [file], fields=fields)


def audited(made: Imported, **options: Any) -> Any:
    """The metrics of an audit of these decisions."""
    given = {"resamples": 100, "methods": "direct", **options}
    result = us.audit(None, list(made.items), decisions=made.decisions, **given)
    assert made.counts["bad records"] == 0
    return result.metrics


AUDITED: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "n_pairs": lambda row: row["counts"]["items"],
    "consistency_strict": lambda row: row["consistency"]["value"],
    "first_position_rate": lambda row: row["position_rate"][0]["value"],
    "order_level_accuracy": lambda row: row["accuracy"]["value"],
    "consistent_accuracy": lambda row: row["consistent_accuracy"]["value"],
    "rstd": lambda row: row["rstd"]["value"],
    "ckld_AB_only": lambda row: row["ckld_raw"]["value"],
}
"""The fields that an audit prints; all others are counted from the decisions."""
FLIPS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "both_first": lambda flips: flips["first"],
    "both_second": lambda flips: flips["last"],
    "n_consistent_strict": lambda flips: flips["n"] - flips["total"],
}
"""Those that it prints of all pairs only."""


def with_audit(
    counted: dict[str, Any], row: Mapping[str, Any], flips: Mapping[str, Any]
) -> dict[str, Any]:
    """The figures with those of the audit in place of the counted ones."""
    own = {name: read(row) for name, read in AUDITED.items() if name in counted}
    own |= {name: read(flips) for name, read in FLIPS.items() if flips}
    totals = {"tie": row["counts"]["ties"], "unparsed": row["counts"]["unparsed"]}
    return {**counted, **own, "verdicts_total": {**counted["verdicts_total"], **totals}}


def with_overall(counted: dict[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
    return with_audit(counted, metrics["methods"]["direct"], metrics["flips"])


@pytest.mark.parametrize("folder", ["pagrpo_train", "pandalm"])
def test_other_recorded_files_load_without_naming_their_format(folder: str) -> None:
    """Those of which no figure is kept, or that another test reads by a map."""
    files = sorted(DATA.glob(f"{folder}/*.gz"))
    assert files
    for file in files:
        made = import_files("auto", [file])
        assert made.items or made.decisions, file
        assert made.counts["bad records"] == 0


# pairs with gold


def net_votes(items: Sequence[Item], decisions: Iterable[Decision]) -> dict[str, Any]:
    """JudgeBench's own accuracy: pairs whose two verdicts, +1 or -1 each, favour the label."""
    gold = {item.id: item.gold for item in items}
    votes: Counter[str] = Counter(dict.fromkeys(gold, 0))
    first = 0
    for decision in decisions:
        if decision.item_id in gold and decision.choice in (0, 1):
            right = decision.choice == gold[decision.item_id]
            votes[decision.item_id] += 1 if right else -1
            first += right and decision.order == (0, 1)
    n = len(gold)
    right, wrong = (sum(sign * vote > 0 for vote in votes.values()) for sign in (1, -1))
    return {
        "jb_n_correct": right,
        "jb_n_incorrect": wrong,
        "jb_n_tie": n - right - wrong,
        "jb_accuracy_pct_independent": 100 * right / n,
        "jb_accuracy_pct_repo_code": 100 * right / n,
        "jb_single_order_pct_repo_code": 100 * first / n,
    }


def score_notes(decisions: Iterable[Decision]) -> dict[str, Any]:
    """A reward model's scores: equal ones, and what the order changed."""
    by_item: dict[str, list[tuple[float | None, ...]]] = defaultdict(list)
    for decision in decisions:
        assert decision.scores is not None
        by_item[decision.item_id].append(decision.scores)
    differences = [
        abs((a or 0.0) - (b or 0.0))
        for own, other in by_item.values()
        for a, b in zip(own, other, strict=True)
    ]
    ties = sum(own[0] == own[1] for own, _ in by_item.values())
    return {"exact_ties_order1": ties, "max_abs_score_diff_between_orders": max(differences)}


@pytest.mark.parametrize("judge", sorted(JUDGEBENCH))
def test_judgebench(judge: str) -> None:
    want = JUDGEBENCH[judge]
    file = DATA / want["file"]
    made = imported(file)
    metrics = audited(made)
    rows = {bucket: group["direct"] for bucket, group in metrics["groups"].items()}
    rows["Overall"] = metrics["methods"]["direct"]
    assert set(rows) == set(want["buckets"])
    got: dict[str, Any] = {"n": len(made.items), "buckets": {}}
    if "score_notes" in want:
        got["score_notes"] = score_notes(made.decisions)
    for bucket, row in rows.items():
        items = [item for item in made.items if bucket in ("Overall", item.group)]
        counted = figures(items, made.decisions) | net_votes(items, made.decisions)
        flips = metrics["flips"] if bucket == "Overall" else {}
        got["buckets"][bucket] = with_audit(counted, row, flips)
    assert_same(got, want)


@pytest.mark.parametrize("judge", sorted(LLMBAR))
def test_llmbar(judge: str) -> None:
    want = LLMBAR[judge]
    file = DATA / want["file"]
    made = imported(file)
    counted = figures(made.items, made.decisions)
    by_item: dict[str, set[object]] = defaultdict(set)
    for decision in made.decisions:
        by_item[decision.item_id].add(decision.choice)
    counted["n_equal_repo_definition"] = sum(len(choices) == 1 for choices in by_item.values())
    assert_same(with_overall(counted, audited(made)), want)


def test_judges_of_the_same_pairs_join_without_mixing() -> None:
    files = sorted(DATA.glob("llmbar/Natural_*Vanilla.json.gz"))
    made = import_files("llmbar", files)
    assert made.counts["items"] == 100
    assert made.counts["decisions"] == 200 * len(files)
    names = {file.name.removesuffix(".json.gz") for file in files}
    assert {decision.model for decision in made.decisions} == names


def test_autoj() -> None:
    want = expected("autoj_recorded.json")["dev"]
    file = DATA / "autoj" / "pairs_with_judge_dev.jsonl.gz"
    made = imported(file)
    metrics = audited(made)
    row = metrics["methods"]["direct"]
    got = with_overall(figures(made.items, made.decisions), metrics)
    gold = {item.id: item.gold for item in made.items}
    agreed: Counter[tuple[int, ...]] = Counter(
        d.order for d in made.decisions if d.choice == gold[d.item_id]
    )
    n = len(made.items)
    classed = audited(made, gold_ties="class")
    got["autoj_agreement_with_human_incl_ties_order1"] = agreed[0, 1] / n
    got["autoj_agreement_order2"] = agreed[1, 0] / n
    ties = classed["methods"]["direct"]
    got["autoj_both_correct_incl_ties"] = ties["consistent_accuracy"]["value"]
    assert ties["accuracy"]["value"] == pytest.approx(sum(agreed.values()) / (2 * n))
    got["autoj_consistency"] = row["consistency"]["value"]
    labels = Counter("2" if value == "tie" else str(value) for value in gold.values())
    got["labels"] = dict(labels)
    assert row["counts"]["gold_tie"] == labels["2"]
    assert_same(got, want)


def test_chatbot_arena() -> None:
    want = expected("pagrpo_chatbot_arena_recorded.json")["dev"]
    made = imported(ARENA_FILE)
    got = with_overall(figures(made.items, made.decisions), audited(made))
    # the released rows as items, by their own importer: the displayed letter flips with the order
    items = import_files("auto", [ARENA_FILE]).items
    gold = {item.id.removeprefix("arena/"): item.gold for item in items}
    assert {item.id: item.gold for item in made.items} == gold
    letters: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
    for _, text in iter_objects(ARENA_FILE):
        record = json.loads(bytes(text))
        extra = record["extra_info"]
        displayed = record["reward_model"]["ground_truth"], extra["winner"]
        letters[extra["original_question_id"]][extra["permutation"]] = displayed
    flips = [own[0][0] != own[1][0] for own in letters.values()]
    got["gold_flips"] = sum(flips)
    got["winner"] = dict(Counter(own[0][1] for own in letters.values()))
    agree = [(own[0][0] == "A") == (own[0][1] == "model_a") for own in letters.values()]
    got["gold_A_iff_winner_model_a_in_perm0"] = sum(agree)
    assert_same(got, want)


# pairs without gold


@pytest.mark.parametrize("judge", sorted(MTBENCH))
def test_mt_bench(judge: str) -> None:
    want = MTBENCH[judge]
    file = DATA / want["file"]
    made = imported(file)
    metrics = audited(made)
    overall = with_overall(figures(made.items, made.decisions), metrics)
    letters = Counter(symbol(decision) for decision in made.decisions)
    tags = [set(re.findall(r"\[\[([A-D])\]\]", decision.text or "")) for decision in made.decisions]
    pairs = pairs_of(made.decisions)
    overall["rows"] = len(made.decisions)
    overall["pairs_missing_swap"] = metrics["methods"]["direct"].get("incomplete", 0)
    overall["verdict_letters"] = {
        "A": letters["A"],
        "B": letters["B"],
        "C": letters["T"],
        "None": letters["None"],
    }
    overall["rows_with_several_different_verdict_tags"] = sum(len(own) > 1 for own in tags)
    overall["lone_parsed_rows_counted_consistent_by_repo"] = sum(
        (own == "None") != (other == "None") for own, other in pairs.values()
    )
    got = {"overall": overall, "per_model": {}}
    for model in want["per_model"]:
        items = [item for item in made.items if item.candidates_by[1] == model]
        counted = figures(items, made.decisions)
        both = counted["raw_pair_counts"]
        mine, reference = both.get("B|A", 0), both.get("A|B", 0)
        draws = counted["n_pairs"] - mine - reference
        got["per_model"][model] = counted | {
            "model_wins_consistent": mine,
            "ref_wins_consistent": reference,
            "winrate_inconsistent_as_tie": (mine + draws / 2) / counted["n_pairs"],
        }
    assert_same(got, want)


def repetition(judge: str, k: int) -> list[Path]:
    return list(DATA.glob(f"mtbench/repetition{k}_{judge}_*.tsv.gz"))


@pytest.mark.parametrize(
    ("judge", "k"),
    [(judge, k) for judge in sorted(REPEATED) for k in (1, 2, 3) if repetition(judge, k)],
)
def test_repetitions(judge: str, k: int) -> None:
    files = repetition(judge, k)
    made = import_files("auto", files)
    got = figures(made.items, made.decisions)
    if k == 1:
        got = with_overall(got, audited(made))
    got["rows"] = len(made.decisions)
    got["missing_swap"] = len(made.items) - got["n_pairs"]
    assert_same(got, REPEATED[judge][f"repetition{k}"])


def test_repetitions_together() -> None:
    checked = 0
    for judge, want in REPEATED.items():
        files = [file for k in (1, 2, 3) for file in repetition(judge, k)]
        if len(files) < 3:
            continue  # gpt-3.5-turbo-0125: only its first repetition is in shared/data
        made = import_files("auto", files)
        answers: dict[object, list[object]] = defaultdict(list)
        for decision in made.decisions:
            answers[decision.item_id, decision.order].append(decision.choice)
        most = [Counter(own).most_common(1)[0][1] / 3 for own in answers.values()]
        got = {
            "n_presentations_in_all_3": len(answers),
            "repetition_all3_same": fmean(share == 1 for share in most),
            "repetition_majority_share_mean": fmean(most),
        }
        assert_same(got, {name: value for name, value in want.items() if name in got})
        checked += 1
    assert checked > 0


# scores


def test_alpaca_eval() -> None:
    for model, want in expected("alpaca_eval_logprob_judge.json")["models"].items():
        (file,) = DATA.glob(f"alpaca_eval/*_{model}.jsonl.gz")
        made = imported(file)
        row = audited(made)["methods"]["direct"]
        rows = [json.loads(bytes(text)) for _, text in iter_objects(file)]
        first = [d.probs[d.order[0]] for d in made.decisions if d.probs]
        second = [row["preference"] - 1 for row in rows]
        orders = Counter(decision.order for decision in made.decisions)
        got = {
            "n_rows": made.counts["items"],
            "n_with_logprobs": made.counts["decisions"],
            "n_preference_null": made.counts.get("left out: no preference was recorded", 0),
            "order_inferred": {
                "switched": orders[1, 0],
                "not_switched": orders[0, 1],
                "no_logprob": made.counts["records"] - made.counts["decisions"],
            },
            "reconstruction_mismatch": made.counts["bad records"],
            "first_position_rate": row["position_rate"][0]["value"],
            "mean_p_first": fmean(first),
            "mean_p_generator2": fmean(second),
            "win_rate_generator2_pct": 100 * fmean(second),
        }
        # the importer's probabilities are the label tokens' own: preference has ten digits
        assert got["mean_p_first"] == pytest.approx(want["mean_p_first"], abs=1e-6)
        assert_same(got | {"mean_p_first": want["mean_p_first"]}, want)


def correlations(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    pairs = Pairs.of(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    once = pairs.counts(np.ones((1, len(x))))
    return {
        "n": len(x),
        "spearman": float(spearman(pairs, once)[0]),
        "pearson": float(pearson(pairs, once)[0]),
        "kendall": float(kendall(pairs, once)[0]),
    }


def scores_of(made: Imported) -> dict[tuple[str, int], float]:
    """The value of the chosen level, by item and sample."""
    values = {item.id: item.values or () for item in made.items}
    return {
        (d.item_id, d.sample): values[d.item_id][d.choice]
        for d in made.decisions
        if isinstance(d.choice, int)
    }


@pytest.mark.parametrize("name", sorted(RUBRICS))
def test_prometheus(name: str) -> None:
    (file,) = DATA.glob(f"*/{name.replace(':', '_')}.json.gz")
    made = imported(file)
    scores = scores_of(made)
    by_item = [[scores[item.id, k] for k in range(3)] for item in made.items]
    sources: dict[str, list[float]] = defaultdict(list)
    for item, own in zip(made.items, by_item, strict=True):
        sources[item.meta["response_source"]] += own
    got: dict[str, Any] = {
        "n": len(made.items),
        "n_complete": sum(len(own) == 3 for own in by_item),
        "lengths": {str(k): n for k, n in Counter(map(len, by_item)).items()},
        "score_hist": {f"{v:g}": n for v, n in Counter(scores.values()).items()},
        "mean": fmean(scores.values()),
        "exact_3": fmean(len(set(own)) == 1 for own in by_item),
        "mean_within_std": fmean(map(pstdev, by_item)),
        "by_source": {source: fmean(own) for source, own in sources.items()},
    }
    for a, b in combinations(range(3), 2):
        columns = ([own[k] for own in by_item] for k in (a, b))
        got[f"rep{a + 1}{b + 1}"] = correlations(*columns)
    assert_same(got, RUBRICS[name])


SHORT = {"Relevance": "RE", "Coherence": "CH", "Empathy": "EM", "Surprise": "SU", "Engagement": "EG", "Complexity": "CX"}  # fmt: skip
HANNA_FILE = DATA / "hanna" / "hanna_scores_long_dev.csv.gz"


def by_system(items: Sequence[Item], values: Sequence[float]) -> list[float]:
    systems: dict[str, list[float]] = defaultdict(list)
    for item, value in zip(items, values, strict=True):
        systems[item.meta["system"]].append(value)
    return [fmean(systems[name]) for name in sorted(systems)]


def test_hanna() -> None:
    made = imported(HANNA_FILE)
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in made.items:
        groups[str(item.group)].append(item)
    ratings = {
        SHORT[name]: [item.meta["raters"] for item in items] for name, items in groups.items()
    }
    pairs = tuple(combinations(range(3), 2))
    got: dict[str, Any] = {
        "n_stories": len({item.meta["story"] for item in made.items}),
        "systems": sorted({item.meta["system"] for item in made.items}),
        "human_means": {
            name: fmean(float(i.gold) for i in items) for name, items in groups.items()
        },  # type: ignore[arg-type]
        "human_rating_histogram": {
            short: {f"{v:g}": n for v, n in Counter(r for own in of for r in own).items()}
            for short, of in ratings.items()
        },
        "human_agreement_spearman": {
            short: fmean(
                correlations([own[a] for own in of], [own[b] for own in of])["spearman"]
                for a, b in pairs
            )
            for short, of in ratings.items()
        },
        "judges": defaultdict(dict),
    }
    choices = {(d.model, d.item_id): d.choice for d in made.decisions}
    for judge, cells in HANNA["judges"].items():
        for key in cells:
            variant, _, criterion = key.partition("_")
            items = groups[criterion]
            given = [
                (item, (item.values or ())[choice])
                for item in items
                if isinstance(choice := choices.get((f"{judge}/{variant}", item.id)), int)
            ]
            judged, scores = [item for item, _ in given], [score for _, score in given]
            human = [float(item.gold) for item in judged]  # type: ignore[arg-type]
            systems = by_system(judged, scores), by_system(judged, human)
            got["judges"][judge][key] = correlations(scores, human) | {
                "system_spearman": correlations(*systems)["spearman"],
                "n_missing": len(items) - len(given),
            }
    assert got["systems"] == HANNA["systems"]
    assert_same(got, {name: value for name, value in HANNA.items() if name != "systems"})


def test_hanna_has_correlations_per_criterion(tmp_path: Path) -> None:
    with gzip.open(HANNA_FILE, "rt", encoding="utf-8", newline="") as file:
        stories = list(csv.DictReader(file))
    judged = re.compile(r"story_id|system|human\d_.*|ChatGPT_p1_.*")
    rows = [{name: row[name] for name in row if judged.fullmatch(name)} for row in stories]
    metrics = audited(import_files("auto", [table(tmp_path / "one.csv.gz", *rows)]))
    for criterion in SHORT:
        want = HANNA["judges"]["ChatGPT"][f"prompt1_{criterion}"]
        row = metrics["groups"][criterion]["direct"]
        for metric, name in (
            ("spearman", "spearman"),
            ("pearson", "pearson"),
            ("kendall_tau", "kendall"),
        ):
            assert row[metric]["value"] == pytest.approx(want[name], abs=1e-9)


def test_summeval() -> None:
    want = expected("summeval_expert_scores.json")["splits"]["dev"]
    file = DATA / "summeval" / "summaries_expert_scores_dev.jsonl.gz"
    rows = [json.loads(bytes(text)) for _, text in iter_objects(file)]
    names = list(want["mean"])
    experts = {name: [row["expert_mean"][name] for row in rows] for name in names}
    length = [float(len(row["summary"].split())) for row in rows]
    got: dict[str, Any] = {
        "n": len(rows),
        "docs": len({row["doc_id"] for row in rows}),
        "systems": len({row["system"] for row in rows}),
        "mean": {name: fmean(own) for name, own in experts.items()},
        "std_pop": {name: pstdev(own) for name, own in experts.items()},
        "share_exact_5": {name: fmean(v == 5 for v in own) for name, own in experts.items()},
        "length_baseline": {},
        "between_dims_spearman": {},
    }
    for name, own in experts.items():
        documents = [
            correlations(*columns)["spearman"] for columns in split(rows, "doc_id", length, own)
        ]
        systems = [list(map(fmean, columns)) for columns in split(rows, "system", length, own)]
        x, y = zip(*systems, strict=True)
        got["length_baseline"][name] = correlations(length, own) | {
            "summary_level_spearman": float(np.nanmean(documents)),  # constant ones are dropped
            "system_level_spearman": correlations(x, y)["spearman"],
        }
    for a, b in combinations(names, 2):
        rho = correlations(experts[a], experts[b])["spearman"]
        got["between_dims_spearman"][f"{a}~{b}"] = rho
    assert_same(got, want)


def split(
    rows: Sequence[Mapping[str, Any]], field: str, x: Sequence[float], y: Sequence[float]
) -> list[tuple[list[float], list[float]]]:
    """Two columns apart by the value of a field."""
    parts: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row, left, right in zip(rows, x, y, strict=True):
        parts[row[field]][0].append(left)
        parts[row[field]][1].append(right)
    return [parts[name] for name in sorted(parts)]


# the row `macro` of an audit: the plain mean of accuracies by source, here of JudgeBench

FILES = sorted((DATA / "judgebench").glob("outputs_*.jsonl.gz"))
SWAPPED = {"A>B": "B>A", "B>A": "A>B"}


def by_source(file: Path) -> dict[str, dict[str, list[float]]]:
    """Per source and method what each pair scores, by hand: a direct call in either order counts half.

    The second judgment is in the letters of the swapped pair. A vote of two that disagree is a tie,
    which is wrong, and an answer that was not read has no vote.
    """
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            first, second = (judgment["decision"] for judgment in row["judgments"])
            second = SWAPPED.get(second, second)
            right = row["label"]
            scores[row["source"]]["direct"].append(fmean([first == right, second == right]))
            votes = {first, second} - {None}
            scores[row["source"]]["vote"].append(float(votes == {right}))
    return scores


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_macro_average_is_the_mean_of_the_sources(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions, items = str(tmp_path / "decisions.jsonl"), str(tmp_path / "items.jsonl")
    assert main(["import", "judgebench", str(file), "--out", decisions, "--items", items]) == 0
    capsys.readouterr()
    command = ["audit", items, "--decisions", decisions, "--json", "--out", str(tmp_path / "run")]
    options = ["--methods", "direct,vote", "--group-by", "meta.source", "--resamples", "100"]
    assert main([*command, *options]) == 0
    metrics = json.loads(capsys.readouterr().out)
    want = by_source(file)
    assert metrics["groups"].keys() == want.keys()
    assert len(want) > 10
    for method in ("direct", "vote"):
        means = {source: fmean(scores[method]) for source, scores in want.items()}
        for source, mean in means.items():
            assert metrics["groups"][source][method]["accuracy"]["value"] == pytest.approx(mean)
        average = metrics["macro"][method]["accuracy"]
        assert average["value"] == pytest.approx(fmean(means.values()))
        assert average["groups"] == len(want)
        pooled = metrics["methods"][method]["accuracy"]["value"]
        assert abs(average["value"] - pooled) > 0.005  # sources differ in size and difficulty
