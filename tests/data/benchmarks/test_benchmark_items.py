"""What rows of each benchmark mean, quirk by quirk, on rows made in their layout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from published_rows import (
    ROWS,
    Rows,
    arc,
    battle,
    chosen,
    gpqa,
    listed,
    pair,
    preferred,
    question,
    rated,
    said,
    scored,
    vote,
    write,
)

from unswayed.base.errors import ItemError, UsageError
from unswayed.data.benchmarks.benchmark import shuffled
from unswayed.data.benchmarks.reward_bench import SECTIONS, section_scores
from unswayed.model.items import ItemSet, Message
from unswayed.sources import load_data


def loaded(name: str, folder: Path, rows: Rows, **options: Any) -> ItemSet:
    (file, *_) = ROWS[name.partition(":")[0]]
    return load_data(name, data_dir=write(folder, {file: rows}), **options)


class TestMTBench:
    def test_votes_in_both_orders_are_one_item_and_majority_is_gold(self, tmp_path: Path) -> None:
        votes = [vote("b", "a", "model_a"), vote("a", "b", "model_b"), vote("a", "b", "tie")]
        (item,) = loaded("mt-bench", tmp_path, votes)
        assert (item.id, item.group) == ("81;1;a;b", "writing")
        assert item.candidates == ("a one", "b one")
        assert (item.gold, item.meta["votes"]) == (1, [0, 2, 1])
        assert (item.unit, item.candidates_by) == ("81", ("a", "b"))

    @pytest.mark.parametrize(
        ("winners", "gold"),
        [
            (["model_a", "model_b"], "tie"),
            (["model_a", "model_a", "model_b", "tie"], "tie"),  # half is no majority
            (["tie", "tie", "model_a"], "tie"),
            (["model_a", "model_a", "model_b"], 0),
        ],
    )
    def test_without_a_majority_it_is_a_tie(
        self, winners: list[str], gold: int | str, tmp_path: Path
    ) -> None:
        (item,) = loaded("mt-bench", tmp_path, [vote("a", "b", winner) for winner in winners])
        assert item.gold == gold

    def test_second_turns_are_items_that_show_the_conversation(self, tmp_path: Path) -> None:
        rows = [vote("a", "b", "model_a", turn=turn, question=141) for turn in (1, 2)]
        first, second = loaded("mt-bench", tmp_path, rows)
        assert (first.id, second.id) == ("141;1;a;b", "141;2;a;b")
        assert second.prompt == "Q1"
        assert second.candidates[0] == (
            Message("assistant", "a one"),
            Message("user", "Q2"),
            Message("assistant", "a two"),
        )
        assert second.group == "stem"


class TestMultipleChoice:
    def test_an_answer_is_a_number_or_a_letter(self, tmp_path: Path) -> None:
        rows = [question(["same", "same", "x", "y"], 1), question(["a", "b", "c", "d"], 3)]
        first, second = loaded("mmlu", tmp_path, rows)
        assert (first.gold, first.candidates[:2]) == (1, ("same", "same"))
        assert (second.gold, second.group) == (3, "anatomy")
        folder = write(tmp_path / "own", {"test-own.jsonl": [question(["a", "b", "c", "d"], "C")]})
        assert load_data("mmlu", data_dir=folder)[0].gold == 2

    def test_options_that_speak_of_others_keep_their_order(self, tmp_path: Path) -> None:
        fixed = ["All of the above", "None of these.", "both A and B", "neither (a) nor (b)"]
        fixed += ["A, B, and C only", "B & D", "(c) and (d)", "Both of them are correct"]
        fixed += ["both A and B are correct; either would do", "None of the other answers"]
        free = ["Core", "A and B must be exclusive", "all of its mass", "above average"]
        free += ["a and then b", "Both parties", "A", "vitamin A and B", "I and II"]
        rows = [question(["x", "y", "z", option]) for option in fixed + free]
        items = loaded("mmlu", tmp_path, rows)
        assert [item.candidates[3] for item in items if item.permutable] == free
        above = arc("ABCD", "A", "a")
        above["choices"]["text"][3] = fixed[0]
        (item,) = loaded("arc-challenge", tmp_path / "arc", [above])
        (own,) = loaded("gpqa", tmp_path / "gpqa", [{**gpqa(1), "Incorrect Answer 3": fixed[0]}])
        assert not item.permutable
        assert not own.permutable

    def test_arc_has_three_to_five_options_and_labels_of_two_kinds(self, tmp_path: Path) -> None:
        rows = [arc("ABC", "C", "a"), arc("ABCDE", "E", "b"), arc("1234", "2", "c")]
        items = loaded("arc-challenge", tmp_path, rows)
        assert [(item.n, item.gold) for item in items] == [(3, 2), (5, 4), (4, 1)]
        assert [item.group for item in items] == ["3 options", "5 options", "4 options"]

    def test_the_authors_own_arc_layout_means_the_same(self, tmp_path: Path) -> None:
        (row,) = ROWS["arc-challenge"]["ARC-Challenge/test-00000-of-00001.parquet"]
        texts, labels = row["choices"]["text"], row["choices"]["label"]
        choices = [{"text": t, "label": k} for t, k in zip(texts, labels, strict=True)]
        older = {**row, "question": {"stem": row["question"], "choices": choices}}
        del older["choices"]
        folder = write(tmp_path / "older", {"ARC-Challenge-Test.jsonl": [older]})
        published = loaded("arc-challenge", tmp_path / "hub", [row])
        assert tuple(load_data("arc-challenge", data_dir=folder)) == tuple(published)

    def test_the_right_answer_of_gpqa_is_not_told_by_its_place(self, tmp_path: Path) -> None:
        items = loaded("gpqa", tmp_path, [gpqa(number) for number in range(200)])
        places = Counter(item.gold for item in items)
        assert set(places) == {0, 1, 2, 3}
        assert max(places.values()) < 80
        for item in items:
            assert isinstance(item.gold, int)
            assert item.candidates[item.gold] == "right"
            assert item.meta["published_order"][item.gold] == 0
            assert (item.group, item.meta["subdomain"]) == ("Physics", "Optics")
        assert items.origin["order_seed"] == 0
        assert "Do not publish" in str(items.origin["note"])

    def test_the_order_of_an_item_does_not_depend_on_the_others(self, tmp_path: Path) -> None:
        many = loaded("gpqa", tmp_path / "many", [gpqa(number) for number in range(9)])
        (alone,) = loaded("gpqa", tmp_path / "one", [gpqa(8)])
        assert many[8] == alone

    def test_gpqa_reads_the_main_set_unless_a_part_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, {"gpqa_main.csv": [gpqa(1), gpqa(2)], "gpqa_diamond.csv": [gpqa(2)]})
        assert len(load_data("gpqa", data_dir=tmp_path)) == 2
        diamond = load_data("gpqa:diamond", data_dir=tmp_path)
        assert [item.id for item in diamond] == ["rec2"]
        assert diamond.name == "gpqa-diamond"


class TestPairsAndLists:
    def test_judgebench_reads_labels_and_buckets_and_both_files(self, tmp_path: Path) -> None:
        items = load_data("judgebench", data_dir=write(tmp_path, ROWS["judgebench"]))
        assert [(item.gold, item.group) for item in items] == [(0, "Knowledge"), (1, "Coding")]
        for name in ("judgebench:claude", "judgebench:Coding"):
            assert [item.id for item in load_data(name, data_dir=tmp_path)] == ["p2"]
        rows = [pair(3, "livebench-math", "A=B")]
        assert loaded("judgebench:gpt", tmp_path, rows)[0].gold == "tie"

    def test_reward_bench_does_not_tell_gold_by_its_place(self, tmp_path: Path) -> None:
        items = loaded("reward-bench", tmp_path, [chosen(number) for number in range(200)])
        places = Counter(item.gold for item in items)
        assert set(places) == {0, 1}
        assert min(places.values()) > 70
        for item in items:
            assert isinstance(item.gold, int)
            assert item.candidates[item.gold] == "good"
            assert item.candidates_by[item.gold] == "m-good"
            assert (item.group, item.meta["section"]) == ("hep-go", "Reasoning")

    def test_sections_weigh_their_subsets_as_published(self) -> None:
        assert sum(map(len, SECTIONS.values())) == 23
        accuracy = {subset: 0.0 for subsets in SECTIONS.values() for subset in subsets}
        accuracy |= {"math-prm": 1.0, "mt-bench-easy": 1.0}
        scores = section_scores(accuracy)
        assert scores["Reasoning"] == pytest.approx(984 / (984 + 6 * 164))  # as much as all code
        assert scores["Chat"] == pytest.approx(28 / 358)
        assert scores["Safety"] == 0
        del accuracy["donotanswer"]
        with pytest.raises(UsageError, match="there is no donotanswer"):
            section_scores(accuracy)

    def test_reward_bench_2_has_one_right_of_four_or_ties(self, tmp_path: Path) -> None:
        rows = [listed(1, 3, "Factuality", "7"), listed(26, 12, "Ties", "tied:1")]
        four, many = loaded("reward-bench-2", tmp_path, rows)
        assert (four.task, four.n, four.group) == ("listwise", 4, "Factuality")
        assert isinstance(four.gold, int)
        assert four.candidates[four.gold] == "right 0"
        assert many.n == 38
        assert isinstance(many.gold, tuple)
        assert many.gold != tuple(range(26))
        assert {many.candidates[c] for c in many.gold} == {f"right {k}" for k in range(26)}
        (factual,) = load_data("reward-bench-2:Factuality", data_dir=tmp_path)
        assert factual == four

    def test_the_arena_has_two_kinds_of_ties(self, tmp_path: Path) -> None:
        winners = ("model_a", "model_b", "tie", "tie (bothbad)")
        rows = [battle(winner, number) for number, winner in enumerate(winners)]
        items = loaded("chatbot-arena", tmp_path, rows)
        assert [item.gold for item in items] == [0, 1, "tie", "tie"]
        assert [item.meta["both_bad"] for item in items] == [False, False, False, True]
        assert {(item.prompt, *item.candidates) for item in items} == {("Why?", "Left.", "Right.")}
        assert {(item.group, item.candidates_by) for item in items} == {("English", ("m-b", "m-a"))}

    def test_several_turns_of_the_arena_are_messages(self, tmp_path: Path) -> None:
        (item,) = loaded("chatbot-arena", tmp_path, [battle("tie", 1, "And?", "So.")])
        assert item.candidates[1] == (
            Message("assistant", "Right."),
            Message("user", "And?"),
            Message("assistant", "So."),
        )

    def test_preference_bench_puts_its_criterion_in_the_question(self, tmp_path: Path) -> None:
        _, item = loaded("preference-bench", tmp_path, [preferred("A"), preferred("B")])
        assert (item.id, item.gold, item.reference) == ("preference-bench-1", 1, "Dear you.")
        assert item.group == "4 against 2"
        assert "Is it kind?" in str(item.prompt)

    def test_llmbar_and_auto_j_are_the_items_of_their_importers(self, tmp_path: Path) -> None:
        from unswayed.data.importers import IMPORTERS
        from unswayed.data.importers.protocol import Source

        items = load_data("llmbar", data_dir=write(tmp_path, ROWS["llmbar"]))
        assert [item.group for item in items][:2] == ["Natural", "Adversarial/Neighbor"]
        row = {**ROWS["llmbar"]["Dataset/LLMBar/Natural/dataset.json"][0], "results": [{}]}
        imported = IMPORTERS.load("llmbar").convert(row, Source("result.json", 1)).item
        assert imported is not None
        assert (items[0].id, items[0].gold) == (imported.id, 1)
        (tied,) = load_data("auto-j", data_dir=write(tmp_path / "j", ROWS["auto-j"]))
        assert (tied.id, tied.gold, tied.group) == ("testdata_pairwise-1", "tie", "chat")


class TestScores:
    def test_three_raters_of_hanna_are_one_story(self, tmp_path: Path) -> None:
        rows = [rated(7, [1, 2, 3, 4, 5, last]) for last in (1, 1, 3)]
        (story,) = loaded("hanna", tmp_path, rows)
        assert len(story.criteria or ()) == 6
        assert isinstance(story.gold, dict)
        assert story.gold["Complexity"] == pytest.approx(5 / 3)
        assert story.meta["ratings"]["Complexity"] == [1, 1, 3]
        assert story.meta["system"] == "GPT-2"
        assert story.response == 'Story "7",\nwith a second line.'

    def test_summeval_has_an_item_per_summary(self, tmp_path: Path) -> None:
        items = loaded("summeval", tmp_path, [scored("d1", [1.0, 7 / 3])])
        assert [item.id for item in items] == ["d1;0", "d1;1"]
        assert isinstance(items[1].gold, dict)
        assert items[1].gold["coherence"] == pytest.approx(7 / 3)
        assert {item.meta["article"] for item in items} == {"d1"}
        one = load_data("summeval:coherence", data_dir=tmp_path)[0]
        assert (one.criteria, one.gold) == (("coherence",), {"coherence": 1.0})
        assert one.reference == "It happened."

    def test_vicuna_bench_has_a_scale_for_each_question(self, tmp_path: Path) -> None:
        (item,) = load_data("vicuna-bench", data_dir=write(tmp_path, ROWS["vicuna-bench"]))
        assert (item.id, item.values) == ("vicuna_eval-1-m", (1.0, 2.0, 3.0, 4.0, 5.0))
        assert item.meta["criterion"] == "Is it clear?"


ONES = rated(7, [1] * 6)
UNASKED = said("Q1", "A")[1:]


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("mmlu", [question(["a", "b", "c"])], "choices: are 3, not 4"),
        ("arc-challenge", [arc("1234", "A", "a")], "answerKey: 'A' is not one of 1, 2, 3, 4"),
        ("arc-challenge", [arc("AAB", "A", "a")], "choices: .* are not one label for each text"),
        ("mt-bench", [vote("a", "b", "a")], "winner: 'a' is not model_a"),
        ("mt-bench", [vote("a", "b", "tie", turn=3)], "turn: 3: the conversation has 4 messages"),
        ("mt-bench", [{**vote("a", "b", "tie"), "conversation_a": UNASKED}], "does not begin with"),
        ("chatbot-arena", [battle("both", 1)], "winner: 'both' is not one of model_a, model_b"),
        ("chatbot-arena", [{**battle("tie", 1), "conversation_b": said("Why?")}], "no answer"),
        ("preference-bench", [preferred("C")], "orig_preference: 'C' is not A or B"),
        ("reward-bench-2", [listed(2, 2, "Math")], "chosen: has 2 answers outside of Ties"),
        ("reward-bench-2", [{**listed(1, 3, "Math"), "num_correct": 3}], "is 3, but there are 1"),
        ("reward-bench-2", [listed(1, 0, "Math")], "num_incorrect: is 0"),
        ("hanna", [ONES] * 2, "7 has 2 ratings, not 3"),
        ("hanna", [ONES, ONES, {**ONES, "Story": "Another."}], "are of several texts"),
        ("hanna", [rated(7, [1, 1, 6, 1, 1, 1])] * 3, "Empathy: .* are not scores of 1 to 5"),
        ("summeval", [{**scored("d", [1.0, 2.0]), "fluency": [5.0]}], "fluency: 1 scores of 2"),
        ("summeval", [scored("d", [0.5])], "coherence: has scores that are not 1 to 5"),
    ],
)
def test_a_row_that_cannot_be_says_why(name: str, rows: Rows, message: str, tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=message):
        loaded(name, tmp_path, rows)


def test_our_own_order_depends_on_the_name_alone() -> None:
    assert shuffled("a", 5) == shuffled("a", 5)
    assert sorted(shuffled("a", 38)) == list(range(38))
    assert len({shuffled(str(k), 4) for k in range(200)}) == 24
