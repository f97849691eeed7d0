"""Rewards in a Python file: of groups, of single responses, with their weights."""

import json

import numpy as np
import pytest
from small_models import colour_items, small_command

from unswayed.base.errors import ShapeError, UsageError
from unswayed.cli import main
from unswayed.model.items import Task
from unswayed.training.expected import reward_of_answers
from unswayed.training.provenance import differing_fields
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rewards import SampleKey, Samples, score
from unswayed.training.scoring import Features, GroupScorer, score_rows

FILE = '''
from unswayed.ext.rewards import Reward

def half(choices, right):
    """Half for every sample."""
    return choices * 0.0 + 0.5

HALF = Reward("half of everything", sampled=half)
FLOOR = 7

def length(item, text, choice):
    """The number of the item's question, plus a tenth for a choice."""
    return int(item.prompt) + (0.1 if choice is not None else 0.0)

def broken(item, text, choice):
    return float("nan") if item.id == "q1" else 1.0

def failing(item, text, choice):
    raise KeyError("no such word")

def parsed(item, text, choice):
    return item.candidates[str(choice)]

def quoted(item, text, choice):
    return "0.5"

def huge(item, text, choice):
    return 1e308

def leaving(item, text, choice):
    raise SystemExit(0)
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def trained_by(folder, model, *words):
    return main([*small_command(folder, model, "rl"), *words])


def test_rewards_of_a_file_train_and_are_logged(word_model, tmp_path, file, capsys):
    out = tmp_path / "out"
    words = (
        "--reward",
        f"{file}:HALF",
        "--set",
        f"reward.response={file}:length",
        "--out",
        str(out),
    )
    sizes = ("--set", "reward.response_size=2", "--set", "reward.accuracy_size=0")
    assert trained_by(tmp_path, word_model, *words, *sizes) == 0
    logged = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    for line in (line for line in logged if "loss" in line):
        assert line["rewards/consistency/mean"] == 0.5
        assert 0 <= line["rewards/response/mean"] <= 9.1
        parts = {name: line[f"rewards/{name}/mean"] for name in ("length", "format", "consistency")}
        total = sum(parts.values()) + 2 * line["rewards/response/mean"]
        assert line["reward"] == pytest.approx(total, abs=1e-5)
        assert 0 < line["group/accuracy"] < 1  # although accuracy is not paid for
    assert ", response " in capsys.readouterr().err
    record = json.loads((out / "training.json").read_text())
    assert list(record["reward"]["files"]) == [f"{file}:HALF", f"{file}:length"]
    file.write_text(f"{FILE}# another file\n")
    assert trained_by(tmp_path, word_model, *words, *sizes) == 2
    assert "holds another run: reward.files was" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", r": nan is not a number of at most 1e\+06, for item q1 and the response 'A'"),
        ("quoted", r": '0\.5' is not a number of at most 1e\+06, for item q0"),
        ("huge", r": 1e\+308 is not a number of at most 1e\+06, for item q0"),
        ("failing", r": KeyError: 'no such word', for item q0 and the response 'A'"),
        ("parsed", r": TypeError: .*, for item q0 and the response 'A'"),
        ("leaving", r": SystemExit: 0, for item q0 and the response 'A'"),
        ("missing", r" cannot be loaded \(AttributeError: .*Fix the file"),
        ("FLOOR", r" is 7, not a function"),
    ],
)
def test_faulty_response_reward_names_file_item_and_response(planned, file, name, said):
    items = colour_items(4)[name == "broken" :]
    with pytest.raises(UsageError, match=rf"mine\.py:{name}{said}"):
        planned("rl", items, reward_response=f"{file}:{name}")


def test_file_that_exits_is_an_error(word_model, tmp_path, file, capsys):
    file.write_text("raise SystemExit(0)\n")
    words = ("--set", f"reward.response={file}:length", "--out", str(tmp_path / "out"), "--dry-run")
    assert trained_by(tmp_path, word_model, *words) == 2
    assert (
        "mine.py:length cannot be loaded (SystemExit: 0). Fix the file" in capsys.readouterr().err
    )


def test_reward_of_a_file_must_be_a_reward(file):
    with pytest.raises(UsageError, match="FLOOR is 7, not a Reward"):
        score(samples(), RewardSettings(consistency=f"{file}:FLOOR"))
    with pytest.raises(
        UsageError, match=r"'cno' does not exist.*Name your own reward as FILE\.py:NAME"
    ):
        RewardSettings(consistency="cno")
    with pytest.raises(UsageError, match=r"response 'length': name a function as FILE\.py:NAME"):
        RewardSettings(response="length")


def samples(response=None):
    choices = np.array([[0, 1], [1, -1]])
    form = np.ones((2, 2), dtype=bool)
    right = np.array([True, False])
    return Samples(
        choices=choices,
        right=right,
        well_formed=form,
        reasoning_chars=choices * 0,
        response=response,
    )


def test_total_weighs_accuracy_and_response(file):
    own = np.array([[0.25, -2.0], [3.0, 0.5]])
    settings = RewardSettings(response=f"{file}:length", accuracy_size=0.5, response_size=3.0)
    scored = score(samples(own), settings)
    plain = score(samples(), RewardSettings())
    np.testing.assert_allclose(scored.accuracy, plain.accuracy)
    np.testing.assert_allclose(scored.total, plain.total - 0.5 * plain.accuracy + 3 * own)
    np.testing.assert_array_equal(plain.response, 0)


def test_response_without_value_is_refused(file):
    settings = RewardSettings(response=f"{file}:length")
    keys = [SampleKey("q0", t, s) for t in range(2) for s in range(2)]
    with pytest.raises(ShapeError, match=r"has no value of reward\.response"):
        score_rows(keys, [Features(0, 1, 0, 2, 1)] * 4, settings, (2, 2))


def test_features_of_large_rows_stay_exact(planned, file):
    plan = planned("rl", reward_response=f"{file}:length")
    scorer = GroupScorer.of(plan.groups, plan.settings, plan.recipe)
    (ten, read), (eleven, unread) = scorer.features([10, 11], ["B", "what"])
    assert (ten, *read[:3]) == (10, plan.groups.rows[10].shown.candidate_of_label(1), 1, 0)
    assert (eleven, *unread[:3]) == (11, -1, 0, 0)
    number = int(plan.groups.items[5].prompt)
    assert [read.response, unread.response] == [number + 0.1, number]


def test_response_reward_needs_samples_and_no_preset(planned, file):
    for objective in ("rl-exact", "sft", "distill"):
        with pytest.raises(UsageError, match="samples no responses to reward"):
            planned(objective, reward_response=f"{file}:length")
    with pytest.raises(UsageError, match=r"has no reward\.response\. Use: train rl --reward con"):
        planned(reward_response=f"{file}:length")


def test_accuracy_size_counts_in_expected_rewards():
    p, right = np.full((1, 2, 2), 0.4), np.array([[True, False]])
    none = RewardSettings(consistency="none", accuracy_size=0.0)
    worth, unread = reward_of_answers(p, right, none)
    np.testing.assert_allclose(worth, 0.3)
    assert unread == pytest.approx(-0.4)


def test_records_of_before_compare_with_new_sizes(planned):
    plan = planned("rl")
    fields = {"accuracy_size", "response", "response_size"}
    older = {
        table: {
            k: v for k, v in plan.record[table].items() if k.removeprefix("reward.") not in fields
        }
        for table in ("reward", "recipe")
    }
    old = {**plan.record, **older}
    assert differing_fields(old, plan.record) == {}
    assert "files" not in plan.record["reward"]
    assert plan.recipe.task is Task.PAIRWISE
