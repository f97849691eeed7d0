"""Real recorded judges give the independently computed figures, through `Outcomes` and `measure`."""

from typing import Any

import numpy as np
import pytest
from recorded_data import DATA, expected, needs_data

from unswayed.data.importers import import_files, parse_map
from unswayed.metrics import (
    Outcomes,
    Row,
    flips,
    measure,
    measure_groups,
    outcomes_from_decisions,
    sign_test,
)
from unswayed.metrics.recall_balance import CKLD_RAW, RSTD, recalls

pytestmark = needs_data

JUDGEBENCH = expected("judgebench_recorded_judges.json").get("judges", {})
LLMBAR = expected("llmbar_recorded_judges.json").get("judges", {})
AUTOJ = expected("autoj_recorded.json")
MTBENCH = expected("mtbench_position_bias_judges.json").get("judges", {})
REPEATED = expected("mtbench_repetition_judges.json").get("judges", {})
ARENA = expected("pagrpo_chatbot_arena_recorded.json")
ALPACA = expected("alpaca_eval_logprob_judge.json").get("models", {})


def value(row: Row, name: str) -> float | None:
    return row[name].value


def assert_same(row: Row, strata: tuple[Outcomes, ...], want: dict[str, Any]) -> None:
    """Compare everything that both sides define, the seven contract fields first."""
    close = {
        "consistency_strict": value(row, "consistency"),
        "order_level_accuracy": value(row, "accuracy"),
        "consistent_accuracy": value(row, "consistent_accuracy"),
        "first_position_rate": row.values["position_rate"][0].value,
        "rstd": value(row, "rstd"),
    }
    for name, got in close.items():
        if name in want:
            assert got == pytest.approx(want[name], abs=1e-9), name
    counts = row.beside.counts
    assert counts["unparsed"] == want["verdicts_total"]["unparsed"]
    assert counts["ties"] == want["verdicts_total"]["tie"]
    assert value(row, "unparsed_rate") == pytest.approx(counts["unparsed"] / counts["calls"])
    assert counts["items"] == want["n_pairs"]
    assert row.incomplete == 0
    found = flips(strata)
    assert (found.first, found.last) == (want["both_first"], want["both_second"])
    assert found.n - found.total == want["n_consistent_strict"]
    if want["position_sign_test_p"] is not None:  # None where no pair is a pure position pick
        assert sign_test(found.first, found.last) == pytest.approx(
            want["position_sign_test_p"], rel=1e-9
        )
    if "ckld_AB_only" in want:
        sums = CKLD_RAW.statistics(strata[0]).sum(axis=0, keepdims=True)
        # theirs adds 1e-10 to the shares
        assert CKLD_RAW.values(sums)[0] == pytest.approx(want["ckld_AB_only"], abs=1e-8)
        sums = RSTD.statistics(strata[0]).sum(axis=0, keepdims=True)
        np.testing.assert_allclose(
            recalls(sums)[0], [want["recall_A"], want["recall_B"]], atol=1e-12
        )


def by_order(outcomes: Outcomes) -> list[tuple[int, int]]:
    """Ties and unparsed answers of each presentation."""
    return [(int((column == -2).sum()), int((column == -1).sum())) for column in outcomes.choices.T]


@pytest.mark.parametrize("judge", sorted(JUDGEBENCH))
def test_judgebench(judge: str) -> None:
    want = JUDGEBENCH[judge]
    imported = import_files("judgebench", [DATA / want["file"]])
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    assert imported.counts["items"] == want["n"]
    assert_same(measure(strata, resamples=0), strata, want["buckets"]["Overall"])
    rows, _ = measure_groups(strata, resamples=0)
    assert set(rows) == set(want["buckets"]) - {"Overall"}
    for bucket, row in rows.items():
        of_bucket = strata[0].rows(
            np.array([i for i, group in enumerate(strata[0].groups) if group == bucket])
        )
        assert_same(row, (of_bucket,), want["buckets"][bucket])
        tallies = [
            (
                want["buckets"][bucket][f"tie_order{k}"],
                want["buckets"][bucket][f"unparsed_order{k}"],
            )
            for k in (1, 2)
        ]
        assert by_order(of_bucket) == tallies


@pytest.mark.parametrize("judge", sorted(LLMBAR))
def test_llmbar(judge: str) -> None:
    want = LLMBAR[judge]
    imported = import_files("llmbar", [DATA / want["file"]])
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    assert_same(measure(strata, resamples=0), strata, want)
    accuracy = strata[0].right.mean(axis=0)
    assert accuracy.tolist() == pytest.approx([want["accuracy_order1"], want["accuracy_order2"]])


def test_autoj() -> None:
    want = AUTOJ["dev"]
    imported = import_files("auto", [DATA / "autoj" / "pairs_with_judge_dev.jsonl.gz"])
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    row = measure(strata, resamples=0)
    assert_same(row, strata, want)
    assert row.beside.counts["gold_tie"] == want["labels"]["2"]
    # with ties as a third class, accuracy is the agreement with humans including ties
    classed = measure(strata, resamples=0, gold_ties="class")
    assert value(classed, "accuracy") == pytest.approx(
        (want["autoj_agreement_with_human_incl_ties_order1"] + want["autoj_agreement_order2"]) / 2
    )
    assert value(classed, "consistent_accuracy") == pytest.approx(
        want["autoj_both_correct_incl_ties"]
    )


@pytest.mark.parametrize("judge", sorted(MTBENCH))
def test_mt_bench(judge: str) -> None:
    want = MTBENCH[judge]
    imported = import_files("auto", [DATA / want["file"]])
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    row = measure(strata, resamples=0)
    assert_same(row, strata, want["overall"])
    assert value(row, "accuracy") is None  # there is no gold


@pytest.mark.parametrize("judge", sorted(REPEATED))
def test_the_public_mt_bench_table(judge: str) -> None:
    want = REPEATED[judge]["repetition1"]
    (file,) = DATA.glob(f"mtbench/repetition1_{judge}_*.tsv.gz")
    imported = import_files("auto", [file])
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    row = measure(strata, resamples=0)
    assert row.beside.counts["items"] == want["n_pairs"]
    assert value(row, "consistency") == pytest.approx(want["consistency_strict"], abs=1e-9)
    assert row.values["position_rate"][0].value == pytest.approx(want["first_position_rate"])
    assert row.beside.counts["ties"] == want["verdicts_total"]["tie"]
    assert row.beside.counts["unparsed"] == want["verdicts_total"]["unparsed"]
    assert {decision.model for decision in imported.decisions} == {judge}


def test_repetitions_of_the_public_mt_bench_table_agree_as_published() -> None:
    files = sorted(DATA.glob("mtbench/repetition*_claude-3-haiku-20240307_*.tsv.gz"))
    imported = import_files("mt-bench", files)
    answers: dict[object, set[object]] = {}
    for decision in imported.decisions:
        answers.setdefault((decision.item_id, decision.order), set()).add(decision.choice)
    same = sum(len(choices) == 1 for choices in answers.values()) / len(answers)
    want = REPEATED["claude-3-haiku-20240307"]
    assert len(answers) == want["n_presentations_in_all_3"]
    assert same == pytest.approx(want["repetition_all3_same"])


def test_alpaca_eval() -> None:
    want = ALPACA["vicuna-7b"]
    imported = import_files(
        "auto", [DATA / "alpaca_eval" / "weighted_gpt4_turbo_vicuna-7b.jsonl.gz"]
    )
    assert imported.counts["items"] == want["n_rows"]
    assert imported.counts["decisions"] == want["n_with_logprobs"]
    swapped = sum(decision.order == (1, 0) for decision in imported.decisions)
    assert swapped == want["order_inferred"]["switched"]
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    row = measure(strata, resamples=0)
    assert row.values["position_rate"][0].value == pytest.approx(
        want["first_position_rate"], abs=1e-12
    )
    first = [decision.probs[decision.order[0]] for decision in imported.decisions if decision.probs]
    assert np.mean(first) == pytest.approx(want["mean_p_first"], abs=1e-6)
    # one order per item: order metrics are null, and every item counts as incomplete
    assert value(row, "consistency") is None
    assert row.incomplete == want["n_rows"]


def test_a_foreign_log_with_a_map() -> None:
    path = DATA / "pagrpo_train" / "chatbot_arena_filter_2perm_think_dev.jsonl.gz"
    fields = parse_map(
        "id=extra_info.original_question_id,order=extra_info.permutation,"
        "verdict=extra_info.model_answer,gold=reward_model.ground_truth,gold_is=label"
    )
    imported = import_files("jsonl", [path], fields=fields)
    strata = outcomes_from_decisions(imported.items, imported.decisions)
    assert_same(measure(strata, resamples=0), strata, ARENA["dev"])


def test_the_format_is_told_from_the_first_record() -> None:
    from unswayed.data.importers import detect

    kinds = {
        "judgebench": next(DATA.glob("judgebench/outputs*")),
        "llmbar": next(DATA.glob("llmbar/*Vanilla*")),
        "autoj": DATA / "autoj" / "pairs_with_judge_dev.jsonl.gz",
        "alpaca-eval": next(DATA.glob("alpaca_eval/*")),
        "mt-bench": next(DATA.glob("mtbench/position_bias*")),
    }
    for kind, path in kinds.items():
        assert detect(path) == kind


def test_judges_of_the_same_pairs_join_without_mixing() -> None:
    files = sorted(DATA.glob("llmbar/Natural_*Vanilla.json.gz"))
    imported = import_files("llmbar", files)
    assert imported.counts["items"] == 100
    assert imported.counts["decisions"] == 200 * len(files)
    assert {decision.model for decision in imported.decisions} == {
        file.name.removesuffix(".json.gz") for file in files
    }
