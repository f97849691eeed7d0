"""Rules for every method with n candidates, whatever its idea."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np

from unswayed.base.errors import NeedsLogprobs
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.fitted_file import from_json, to_json
from unswayed.methods.names import parse_method, spec_name
from unswayed.methods.protocol import Method, is_fitted, learned_fields, unlearned, why_not
from unswayed.methods.tables import margin
from unswayed.model.decisions import (
    MISSING,
    TIE,
    UNPARSED,
    Decision,
    DecisionTable,
    Evidence,
    choice_of,
)
from unswayed.model.items import Task, blind
from unswayed.model.presentation import canonical, presentations
from unswayed.model.tasks import tasks_giving
from unswayed.testing import judges
from unswayed.testing.judges import answer, fitted, make_items, pool, replies, table_of
from unswayed.testing.rules import hold, refuses


def check_method(method: Method) -> None:
    """Check a method, installed under its own name.

    Args:
        method: Not fitted, with the parameters to try; one that abstains is checked without abstaining.

    Raises:
        AssertionError: Naming the broken rule.
    """
    method = method.without_abstaining()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)  # small estimation sets are meant
        for n in judges.sizes(method):
            hold(f"method {method.name}", RULES, method, n)


def has_a_full_description(method: Method, n: int) -> None:
    """Check that a method is a frozen slotted dataclass with title, source, idea, calls, equation, helps, cannot."""
    assert is_dataclass(method)
    assert type(method).__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__dict__" not in dir(method), "slots=True is missing"
    assert tasks_giving(method.reads), "no task gives what it reads"
    said = method.about
    for text in (said.title, said.source, said.idea, said.calls, said.equation):
        assert text.strip()
    assert said.helps
    assert said.cannot
    assert bool(said.estimation) == bool(learned_fields(method)), "estimation calls"
    assert (method.fitted_from > 0) == bool(learned_fields(method)), "fitted_from"


def is_read_by_its_name(method: Method, n: int) -> None:
    """Check that the name with its parameters reads back as the same method, so it is registered under `name`."""
    assert spec_name(method).partition(":")[0] == method.name
    assert parse_method(spec_name(method)) == method


def asks_the_canonical_question_first(method: Method, n: int) -> None:
    """Check that the first question shows the candidates as given, so that every method shares it."""
    assert method.asks(n)[0].presentation == canonical(n)


def renumbers_with_the_candidates(method: Method, n: int) -> None:
    """Renumbered candidates give the renumbered verdict, whatever calls are missing or unread."""
    for seed, shown in enumerate(2 * presentations("cyclic", n)):
        model, items = fitted(method, n, seed % 3), make_items(method, 1, n)
        calls = judges.damage(pool(model, items, partial(answer, seed=seed)), seed)
        if not calls:
            continue
        seen = DecisionTable.of(items, calls).select(model.asks(n), through=shown)
        verdict = model.decide_table(seen).verdict(0, item_id=items[0].id, method=method.name)
        expected = model.decide(*judges.rename(items[0], calls, shown.order))
        for field in ("choice", "tie", "consistent", "n_calls", "parts"):
            assert getattr(verdict, field) == getattr(expected, field), field
        if expected.scores is not None:
            scores, wanted = (np.array(v.scores, dtype=float) for v in (verdict, expected))
            np.testing.assert_allclose(scores, wanted, atol=1e-12)


def keeps_the_verdict_of_a_fair_judge(method: Method, n: int) -> None:
    """Check that a judge without bias gets the same verdict under every view."""
    items, model = make_items(method, 12, n), judges.fit_by(method, 60, n, judges.fair)
    table = DecisionTable.of(items, pool(model, items, judges.fair))
    own = model.decide_table(table.select(model.asks(n)))
    assert own.scores is not None
    sure = margin(own.scores) > 0.25  # an estimated correction is not 0 exactly
    assert sure.sum() >= 3
    for shown in presentations("cyclic", n):
        seen = model.decide_table(table.select(model.asks(n), through=shown))
        np.testing.assert_array_equal(np.array(shown.order)[seen.choices[sure]], own.choices[sure])


def shows_what_it_learned(method: Method, n: int) -> None:
    """Check that learned values are shown, and that learning from nothing warns and changes no answer."""
    items = make_items(method, 1, n)
    learns = bool(method.plan_fit(items))
    estimates = fitted(method, n).estimates()
    assert all(estimate.n > 0 for estimate in estimates.values())
    assert estimates or not learns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        empty = method.fit([], [])
    assert any(issubclass(w.category, MethodWarning) for w in caught) or not learns, "no warning"
    calls = replies(empty, items, partial(answer, seed=5))
    if learned_fields(method) and len(calls) == 1:
        assert empty.decide(items[0], calls).choice == calls[0].choice


def decides_one_as_it_decides_many(method: Method, n: int) -> None:
    """One item alone gets the verdict that it gets among others."""
    for seed in range(3):
        model, items = fitted(method, n, seed), make_items(method, 6, n)
        calls = judges.damage(replies(model, items, partial(answer, seed=seed)), seed)
        batch = model.decide_table(table_of(model, items, calls))
        for row, item in enumerate(items):
            alone = model.decide(item, [call for call in calls if call.item_id == item.id])
            assert alone == batch.verdict(row, item_id=item.id, method=method.name)


def changes_none_of_its_inputs(method: Method, n: int) -> None:
    """Deciding and fitting change nothing that they are given, and keep nothing of an earlier fit."""
    items = [blind(item) for item in make_items(method, 30, n)]
    planned = method.plan_fit(items)
    calls = [answer(item, ask, 1) for item, ask in planned]
    given = copy.deepcopy((items, calls))
    model = method.fit(items, calls)
    assert (items, calls) == given
    assert type(model) is type(method)
    assert unlearned(model) == unlearned(method)
    if learned_fields(method):
        assert is_fitted(method) == (not planned)
    assert is_fitted(model)
    assert model.fit(items, calls) == model
    table = table_of(model, items, replies(method, items, partial(answer, seed=1)))
    before = copy.deepcopy((table.choices, table.probs))
    first, second = model.decide_table(table), model.decide_table(table)
    np.testing.assert_equal((table.choices, table.probs), before)
    np.testing.assert_array_equal(first.choices, second.choices)


def survives_a_file(method: Method, n: int) -> None:
    """Check that learned values read back from their file byte for byte."""
    items = make_items(method, 1, n)
    for model in (method, fitted(method, n)):
        written = msgspec.json.encode(to_json(model), order="deterministic")
        again = from_json(msgspec.json.decode(written))
        assert again == model
        assert msgspec.json.encode(to_json(again), order="deterministic") == written
    calls = replies(model, items)
    assert again.decide(items[0], calls) == model.decide(items[0], calls)


def never_reads_gold(method: Method, n: int) -> None:
    """Gold is never read in deciding, and in fitting only by a method that needs it."""
    plain = make_items(method, 30, n)
    gilded = [msgspec.structs.replace(item, gold=_Untouchable()) for item in plain]
    asks = [ask for _, ask in method.plan_fit(plain)]
    assert [ask for _, ask in method.plan_fit(gilded)] == asks
    calls = [answer(item, ask, 2) for item, ask in method.plan_fit(plain)]
    model = method.fit(plain, calls)
    assert method.needs_gold or model == method.fit(gilded, calls)
    for item in gilded[:3]:
        model.decide(item, [answer(item, ask, 2) for ask in model.plan(item)])


class _Untouchable:
    """A gold that must not be read."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("gold was read")

    __eq__ = __hash__ = __bool__ = __iter__ = __len__ = __int__ = __str__ = __repr__ = _refuse


def plans_to_an_end(method: Method, n: int) -> None:
    """Planning ends within `asks`, and an early stop gives the verdict of everything asked."""
    item = blind(make_items(method, 1, n)[0])
    for seed in range(4):
        model, judge = fitted(method, n, seed % 3), partial(answer, seed=seed)
        everything = replies(model, [item], judge)
        whole = model.decide(item, everything)
        seen: list[Decision] = []
        for _ in range(len(everything) + 1):
            asked = [judge(item, ask) for ask in model.plan(item, seen)]
            fresh = [call for call in asked if call not in seen]
            assert all(call in everything for call in fresh)
            seen += fresh
            if not fresh:
                break
        else:
            raise AssertionError("the plan never stops")
        verdict = model.decide(item, seen)
        assert verdict.choice is not None
        assert (verdict.choice, verdict.tie) == (whole.choice, whole.tie)
        assert verdict.n_calls == whole.n_calls == len(seen)


def keeps_fixed_items_in_place(method: Method, n: int) -> None:
    """Check that an item that may not be permuted is asked as it was given, and still decided."""
    fixed = msgspec.structs.replace(blind(make_items(method, 1, n)[0]), permutable=False)
    model = fitted(method, n)
    asks = model.plan(fixed)
    assert asks
    assert all(ask.presentation == canonical(n) for ask in asks)
    verdict = model.decide(fixed, [answer(fixed, ask) for ask in asks])
    assert isinstance(verdict.choice, int) or verdict.tie
    for _, ask in method.plan_fit([fixed]):
        assert ask.substitute is not None, "its own candidates are moved for estimation"


def gives_no_verdict_without_calls(method: Method, n: int) -> None:
    """Missing calls give no verdict and are not counted."""
    model, items = fitted(method, n), make_items(method, 3, n)
    verdicts = model.decide_table(table_of(model, items, replies(model, items[1:])))
    assert verdicts.choices[0] == MISSING
    assert verdicts.n_calls[0] == 0
    assert verdicts.verdict(0, item_id="q0", method=method.name).choice is None
    assert (verdicts.choices[1:] != MISSING).all()


def gives_no_verdict_of_unread_answers(method: Method, n: int) -> None:
    """Answers that cannot be read give no verdict: never a default."""
    model, items = fitted(method, n), make_items(method, 1, n)
    verdict = model.decide(items[0], replies(model, items, judges.silent))
    assert (verdict.choice, verdict.confidence) == (None, None)
    assert not verdict.consistent


def never_falls_back_to_the_raw_choice(method: Method, n: int) -> None:
    """Check that a method on probabilities gives no verdict where some are missing."""
    if Evidence.PROBS not in method.reads:
        return
    model, items = fitted(method, n), make_items(method, 1, n)
    assert model.decide(items[0], replies(model, items, judges.bare)).choice is None
    table = DecisionTable.of(items, replies(model, items))
    assert table.probs is not None
    table.probs[:, :, 0] = np.nan
    assert model.decide_table(table.select(model.asks(n))).choices[0] == UNPARSED


def declares_what_it_reads(method: Method, n: int) -> None:
    """Check that a method that needs more than choices declares it in `reads`, and is refused or silent without it."""
    items = make_items(method, 1, n)
    if Evidence.PROBS in method.reads and method.plan_fit(items):
        sentence = refuses(NeedsLogprobs, judges.fit_by, method, 30, n, judges.bare)
        assert method.name in sentence
        return
    needs_more = not method.reads <= {Evidence.CHOICE, Evidence.LEVELS}
    model = judges.fit_by(method, 30, n, judges.bare)
    verdict = model.decide(items[0], replies(model, items, judges.bare))
    assert (verdict.choice is None) == needs_more
    scaled = method.reads & {Evidence.LEVELS}
    task = Task.RUBRIC if scaled else items[0].task
    reason = why_not(method, task=task, n=n, gives=scaled | {Evidence.CHOICE})
    assert (reason is not None) == needs_more


def breaks_ties_by_content(method: Method, n: int) -> None:
    """Equal probabilities are decided by content, not by label or position."""
    if Evidence.PROBS not in method.reads:
        return
    items = [blind(item) for item in make_items(method, 40, n)]
    model = method.fit(items, [judges.flat(item, ask) for item, ask in method.plan_fit(items)])
    table = DecisionTable.of(items, pool(model, items, judges.flat))
    own = model.decide_table(table.select(model.asks(n)))
    assert len(set(own.choices.tolist())) == n, "one candidate always wins"
    for shown in presentations("cyclic", n):
        seen = model.decide_table(table.select(model.asks(n), through=shown))
        np.testing.assert_array_equal(np.array(shown.order)[seen.choices], own.choices)


def gives_well_formed_verdicts(method: Method, n: int) -> None:
    """Choices are candidates or codes, confidences lie in 0 to 1, and calls are within `asks`."""
    model, items = fitted(method, n), make_items(method, 40, n)
    calls = judges.damage(replies(model, items, partial(answer, seed=3)), 3, 0.5)
    verdicts = model.decide_table(table_of(model, items, calls))
    assert verdicts.choices.shape == (40,)
    assert set(verdicts.choices.tolist()) <= {MISSING, UNPARSED, TIE, *range(n)}
    np.testing.assert_array_equal(verdicts.tied.sum(axis=1) > 1, verdicts.choices == TIE)
    named = verdicts.choices >= 0
    sure = verdicts.confidence[named]
    assert np.isnan(verdicts.confidence[~named]).all()
    # a mean may lie at a level, and be highest for a candidate, that no answer names
    least = 0.0 if {Evidence.LEVELS, Evidence.SCORES} & method.reads else 1e-300
    assert ((sure >= least) & (sure <= 1 + 1e-12)).all()
    if len(model.asks(n)) == 1:
        assert (verdicts.consistent == -1).all()
    assert (verdicts.n_calls <= len(model.asks(n))).all()
    for row, choice in enumerate(verdicts.choices.tolist()):
        record = verdicts.verdict(row, item_id=items[row].id, method=method.name)
        assert record.choice == choice_of(choice)


RULES: Final[tuple[Callable[[Method, int], None], ...]] = (
    has_a_full_description,
    is_read_by_its_name,
    asks_the_canonical_question_first,
    renumbers_with_the_candidates,
    keeps_the_verdict_of_a_fair_judge,
    shows_what_it_learned,
    decides_one_as_it_decides_many,
    changes_none_of_its_inputs,
    survives_a_file,
    never_reads_gold,
    plans_to_an_end,
    keeps_fixed_items_in_place,
    gives_no_verdict_without_calls,
    gives_no_verdict_of_unread_answers,
    never_falls_back_to_the_raw_choice,
    declares_what_it_reads,
    breaks_ties_by_content,
    gives_well_formed_verdicts,
)
