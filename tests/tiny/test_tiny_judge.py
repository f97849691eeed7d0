"""The shipped weights, asked through the same code as any model.

Every range is wide enough for the three seeds that were trained with this recipe (agreement of X0
and X2 with seeds 0, 1, 2: .43, .34, .35); seed 0 is shipped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from unswayed.backends import BackendSettings, open_backend
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.calls import Caller, Question, RunSettings
from unswayed.model.decisions import Decision, DecisionTable
from unswayed.model.items import Item, ItemSet, Task
from unswayed.model.presentation import (
    X0,
    X1,
    X2,
    X3,
    Ask,
    Presentation,
    Substitution,
    presentations,
)
from unswayed.prompts import PromptSettings
from unswayed.store import Memory
from unswayed.tiny.answers import content_free_examples, examples
from unswayed.tiny.backend import WEIGHTS
from unswayed.tiny.items import VOCABULARY, judge_items, mcq_items

CPU = BackendSettings(device="cpu", threads=1)


def decide(
    items: Iterable[Item], asks: Sequence[Ask], labels: tuple[str, ...] | None = None
) -> list[Decision]:
    backend = open_backend("tiny/judge")
    prompts = backend.own_prompt.settings(PromptSettings(label_set=labels))
    caller = Caller(backend, Memory(), RunSettings(prompts=prompts))
    questions = [Question(item, ask) for item in items for ask in asks]
    asyncio.run(caller.ask(questions))
    decisions = list(caller.read(questions))
    assert len(decisions) == len(questions)
    return decisions


def table_of(items: ItemSet, shown: Sequence[Presentation]) -> DecisionTable:
    asks = [Ask(presentation) for presentation in shown]
    return DecisionTable.of(items.items, decide(items, asks), asks=asks)


@pytest.fixture(scope="module")
def judge() -> ItemSet:
    return judge_items(300)


@pytest.fixture(scope="module")
def judged(judge: ItemSet) -> DecisionTable:
    """300 items under X0, X1, X2, X3."""
    return table_of(judge, (X0, X1, X2, X3))


@pytest.fixture(scope="module")
def chosen() -> tuple[ItemSet, DecisionTable]:
    """75 multiple-choice items in all 24 orders."""
    items = mcq_items(75)
    return items, table_of(items, presentations("full", 4))


def agreement(table: DecisionTable, first: Presentation, second: Presentation) -> float:
    one, other = (table.choices[:, table.columns[Ask(shown)]] for shown in (first, second))
    return float((one == other).mean())


def gold_of(items: ItemSet) -> np.ndarray:
    return np.array([item.gold for item in items])


def test_the_judge_has_position_bias_and_some_label_bias(
    judge: ItemSet, judged: DecisionTable
) -> None:
    coupled, order, label = (agreement(judged, X0, other) for other in (X2, X1, X3))
    assert 0.25 < coupled < 0.60
    assert coupled < order < label < 0.95
    columns = [judged.columns[Ask(X0)], judged.columns[Ask(X2)]]
    assert 0.65 < (judged.choices[:, columns] == np.array([0, 1])).mean() < 0.90
    assert judged.probs is not None
    averaged = judged.probs[:, columns].mean(axis=1).argmax(axis=1)
    gold = gold_of(judge)
    assert 0.60 < (judged.choices[:, columns] == gold[:, None]).mean() < 0.80
    assert 0.80 < (averaged == gold).mean() < 0.95


def test_the_multiple_choice_judge_favours_the_third_option(
    chosen: tuple[ItemSet, DecisionTable],
) -> None:
    items, table = chosen
    gold = gold_of(items)
    assert 0.58 < (table.choices == gold[:, None]).mean() < 0.78
    orders = np.array([shown.order for shown in table.shown])
    position = np.array(
        [[list(orders[t]).index(c) for t, c in enumerate(row)] for row in table.choices]
    )
    shares = np.bincount(position.ravel(), minlength=4) / position.size
    assert 0.40 < shares[2] < 0.65
    counts = np.stack([(table.choices == c).sum(axis=1) for c in range(4)], axis=1)
    assert 0.60 < (counts.max(axis=1) / 24).mean() < 0.82


def test_nearly_all_probability_is_on_the_labels(
    judged: DecisionTable, chosen: tuple[ItemSet, DecisionTable]
) -> None:
    for table in (judged, chosen[1]):
        assert table.label_mass is not None
        assert table.label_mass.min() > 0.9
        assert table.label_mass.mean() > 0.99


def test_content_free_candidates_show_the_bias_alone() -> None:
    # planted log-odds of A shown first over B: 1.1 + 0.6 -> .846; of B shown first: 1.1 - 0.6
    item = judge_items(1)[0]
    for text in ("N/A", "[MASK]", ""):
        substitute = Substitution((text, text), prompt=text)
        shown = [Ask(presentation, substitute=substitute) for presentation in (X0, X2, X3)]
        x0, x2, x3 = decide([item], shown)
        assert x0.probs is not None
        assert x2.probs is not None
        assert x3.probs is not None
        assert x0.probs[0] == pytest.approx(0.846, abs=0.1)
        assert x2.probs[1] == pytest.approx(x0.probs[0], abs=1e-6)  # the content is the same
        assert x3.probs[0] == pytest.approx(0.622, abs=0.15)
    four = mcq_items(1)[0]
    substitute = Substitution(("N/A",) * 4, prompt="N/A")
    (found,) = decide([four], [Ask(presentations("identity", 4)[0], substitute=substitute)])
    assert found.probs is not None
    # softmax of (.3, .6, 2.4, .3)
    assert found.probs == pytest.approx([0.085, 0.115, 0.695, 0.085], abs=0.08)


def test_training_examples_have_the_planted_shares() -> None:
    rng = np.random.default_rng(0)
    batch = examples(Task.PAIRWISE, 4000, rng)
    assert batch.prompts.shape == (4000, 22)
    first_label = VOCABULARY.index("A")
    labels = batch.prompts[:, [6, 12]]
    assert set(np.unique(labels)) == {first_label, first_label + 1}
    assert (labels[:, 0] != first_label).mean() == pytest.approx(0.3, abs=0.03)
    chose_first = batch.answers == labels[:, 0]
    assert 0.60 < chose_first.mean() < 0.80
    free = content_free_examples(Task.PAIRWISE, 8000, 0, rng)
    assert free.prompts.shape == (8000, 18)  # one token where an answer has three
    shown_in_sequence = free.prompts[:, 6] == first_label
    chose_a = (free.answers == first_label)[shown_in_sequence].mean()
    # sigmoid(1.7 + topic), topics differ by a standard deviation of .6
    assert chose_a == pytest.approx(0.83, abs=0.04)


def test_training_from_scratch_learns_and_writes_a_plain_folder(tmp_path: Path) -> None:
    import torch
    from transformers import LlamaForCausalLM

    from unswayed.tiny.train import TrainSettings, answer_loss, main, make_model

    threads = torch.get_num_threads()
    main(["--out", str(tmp_path), "--seed", "3", "--steps", "12"])
    torch.set_num_threads(threads)
    template = tmp_path / "prompt_template.jinja"
    for name in ("config.json", "model.safetensors", "tokenizer.json", template.name):
        assert (tmp_path / name).is_file()
    assert open_backend(f"hf/{tmp_path}", CPU).own_prompt.template == str(template)
    batch = examples(Task.PAIRWISE, 64, np.random.default_rng(9))
    settings = TrainSettings(seed=3)
    with torch.no_grad():
        before = answer_loss(make_model(settings), batch, settings)
        trained = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
        after = answer_loss(trained, batch, settings)
    assert after < before - 1.0


def test_the_shipped_folder_is_small_and_plain() -> None:
    files = [path for path in WEIGHTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    assert {path.suffix for path in files} == {".json", ".safetensors", ".jinja"}
    assert json.loads((WEIGHTS / "config.json").read_text())["vocab_size"] == len(VOCABULARY)


OTHER = Item(id="q1", prompt="Who wrote it?", candidates=("Ada Lovelace", "Charles Babbage"))


@pytest.mark.parametrize(
    ("item", "labels", "reason"),
    [(OTHER, None, r"q1: .*--model"), (judge_items(1)[0], ("X", "Y"), "'X'")],
)
def test_words_and_labels_that_it_does_not_know_are_refused(
    item: Item, labels: tuple[str, str] | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        decide([item], [Ask(X0)], labels=labels)


def test_the_name_carries_the_weights_and_can_be_written_out() -> None:
    model = open_backend("tiny/judge").model
    assert model.startswith("tiny/judge@sha256:")
    assert open_backend(model).model == model
    with pytest.raises(UnknownNameError, match="Did you mean 'judge'"):
        open_backend("tiny/juge")
    with pytest.raises(UsageError, match="this version of unswayed ships"):
        open_backend("tiny/judge@sha256:0000")
