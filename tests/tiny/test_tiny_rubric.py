"""The shipped rubric judge: swayed by the position of a level, and right once orders are averaged.

Ranges are wide around what the shipped weights (seed 0 of the recipe) give: position shares .42
.11 .16 .12 .20, accuracy .53, correlation with the true quality .85 by one order and .90 by the
mean over ten, which is what raters with the planted biases give (.41 .10 .15 .15 .19, .55, .85, .90).
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.base.errors import UsageError
from unswayed.model.decisions import DecisionTable, FloatArray
from unswayed.model.items import ItemSet, Task
from unswayed.model.presentation import X1, Ask, Presentation, presentations
from unswayed.prompts import PromptSettings, render
from unswayed.result import AuditResult
from unswayed.tiny.answers import content_free_examples, encode, examples, prompt_tokens
from unswayed.tiny.formats import FORMATS
from unswayed.tiny.items import LEVELS, VALUES, WORDS, judge_items, mcq_items, rubric_items, worth

RUBRIC = FORMATS["rubric"]
DIGESTS = {
    "judge": "0ae3e79d83dbb92d93fa603a01cd84b34da0aa50ceb648366f504e6b270d0496",
    "rubric": "7858687cf8d5cfdc2c6051e0fb1f61599869772a86abfa76caec6a3d3758d06e",
}
"""sha256 of the weights: figures in docs and tests are those of these files."""


@pytest.fixture(scope="module")
def judged() -> AuditResult:
    settings = AuditSettings(methods=("direct", "vote", "average"), resamples=100)
    return audit_calls(rubric_items(), settings, "tiny/rubric", BackendSettings(), directory=None)


@pytest.fixture(scope="module")
def table(judged: AuditResult) -> DecisionTable:
    """300 items in the 10 balanced orders."""
    (stratum,) = judged.record.plan.strata
    whole = stratum.table
    return whole.select([Ask(shown) for shown in presentations("balanced", 5)])


def quality_of(items: ItemSet) -> FloatArray:
    return np.array([item.meta["quality"] for item in items])


def rank_correlation(scores: FloatArray, truth: FloatArray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(scores, truth).statistic)


def levels_chosen(table: DecisionTable) -> FloatArray:
    """The value of the level chosen, shape (items, orders)."""
    return np.array(VALUES)[table.choices]


@pytest.mark.parametrize("name", FORMATS)
def test_the_shipped_weights_made_the_figures(name: str) -> None:
    weights = (FORMATS[name].folder / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == DIGESTS[name]


def test_every_call_is_answered_with_a_level(table: DecisionTable) -> None:
    assert table.choices.shape == (300, 10)
    assert (table.choices >= 0).all()
    assert table.label_mass is not None
    assert table.label_mass.min() > 0.9


def test_position_decides_where_content_is_even(table: DecisionTable) -> None:
    at_position = np.array([shown.order for shown in table.shown])
    shares = [(table.choices == at_position[:, p]).mean() for p in range(5)]
    assert sum(shares) == pytest.approx(1)  # balanced orders: content alone gives .2 each
    assert shares[0] > 0.3
    assert min(shares) < 0.15
    assert (table.choices == table.choices[:, :1]).all(axis=1).mean() < 0.4
    assert levels_chosen(table).std(axis=1).mean() > 0.3


def test_one_order_is_right_about_half_the_time(table: DecisionTable) -> None:
    items = rubric_items()
    gold = [item.gold_candidates() for item in items]
    on_level = np.array([len(right) == 1 for right in gold])
    right = np.array([right[0] if right else -1 for right in gold])
    assert 0.45 < (table.choices == right[:, None])[on_level].mean() < 0.6


def test_the_mean_over_balanced_orders_follows_quality_better(table: DecisionTable) -> None:
    chosen, quality = levels_chosen(table), quality_of(rubric_items())
    single = [rank_correlation(column, quality) for column in chosen.T]
    assert 0.5 < np.mean(single) < 0.9
    assert rank_correlation(chosen.mean(axis=1), quality) > max(single)
    assert rank_correlation(chosen.mean(axis=1), quality) > np.mean(single) + 0.03


def test_the_audit_finds_averaged_scores_nearer_to_humans(judged: AuditResult) -> None:
    direct, average = (
        judged.metrics["methods"][name]["spearman"] for name in ("direct", "average")
    )
    assert direct["value"] == pytest.approx(0.825, abs=0.02)
    assert average["value"] > direct["value"] + 0.03


@pytest.mark.parametrize(
    ("name", "items", "shown"),
    [
        ("judge", judge_items(3), X1),
        ("judge", mcq_items(3), Presentation((1, 2, 3, 0), (2, 0, 3, 1))),
        ("rubric", rubric_items(3), Presentation((1, 2, 4, 3, 0), (2, 0, 3, 1, 4))),
    ],
)
def test_the_template_writes_what_the_judge_was_trained_on(
    name: str, items: ItemSet, shown: Presentation
) -> None:
    import transformers

    folder = FORMATS[name].folder
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    settings = PromptSettings(template=str(folder / "prompt_template.jinja"))
    for item in items:
        rendered = render(item, Ask(shown), settings)
        assert rendered.answer_only
        written = tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in rendered.messages],
            add_generation_prompt=True,
            return_dict=True,
        )["input_ids"]
        trained = prompt_tokens(
            item.task,
            encode(str(item.prompt))[None],
            np.stack([encode(str(item.candidates[c])) for c in shown.order])[None],
            np.array([shown.labels]),
            None if item.response is None else encode(str(item.response))[None],
        )
        assert written == trained[0].tolist()
        assert tokenizer.unk_token_id not in written


def test_training_examples_have_the_planted_shares() -> None:
    # position (2, .5, 0, 0, 1.4) and label (.4, 0, 0, .2, 0): exp of the sums, divided by theirs
    rng = np.random.default_rng(0)
    labels = encode("A B C D E")
    free = content_free_examples(Task.RUBRIC, 20_000, 3, rng)  # without question and response
    places = np.flatnonzero(np.isin(free.prompts[0], labels))
    shown = free.prompts[:, places]
    assert (np.sort(shown, axis=1) == labels).all()
    in_sequence = (shown == labels).all(axis=1)
    assert in_sequence.mean() == pytest.approx(0.7 + 0.3 / 120, abs=0.01)
    shares = (free.answers[in_sequence, None] == labels).mean(axis=0)
    assert shares == pytest.approx([0.582, 0.087, 0.053, 0.064, 0.214], abs=0.02)


def test_raters_choose_levels_near_the_quality() -> None:
    batch = examples(Task.RUBRIC, 4000, np.random.default_rng(0))
    assert batch.prompts.shape == (4000, 35)
    first_level = int(encode(LEVELS[0])[0])
    at_label = (batch.prompts[:, :-1] == batch.answers[:, None]).argmax(axis=1)
    levels = batch.prompts[np.arange(4000), at_label + 2] - first_level + 1
    words = batch.prompts[:, 6:10] - int(encode(WORDS[0])[0])
    quality = np.clip(3 + 1.25 * worth().words_learned[words].sum(axis=1), 1, 5)
    assert rank_correlation(levels, quality) > 0.7


@pytest.mark.parametrize(
    ("model", "items", "reason"),
    [
        ("tiny/rubric", judge_items(1), "trained on rubric items, and this is a pairwise item"),
        ("tiny/judge", rubric_items(1), "trained on pairwise and mcq items, and this is a rubric"),
    ],
)
def test_an_item_of_another_task_is_refused(model: str, items: ItemSet, reason: str) -> None:
    settings = AuditSettings(methods=("direct",), resamples=100)
    with pytest.raises(UsageError, match=reason):
        audit_calls(items, settings, model, BackendSettings(), directory=None)
