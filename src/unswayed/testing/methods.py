"""What every method must do, whatever its idea."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import msgspec
import numpy as np

from unswayed.decisions import (
    MISSING,
    TIE,
    UNPARSED,
    Decision,
    DecisionTable,
    Evidence,
    FloatArray,
    VerdictTable,
    choice_of,
)
from unswayed.errors import NeedsLogprobs
from unswayed.items import Item, Task, blind
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.files import from_json, to_json
from unswayed.methods.names import parse_method, spec_name
from unswayed.methods.protocol import Method, is_fitted, learned_fields, unlearned, why_not
from unswayed.permutations import cyclic
from unswayed.presentation import Ask, Presentation, canonical, presentations
from unswayed.tasks import tasks_giving
from unswayed.testing.judges import (
    CHOICE_ALONE,
    SILENT,
    about,
    answer,
    bare,
    changed,
    damage,
    fair,
    fit_by,
    fitted,
    make_items,
    pool,
    rename,
    sizes,
)
from unswayed.testing.rules import hold


def check_method(method: Method) -> None:
    """Check a method, installed under its own name: every rule of `RULES`.

    Args:
        method: Not fitted, with the parameters to try.

    Raises:
        AssertionError: Naming the rule.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)  # small estimation sets are meant
        hold(f"method {method.name}", RULES, method)


def _under(method: Method, table: DecisionTable, outer: Presentation) -> VerdictTable:
    """The verdicts where everything is shown through one more presentation."""
    return method.decide_table(table.select(method.asks(table.n), through=outer))


def _decided(method: Method, items: list[Item], calls: list[Decision]) -> VerdictTable:
    return method.decide_table(DecisionTable.of(items, calls).select(method.asks(items[0].n)))


def has_a_full_description(method: Method) -> None:
    """A method is a frozen slotted dataclass with a title, source, idea, calls, equation, helps, cannot."""
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


def is_read_by_its_name(method: Method) -> None:
    """The name with its parameters reads back as the same method, so it is registered under `name`."""
    assert spec_name(method).partition(":")[0] == method.name
    assert parse_method(spec_name(method)) == method


def asks_the_canonical_question_first(method: Method) -> None:
    """The first question shows the candidates as they were given, so that every method shares it."""
    for n in sizes(method):
        assert method.asks(n)[0].presentation == canonical(n)


def renumbers_with_the_candidates(method: Method) -> None:
    """Renumbered candidates give the renumbered verdict, whatever calls are missing or unread."""
    for n in sizes(method):
        for seed, order in enumerate((*cyclic(n), *cyclic(n))):
            item, model = make_items(method, 1, n)[0], fitted(method, n, seed % 3)
            calls = damage(pool(model, [item], seed), np.random.default_rng(seed))
            table = DecisionTable.of([item], calls, asks=None) if calls else None
            if table is None or not table.asks:
                continue
            seen = _under(model, table, Presentation(order, tuple(range(n))))
            verdict = seen.verdict(0, item_id=item.id, method=method.name)
            expected = model.decide(*rename(item, calls, order))
            for field in ("choice", "tie", "consistent", "n_calls", "parts"):
                assert getattr(verdict, field) == getattr(expected, field), field
            if expected.scores is not None:
                np.testing.assert_allclose(
                    np.array(verdict.scores, dtype=float),
                    np.array(expected.scores, dtype=float),
                    atol=1e-12,
                )


def keeps_the_verdict_of_a_fair_judge(method: Method) -> None:
    """A judge without bias gets the same verdict under every view."""
    for n in sizes(method):
        items = make_items(method, 12, n)
        model = fit_by(method, 60, n, fair)
        calls = [fair(item, call.ask) for item in items for call in pool(model, [item])]
        table = DecisionTable.of(items, calls)
        own = model.decide_table(table.select(model.asks(n)))
        for shape in presentations("cyclic", n):
            mapped = np.array(shape.order)[_under(model, table, shape).choices]
            assert own.scores is not None
            ranked = np.sort(own.scores, axis=1)
            sure = (
                ranked[:, -1] - ranked[:, -2] > 0.25
            )  # an estimated correction is noise around 0, not 0 exactly
            np.testing.assert_array_equal(mapped[sure], own.choices[sure])
            assert sure.sum() >= 3


def shows_what_it_learned(method: Method) -> None:
    """What was learned is shown; learning from nothing warns, and changes no answer."""
    n = sizes(method)[0]
    learns = bool(method.plan_fit(make_items(method, 1, n)))
    if learns:
        estimates = fitted(method, n).estimates()
        assert estimates
        assert all(estimate.n > 0 for estimate in estimates.values())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        empty = method.fit([], [])
    assert any(issubclass(w.category, MethodWarning) for w in caught) or not learns, "no warning"
    item = make_items(method, 1, n)[0]
    calls = [answer(item, ask, 5) for ask in empty.asks(n)]
    if learned_fields(method) and len(calls) == 1:
        assert empty.decide(item, calls).choice == calls[0].choice


def decides_one_as_it_decides_many(method: Method) -> None:
    """One item alone gets the verdict that it gets among others."""
    for n in sizes(method):
        for seed in range(3):
            model, items = fitted(method, n, seed), make_items(method, 6, n)
            calls = damage(
                [answer(item, ask, seed) for item in items for ask in model.asks(n)],
                np.random.default_rng(seed),
            )
            batch = _decided(model, items, calls)
            for row, item in enumerate(items):
                alone = model.decide(item, [call for call in calls if call.item_id == item.id])
                assert alone == batch.verdict(row, item_id=item.id, method=method.name)


def changes_none_of_its_inputs(method: Method) -> None:
    """Deciding and fitting change nothing that they are given, and keep nothing of an earlier fit."""
    n = sizes(method)[0]
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
    asked = [answer(item, ask, 1) for item in items for ask in method.asks(n)]
    columns = DecisionTable.of(items, asked).select(model.asks(n))
    choices, probs = columns.choices.copy(), copy.deepcopy(columns.probs)
    first, second = model.decide_table(columns), model.decide_table(columns)
    np.testing.assert_array_equal(columns.choices, choices)
    if probs is not None and columns.probs is not None:
        np.testing.assert_array_equal(columns.probs, probs)
    np.testing.assert_array_equal(first.choices, second.choices)


def survives_a_file(method: Method) -> None:
    """What was learned reads back from its file as it was, byte for byte."""

    def encoded(model: Method) -> bytes:
        return msgspec.json.encode(to_json(model), order="deterministic")

    for n in sizes(method):
        for model in (method, fitted(method, n)):
            again = from_json(msgspec.json.decode(encoded(model)))
            assert again == model
            assert encoded(again) == encoded(model)
        item = make_items(method, 1, n)[0]
        calls = [answer(item, ask) for ask in model.asks(n)]
        assert again.decide(item, calls) == model.decide(item, calls)


class _Untouchable:
    """A gold that must not be read."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("gold was read")

    __eq__ = __hash__ = __bool__ = __iter__ = __len__ = __int__ = __str__ = __repr__ = _refuse


def never_reads_gold(method: Method) -> None:
    """Gold is never read, neither in fitting nor in deciding."""
    n = sizes(method)[0]
    plain = make_items(method, 30, n)
    poisoned = [msgspec.structs.replace(item, gold=_Untouchable()) for item in plain]
    planned = method.plan_fit(plain)
    calls = [answer(blind(item), ask, 2) for item, ask in planned]
    assert [ask for _, ask in method.plan_fit(poisoned)] == [ask for _, ask in planned]
    model = method.fit(poisoned, calls)
    assert model == method.fit(plain, calls)
    for item in poisoned[:3]:
        model.decide(item, [answer(plain[0], ask, 2) for ask in model.plan(item)])


def plans_to_an_end(method: Method) -> None:
    """Planning ends within `asks`, and an early stop gives the verdict of everything asked."""
    for n in sizes(method):
        for seed in range(4):
            model = fitted(method, n, seed % 3)
            item = blind(make_items(method, 1, n)[0])
            allowed = {about(item, ask) for ask in model.asks(n)}
            seen: list[Decision] = []
            for _ in range(len(model.asks(n)) + 1):
                asked = {decision.ask for decision in seen}
                fresh = [ask for ask in model.plan(item, seen) if ask not in asked]
                if not fresh:
                    break
                assert set(fresh) <= allowed
                seen += [answer(item, ask, seed) for ask in fresh]
            else:
                raise AssertionError("the plan never stops")
            verdict = model.decide(item, seen)
            whole = model.decide(item, [answer(item, ask, seed) for ask in model.asks(n)])
            assert verdict.choice is not None
            assert (verdict.choice, verdict.tie) == (whole.choice, whole.tie)
            assert verdict.n_calls == whole.n_calls == len(seen)


def keeps_fixed_items_in_place(method: Method) -> None:
    """An item that may not be permuted is asked as it was given, and still decided."""
    for n in sizes(method):
        model = fitted(method, n)
        fixed = msgspec.structs.replace(blind(make_items(method, 1, n)[0]), permutable=False)
        asks = model.plan(fixed)
        assert asks
        assert all(ask.presentation == canonical(n) for ask in asks)
        verdict = model.decide(fixed, [answer(fixed, ask) for ask in asks])
        assert isinstance(verdict.choice, int) or verdict.tie
        for _, ask in method.plan_fit([fixed]):
            assert ask.substitute is not None, "its own candidates are moved for estimation"


def gives_no_verdict_without_calls(method: Method) -> None:
    """Missing calls give no verdict and are not counted."""
    n = sizes(method)[0]
    model, items = fitted(method, n), make_items(method, 3, n)
    calls = [answer(item, ask) for item in items[1:] for ask in model.asks(n)]
    verdicts = _decided(model, items, calls)
    assert verdicts.choices[0] == MISSING
    assert verdicts.n_calls[0] == 0
    assert verdicts.verdict(0, item_id="q0", method=method.name).choice is None
    assert (verdicts.choices[1:] != MISSING).all()


def gives_no_verdict_of_unread_answers(method: Method) -> None:
    """Answers that cannot be read give no verdict: never a default."""
    n = sizes(method)[0]
    model, item = fitted(method, n), make_items(method, 1, n)[0]
    calls = [changed(answer(item, ask), **SILENT) for ask in model.asks(n)]
    verdict = model.decide(item, calls)
    assert (verdict.choice, verdict.confidence) == (None, None)
    assert not verdict.consistent


def never_falls_back_to_the_raw_choice(method: Method) -> None:
    """Where it reads probabilities, an answer without all of them gives no verdict."""
    if Evidence.PROBS not in method.reads:
        return
    n = sizes(method)[0]
    model, item = fitted(method, n), make_items(method, 1, n)[0]
    calls = [answer(item, ask) for ask in model.asks(n)]
    assert model.decide(item, [changed(call, **CHOICE_ALONE) for call in calls]).choice is None
    table = DecisionTable.of([item], calls)
    assert table.probs is not None
    table.probs[:, :, 0] = np.nan
    assert model.decide_table(table.select(model.asks(n))).choices[0] == UNPARSED


def declares_what_it_reads(method: Method) -> None:
    """A method that needs more than choices says so in `reads`, and is refused or silent without it."""
    n = sizes(method)[0]
    needs_more = not method.reads <= {Evidence.CHOICE, Evidence.LEVELS}
    if Evidence.PROBS in method.reads and method.plan_fit(make_items(method, 1, n)):
        try:
            fit_by(method, 30, n, bare)
        except NeedsLogprobs as error:
            assert method.name in str(error)
            return
        raise AssertionError("it learns from decisions without probabilities")
    model, item = fit_by(method, 30, n, bare), make_items(method, 1, n)[0]
    verdict = model.decide(item, [bare(item, ask) for ask in model.asks(n)])
    assert (verdict.choice is None) == needs_more
    scaled = method.reads & {Evidence.LEVELS}
    task = Task.RUBRIC if scaled else item.task
    reason = why_not(method, task=task, n=n, gives=scaled | {Evidence.CHOICE})
    assert (reason is not None) == needs_more


def breaks_ties_by_content(method: Method) -> None:
    """Equal probabilities are decided by content, not by label or position."""
    if Evidence.PROBS not in method.reads:
        return

    def flat(item: Item, ask: Ask) -> Decision:
        return changed(answer(item, ask), probs=(1 / item.n,) * item.n)

    for n in sizes(method):
        items = [blind(item) for item in make_items(method, 40, n)]
        model = method.fit(items, [flat(item, ask) for item, ask in method.plan_fit(items)])
        calls = [flat(item, call.ask) for item in items for call in pool(model, [item])]
        table = DecisionTable.of(items, calls)
        own = model.decide_table(table.select(model.asks(n)))
        assert len(set(own.choices.tolist())) == n, "one candidate always wins"
        for order in cyclic(n):
            seen = _under(model, table, Presentation(order, tuple(range(n))))
            np.testing.assert_array_equal(np.array(order)[seen.choices], own.choices)


def gives_well_formed_verdicts(method: Method) -> None:
    """Choices are candidates or codes, confidences lie in 0 to 1, and calls are within `asks`."""
    for n in sizes(method):
        model, items = fitted(method, n), make_items(method, 40, n)
        calls = [answer(item, ask, 3) for item in items for ask in model.asks(n)]
        verdicts = _decided(model, items, damage(calls, np.random.default_rng(3), 0.5))
        assert verdicts.choices.shape == (40,)
        assert set(verdicts.choices.tolist()) <= {MISSING, UNPARSED, TIE, *range(n)}
        np.testing.assert_array_equal(verdicts.tied.sum(axis=1) > 1, verdicts.choices == TIE)
        named = verdicts.choices >= 0
        sure: FloatArray = verdicts.confidence[named]
        assert np.isnan(verdicts.confidence[~named]).all()
        # a mean may lie at a level, and be highest for a candidate, that no answer names
        least = 0.0 if {Evidence.LEVELS, Evidence.SCORES} & method.reads else 1e-300
        assert ((sure >= least) & (sure <= 1 + 1e-12)).all()
        if len(model.asks(n)) == 1:
            assert (verdicts.consistent == -1).all()
        assert (verdicts.n_calls <= len(model.asks(n))).all()
        for row, item in enumerate(items):
            record = verdicts.verdict(row, item_id=item.id, method=method.name)
            assert record.choice == choice_of(int(verdicts.choices[row]))


RULES: tuple[Callable[[Method], None], ...] = (
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
