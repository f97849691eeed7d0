"""Contextual, domain-contextual and batch calibration."""

from __future__ import annotations

import warnings

import pytest
from simulated_judges import accuracy, decision, pairs, verdicts

from unswayed.base.errors import MethodError
from unswayed.methods.batch import Batch
from unswayed.methods.content_free import (
    CONTENT_FREE,
    Contextual,
    DomainContextual,
    random_texts,
)
from unswayed.methods.estimation import MethodWarning
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X1, X2, X3, Ask

ITEM = Item(id="q", prompt="which is better", candidates=("one two", "three four five"))


def call(ask: Ask, p_a: float, item: Item = ITEM) -> Decision:
    """The judge gives label A the probability p_a."""
    return decision(item.id, ask, ask.presentation.candidate_of_label(int(p_a < 0.5)), p_a)


def test_the_worked_example() -> None:
    # p_cf = (.7, .3), p = (.6, .4) -> q = (.391, .609)
    method = Contextual()
    fitted = method.fit([ITEM], [call(ask, 0.7) for _, ask in method.plan_fit([ITEM])])
    verdict = fitted.decide(ITEM, [call(Ask(X0), 0.6)])
    assert verdict.choice == 1
    assert verdict.scores == pytest.approx((0.391, 0.609), abs=5e-4)
    assert verdict.confidence == pytest.approx(0.609, abs=5e-4)
    assert fitted.threshold(X0) == pytest.approx(0.7)
    # seen in the other order A is candidate 1, and is corrected just the same
    mirrored = fitted.decide(ITEM, [call(Ask(X0), 0.75)])
    assert mirrored.choice == 0


def test_three_content_free_questions_replace_the_item() -> None:
    items = [ITEM, Item(id="r", prompt="another", candidates=("a", "b"))]
    planned = Contextual().plan_fit(items)
    assert len(planned) == 3
    assert [ask.substitute for _, ask in planned] == [((text, text), text) for text in CONTENT_FREE]


def test_the_mean_over_the_content_free_texts_is_the_prior() -> None:
    method = Contextual()
    calls = [
        call(ask, p) for (_, ask), p in zip(method.plan_fit([ITEM]), (0.9, 0.7, 0.5), strict=True)
    ]
    fitted = method.fit([ITEM], calls)
    assert fitted.priors[0].values == pytest.approx((0.7, 0.3))
    assert fitted.priors[0].count == 3
    lost = method.fit([ITEM], calls[:2])  # a failed call is left out of the mean
    assert lost.priors[0].values == pytest.approx((0.8, 0.2))


def test_each_label_sequence_has_its_own_content_free_prior() -> None:
    method = Contextual(layouts="all")
    planned = method.plan_fit([ITEM])
    assert len(planned) == 6
    calls = [call(ask, 0.8 if ask.presentation.labels == (0, 1) else 0.3) for _, ask in planned]
    fitted = method.fit([ITEM], calls)
    found = [fitted.threshold(shape) for shape in (X0, X1, X2, X3)]
    assert found == pytest.approx([0.8, 0.3, 0.8, 0.3])


def test_per_item_calibration_divides_by_each_items_own_answer() -> None:
    method = Contextual(strings=("N/A",), per_item=True)
    assert method.plan_fit([ITEM]) == []
    fitted = method.fit([], [])
    own, free = fitted.asks(2)
    assert free.substitute == (("N/A", "N/A"), None)
    verdict = fitted.decide(ITEM, [call(own, 0.6), call(free, 0.7)])
    assert verdict.scores == pytest.approx((0.391, 0.609), abs=5e-4)
    assert verdict.n_calls == 2
    assert verdict.consistent is None
    assert fitted.decide(ITEM, [call(own, 0.6)]).choice is None


def test_random_texts_have_the_fields_length_and_words() -> None:
    items = [
        Item(id="a", prompt="p q r", candidates=("one", "x y z w")),
        Item(id="b", prompt="s t", candidates=("two", "v")),
    ]
    made = random_texts(items, 20, seed=4)
    assert len(made) == 20
    for prompt, first, second in ((t.prompt, *t.candidates) for t in made):
        assert len(prompt.split()) == 3  # floor(5 / 2) + 1
        assert set(prompt.split()) <= set("pqrst")
        assert len(first.split()) == 2  # floor(2 / 2) + 1
        assert set(first.split()) <= {"one", "two"}
        assert len(second.split()) == 3  # floor(5 / 2) + 1
        assert set(second.split()) <= set("xyzwv")
    assert random_texts(items, 20, seed=4) == made
    assert random_texts(items, 20, seed=5) != made


def test_domain_contextual_divides_by_the_mean_random_answer() -> None:
    method = DomainContextual()
    planned = method.plan_fit([ITEM])
    assert len(planned) == 20
    fitted = method.fit([ITEM], [call(ask, 0.7) for _, ask in planned])
    assert fitted.decide(ITEM, [call(Ask(X0), 0.6)]).scores == pytest.approx(
        (0.391, 0.609), abs=5e-4
    )


def test_domain_contextual_needs_text() -> None:
    with pytest.raises(MethodError, match="no candidate text"):
        DomainContextual().plan_fit([Item(id="x", prompt="", candidates=("", ""))])


def test_the_batch_mean_is_subtracted_per_label() -> None:
    # log odds of A over the batch: log(.8/.2) and log(.5/.5), mean log 2 -> threshold 2/3
    items = [Item(id=f"q{i}", prompt=f"{i}?", candidates=("a", "b")) for i in range(2)]
    calls = [call(Ask(X0), 0.8, items[0]), call(Ask(X0), 0.5, items[1])]
    with pytest.warns(MethodWarning) as caught:
        fitted = Batch().fit(items, calls)
    assert any("evenly over the labels" in str(one.message) for one in caught)
    assert any("only 2 estimation questions" in str(one.message) for one in caught)
    assert fitted.threshold(X0) == pytest.approx(2 / 3)
    assert not Batch.about.default


def test_batch_calibration_fails_on_unbalanced_gold() -> None:
    # 80% of the gold answers are candidate 0, in the items' own order
    train, test = (
        pairs(2000, shift=1.4, slot=0, label=0, seed=1),
        pairs(2000, shift=1.4, slot=0, label=0, seed=2),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        fitted = Batch().fit_tables({2: train.table.select([Ask(X0)])})
    raw = float((test.table.choices[:, 0] == test.gold).mean())
    corrected = accuracy(verdicts(fitted, test.table, (X0,)), test.gold)
    assert 100 * raw - corrected > 5


def test_items_of_other_sizes_get_their_own_stratum() -> None:
    three = Item(id="t", task=Task.MCQ, prompt="?", candidates=("a", "b", "c"))
    planned = Contextual().plan_fit([ITEM, three])
    assert sorted({item.n for item, _ in planned}) == [2, 3]
    assert len(planned) == 6
