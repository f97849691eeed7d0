"""What every registered method must do, whatever its idea."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outside_methods import installed

from unswayed.decisions import MISSING, TIE, UNPARSED, Decision, DecisionTable, Evidence, choice_of
from unswayed.errors import NeedsLogprobs
from unswayed.items import Item, Task, blind
from unswayed.methods import METHODS
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.files import from_json, to_json
from unswayed.methods.names import parse_method, spec_name
from unswayed.methods.protocol import Method, is_fitted, learned_fields, why_not
from unswayed.permutations import cyclic, invert
from unswayed.presentation import Ask, Presentation, canonical, presentations, settled, through
from unswayed.tasks import tasks_giving

VARIANTS = (
    "vote:layouts=all",
    "vote:orders=balanced",
    "average:space=logit",
    "average:layouts=all",
    "contextual:layouts=all",
    "contextual:strings=N/A:per_item=true",
    "pride:prior=cell",
    "pride:prior=group",
    "pride:mean=geometric",
    "cell-median:layouts=all",
    "additive:orders=auto",
    "additive:design=coupled",
    "additive:centre=median",
    "calibraeval:solver=noa:epochs=20",
    "calibraeval:objective=l1",
    "sequential:rule=lead:lead=2",
    "sequential:rule=agree",
    "sequential:orders=random:5",
    "balanced-rubric:orders=cyclic",
    "balanced-rubric:layouts=all",
    "repeat-score:samples=3",
    "bias-cost:search=all",
    "apoc:skip=never",
    "pcf:orders=cyclic",
    "pcf:runs=3",
)
OUTSIDE = ("first-two", "label-shift", "label-shift:strength=0.5")
with TemporaryDirectory() as folder, installed(Path(folder)):
    SPECS = (*METHODS, *VARIANTS, OUTSIDE[-1])
    WITH_PROBS = tuple(spec for spec in SPECS if Evidence.PROBS in parse_method(spec).reads)
    LEARNING = tuple(spec for spec in SPECS if learned_fields(parse_method(spec)))
SYMBOLS = "ABCDEFG"
QUICK = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="module", autouse=True)
def _methods_of_another_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("site")):
        yield


def test_methods_of_another_package_are_among_those_tested() -> None:
    assert set(OUTSIDE) <= set(SPECS)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Small estimation sets are warned about; the tests of each method check that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def numbers_for(spec: str) -> tuple[int, ...]:
    """Numbers of candidates the method works for."""
    only = parse_method(spec).about.candidates
    return (only,) if only else (2, 3, 4)


def task_for(n: int) -> Task:
    return Task.PAIRWISE if n == 2 else Task.MCQ


def make_items(count: int, n: int, *, spec: str, prefix: str = "q") -> list[Item]:
    """Items that the method works on: levels have values, listed in no order."""
    scaled = Evidence.LEVELS in parse_method(spec).reads
    values = tuple(float((2 * c + 1) % (n + 1 - n % 2)) for c in range(n))
    return [
        Item(
            id=f"{prefix}{i}",
            task=task_for(n),
            prompt=f"which of these, number {i}?",
            candidates=tuple(f"text {c} of {prefix}{i}" for c in range(n)),
            gold=i % n,
            group="odd" if i % 2 else "even",
            values=values if scaled else None,
        )
        for i in range(count)
    ]


def judge_probs(item: Item, ask: Ask, seed: int) -> np.ndarray:
    """A biased judge as a function of what is shown, by candidate: content, position, label."""
    n = item.n
    shown = ask.presentation

    def quality(text: str) -> float:
        # the content's appeal hangs on its text alone, never on its index
        return float(np.random.default_rng([seed, *text.encode()]).normal(0, 1.2))

    bias = np.random.default_rng([seed, n]).normal(0, 0.8, (2, n))
    texts = item.candidates if ask.substitute is None else ask.substitute.candidates
    logit = np.empty(n)
    for position, candidate in enumerate(shown.order):
        logit[candidate] = (
            quality(str(texts[candidate]))
            + bias[0, position]
            + bias[1, shown.labels[position]]
            + 0.1 * ask.sample
        )
    probs = np.exp(logit - logit.max())
    return probs / probs.sum()


def rated(probs: np.ndarray) -> dict[str, Any]:
    """What a listwise judge with these probabilities says: points, a ranking, a flag."""
    return {
        "scores": tuple(float(100 * p) for p in probs),
        "ranking": tuple(int(c) for c in np.argsort(-probs, kind="stable")),
        "flags": {"calibrated_uncertainty": tuple(bool(p < 0.3) for p in probs)},
    }


CHOICE_ALONE = {"probs": None, "scores": None, "ranking": None, "flags": None}
SILENT = {"choice": None, **CHOICE_ALONE}
"""What a reply that cannot be read says."""


def about(item: Item, ask: Ask) -> Ask:
    """The question that an ask is about this item."""
    found = settled(ask, item)
    assert found is not None
    return found


def answer(item: Item, ask: Ask, seed: int) -> Decision:
    ask = about(item, ask)
    probs = judge_probs(item, ask, seed)
    label_set = tuple(SYMBOLS[: item.n])
    return Decision(
        item_id=item.id,
        order=ask.presentation.order,
        labels=ask.presentation.symbols(label_set),
        label_set=label_set,
        sample=ask.sample,
        prompt_id=ask.prompt_id,
        choice=int(probs.argmax()),
        probs=tuple(float(p) for p in probs),
        **rated(probs),
        substitute=None if ask.substitute is None else ask.substitute.candidates,
        substitute_prompt=None if ask.substitute is None else ask.substitute.prompt,
    )


@cache
def ready(spec: str, n: int, seed: int = 0, *, count: int = 30) -> Method:
    """The method, fitted on items of its own where it learns anything."""
    method = parse_method(spec)
    items = make_items(count, n, prefix="fit", spec=spec)
    planned = method.plan_fit([blind(item) for item in items])
    return method.fit([blind(item) for item in items], [answer(i, a, seed) for i, a in planned])


def pool(method: Method, items: Sequence[Item], seed: int) -> list[Decision]:
    """Everything the method could ask, seen through every rotation of the candidates."""
    n = items[0].n
    views = presentations("cyclic", n)
    asks: dict[Ask, None] = {}
    for outer in views:
        for ask in method.asks(n):
            asks[through(outer, ask)] = None
    return [answer(item, ask, seed) for item in items for ask in asks]


def damage(
    decisions: list[Decision], rng: np.random.Generator, rate: float = 0.25
) -> list[Decision]:
    """Drop, blank, tie and strip some decisions."""
    result = []
    for decision in decisions:
        fate = rng.random()
        if decision.substitute is not None or fate > rate:
            result.append(decision)
        elif fate > 0.75 * rate:
            result.append(msgspec.structs.replace(decision, probs=None, ranking=None, flags=None))
        elif fate > 0.5 * rate:
            result.append(msgspec.structs.replace(decision, **SILENT))
        elif fate > 0.25 * rate:
            result.append(msgspec.structs.replace(decision, choice="tie"))
    return result


def rename(item: Item, decisions: Sequence[Decision], order: tuple[int, ...]) -> Any:
    """The same item and the same calls after its candidates were renumbered.

    New candidate j is old candidate order[j]; what was shown to the judge does not change.
    """
    new_of = invert(order)

    def by_candidate(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple(values[c] for c in order)

    renamed = msgspec.structs.replace(
        item, candidates=by_candidate(item.candidates), values=by_candidate(item.values)
    )

    calls = [
        msgspec.structs.replace(
            decision,
            order=tuple(new_of[c] for c in decision.order),
            choice=new_of[decision.choice] if isinstance(decision.choice, int) else decision.choice,
            probs=by_candidate(decision.probs),
            scores=by_candidate(decision.scores),
            ranking=decision.ranking and tuple(new_of[c] for c in decision.ranking),
            flags=decision.flags
            and {name: by_candidate(values) for name, values in decision.flags.items()},
            substitute=by_candidate(decision.substitute),
        )
        for decision in decisions
    ]
    return renamed, calls


@pytest.mark.parametrize("spec", SPECS)
def test_the_class_is_a_frozen_slotted_dataclass_with_a_full_description(spec: str) -> None:
    method = parse_method(spec)
    assert is_dataclass(method)
    assert method.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not hasattr(method, "__dict__")
    assert method.name == spec.partition(":")[0]
    assert tasks_giving(method.reads)
    about = method.about
    for text in (about.title, about.source, about.idea, about.calls, about.equation):
        assert text.strip()
    assert about.helps
    assert about.cannot
    assert bool(about.estimation) == bool(learned_fields(method))
    assert (method.fitted_from > 0) == bool(learned_fields(method))


@pytest.mark.parametrize("spec", SPECS)
def test_the_display_name_reads_back_as_the_same_method(spec: str) -> None:
    method = parse_method(spec)
    assert spec_name(method) == spec
    assert parse_method(spec_name(method)) == method


@pytest.mark.parametrize("spec", SPECS)
@QUICK
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_renumbering_the_candidates_renumbers_the_verdict(
    spec: str, data: st.DataObject, seed: int
) -> None:
    n = data.draw(st.sampled_from(numbers_for(spec)))
    order = data.draw(st.sampled_from(cyclic(n)))
    method = ready(spec, n, seed % 3)
    item = make_items(1, n, spec=spec)[0]
    calls = damage(pool(method, [item], seed), np.random.default_rng(seed))
    table = DecisionTable.of([item], calls, asks=None) if calls else None
    if table is None or not table.asks:
        return
    outer = Presentation(order, tuple(range(n)))
    seen = method.decide_table(table.select(method.asks(n), through=outer))
    renamed, renamed_calls = rename(item, calls, order)
    expected = method.decide(renamed, renamed_calls)
    verdict = seen.verdict(0, item_id=item.id, method=method.name)
    assert (verdict.choice, verdict.tie) == (expected.choice, expected.tie)
    assert verdict.consistent == expected.consistent
    assert verdict.n_calls == expected.n_calls
    if expected.scores is not None:
        np.testing.assert_allclose(np.array(verdict.scores), np.array(expected.scores), atol=1e-12)
    assert verdict.parts == expected.parts


@pytest.mark.parametrize("spec", SPECS)
def test_a_judge_without_bias_gets_the_same_verdict_under_every_view(spec: str) -> None:
    for n in numbers_for(spec):
        items = make_items(12, n, spec=spec)

        def fair(item: Item, ask: Ask) -> Decision:
            # appeal by text alone, none for content-free text: no bias at all
            appeal = [
                np.random.default_rng([*str(text).encode()]).normal() for text in item.candidates
            ]
            logit = np.array(appeal if ask.substitute is None else np.zeros(item.n))
            probs = np.exp(logit) / np.exp(logit).sum()
            return msgspec.structs.replace(
                answer(item, ask, 0),
                probs=tuple(map(float, probs)),
                choice=int(probs.argmax()),
                **rated(probs),
            )

        method = parse_method(spec)
        fit_items = [blind(item) for item in make_items(60, n, prefix="fit", spec=spec)]
        method = method.fit(fit_items, [fair(i, a) for i, a in method.plan_fit(fit_items)])
        calls = [fair(item, d.ask) for item in items for d in pool(method, [item], 0)]
        table = DecisionTable.of(items, calls)
        own = method.decide_table(table.select(method.asks(n)))
        for shape in presentations("cyclic", n):
            seen = method.decide_table(table.select(method.asks(n), through=shape))
            mapped = np.array(shape.order)[seen.choices]
            margin = np.sort(own.scores, axis=1)[:, -1] - np.sort(own.scores, axis=1)[:, -2]
            sure = margin > 0.25  # an estimated correction is noise around 0, not 0 exactly
            np.testing.assert_array_equal(mapped[sure], own.choices[sure])
            assert sure.sum() >= 3


@pytest.mark.parametrize(
    "spec",
    [
        "canonical",
        "vote",
        "average",
        "average:space=logit",
        "sequential",
        "balanced-rubric",
        "balanced-rubric:orders=cyclic",
        "bias-cost",
        "pcf:orders=cyclic",
    ],
)
@QUICK
@given(n=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_methods_that_read_every_order_answer_alike_under_every_view(
    spec: str, n: int, seed: int
) -> None:
    method = ready(spec, n)
    items = make_items(8, n, spec=spec)
    table = DecisionTable.of(items, pool(method, items, seed))
    own = method.decide_table(table.select(method.asks(n)))
    for shape in presentations("cyclic", n):
        seen = method.decide_table(table.select(method.asks(n), through=shape))
        mapped = np.where(seen.choices >= 0, np.array(shape.order)[seen.choices], seen.choices)
        np.testing.assert_array_equal(mapped, own.choices)
        np.testing.assert_array_equal(seen.tied, own.tied[:, list(shape.order)])


@pytest.mark.parametrize("spec", LEARNING)
def test_what_was_learned_can_be_shown_and_learning_from_nothing_is_the_identity(spec: str) -> None:
    method = parse_method(spec)
    n = numbers_for(spec)[0]
    if method.plan_fit(make_items(1, n, spec=spec)):
        estimates = ready(spec, n).estimates()
        assert estimates
        assert all(estimate.n > 0 for estimate in estimates.values())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        empty = method.fit([], [])
    if method.plan_fit(make_items(1, n, spec=spec)):
        assert any(issubclass(entry.category, MethodWarning) for entry in caught)
    item = make_items(1, n, spec=spec)[0]
    calls = [answer(item, ask, 5) for ask in empty.asks(n)]
    if len(calls) == 1:
        assert empty.decide(item, calls).choice == calls[0].choice


@pytest.mark.parametrize("spec", SPECS)
@QUICK
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_streaming_equals_batch(spec: str, data: st.DataObject, seed: int) -> None:
    n = data.draw(st.sampled_from(numbers_for(spec)))
    method = ready(spec, n, seed % 3)
    items = make_items(6, n, spec=spec)
    calls = damage(
        [answer(item, ask, seed) for item in items for ask in method.asks(n)],
        np.random.default_rng(seed),
    )
    table = DecisionTable.of(items, calls)
    batch = method.decide_table(table.select(method.asks(n)))
    for row, item in enumerate(items):
        alone = method.decide(item, [call for call in calls if call.item_id == item.id])
        assert alone == batch.verdict(row, item_id=item.id, method=method.name)


@pytest.mark.parametrize("spec", SPECS)
def test_deciding_and_fitting_change_none_of_their_inputs(spec: str) -> None:
    n = numbers_for(spec)[0]
    method = parse_method(spec)
    items = [blind(item) for item in make_items(30, n, spec=spec)]
    planned = method.plan_fit(items)
    calls = [answer(item, ask, 1) for item, ask in planned]
    before = copy.deepcopy((items, calls))
    fitted = method.fit(items, calls)
    assert (items, calls) == before
    assert type(fitted) is type(method)
    for spec_field in fields(method):  # type: ignore[arg-type]
        if spec_field.name not in learned_fields(method):
            assert getattr(fitted, spec_field.name) == getattr(method, spec_field.name)
    if learned_fields(method):
        assert is_fitted(method) == (not planned)
    assert is_fitted(fitted)
    assert fitted.fit(items, calls) == fitted  # nothing of an earlier fit is carried over
    table = DecisionTable.of(items, [answer(i, a, 1) for i in items for a in method.asks(n)])
    columns = table.select(fitted.asks(n))
    choices = columns.choices.copy()
    probs = None if columns.probs is None else columns.probs.copy()
    first = fitted.decide_table(columns)
    second = fitted.decide_table(columns)
    np.testing.assert_array_equal(columns.choices, choices)
    if probs is not None:
        np.testing.assert_array_equal(columns.probs, probs)
    np.testing.assert_array_equal(first.choices, second.choices)


@pytest.mark.parametrize("spec", SPECS)
def test_what_was_learned_survives_a_json_file(spec: str) -> None:
    for n in numbers_for(spec):
        fitted = ready(spec, n)
        data = encode_method(fitted)
        assert decode_method(data) == fitted
        assert encode_method(decode_method(data)) == data
        assert decode_method(encode_method(parse_method(spec))) == parse_method(spec)
        item = make_items(1, n, spec=spec)[0]
        calls = [answer(item, ask, 0) for ask in fitted.asks(n)]
        assert decode_method(data).decide(item, calls) == fitted.decide(item, calls)


def encode_method(method: Method) -> bytes:
    return msgspec.json.encode(to_json(method), order="deterministic")


def decode_method(data: bytes) -> Method:
    return from_json(msgspec.json.decode(data))


class PoisonedError(Exception):
    pass


class Untouchable:
    """A gold that must not be read."""

    def _refuse(self, *_: object) -> Any:
        raise PoisonedError("gold was read")

    __eq__ = __hash__ = __bool__ = __iter__ = __len__ = __int__ = __str__ = __repr__ = _refuse  # type: ignore[assignment]


@pytest.mark.parametrize("spec", SPECS)
def test_gold_is_never_read(spec: str) -> None:
    n = numbers_for(spec)[0]
    method = parse_method(spec)
    plain = make_items(30, n, spec=spec)
    poisoned = [msgspec.structs.replace(item, gold=Untouchable()) for item in plain]  # type: ignore[arg-type]
    planned = method.plan_fit(poisoned)
    calls = [answer(blind(item), ask, 2) for item, ask in method.plan_fit(plain)]
    assert [ask for _, ask in planned] == [ask for _, ask in method.plan_fit(plain)]
    fitted = method.fit(poisoned, calls)
    assert fitted == method.fit(plain, calls)
    for item in poisoned[:3]:
        decisions = [answer(plain[0], ask, 2) for ask in fitted.plan(item)]
        fitted.decide(item, decisions)


@pytest.mark.parametrize("spec", SPECS)
@QUICK
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_planning_reaches_a_fixed_point_within_what_it_may_ask(
    spec: str, data: st.DataObject, seed: int
) -> None:
    n = data.draw(st.sampled_from(numbers_for(spec)))
    method = ready(spec, n, seed % 3)
    item = blind(make_items(1, n, spec=spec)[0])
    seen: list[Decision] = []
    for _ in range(len(method.asks(n)) + 1):
        asked = {decision.ask for decision in seen}
        fresh = [ask for ask in method.plan(item, seen) if ask not in asked]
        if not fresh:
            break
        assert set(fresh) <= {about(item, ask) for ask in method.asks(n)}
        seen += [answer(item, ask, seed) for ask in fresh]
    else:
        pytest.fail("the plan never stops")
    everything = [answer(item, ask, seed) for ask in method.asks(n)]
    verdict = method.decide(item, seen)
    whole = method.decide(item, everything)
    assert verdict.choice is not None
    assert (verdict.choice, verdict.tie) == (whole.choice, whole.tie)
    assert verdict.n_calls == whole.n_calls == len(seen)


@pytest.mark.parametrize("spec", SPECS)
def test_items_that_are_not_permutable_are_asked_as_they_were_given_only(spec: str) -> None:
    for n in numbers_for(spec):
        method = ready(spec, n)
        fixed = msgspec.structs.replace(blind(make_items(1, n, spec=spec)[0]), permutable=False)
        asks = method.plan(fixed)
        assert asks
        assert all(ask.presentation == canonical(n) for ask in asks)
        verdict = method.decide(fixed, [answer(fixed, ask, 0) for ask in asks])
        assert isinstance(verdict.choice, int) or verdict.tie
        for _, ask in parse_method(spec).plan_fit([fixed]):
            assert ask.substitute is not None  # its own candidates are never moved


@pytest.mark.parametrize("spec", SPECS)
def test_a_missing_call_gives_no_verdict_and_is_not_counted(spec: str) -> None:
    n = numbers_for(spec)[0]
    method = ready(spec, n)
    items = make_items(3, n, spec=spec)
    calls = [answer(item, ask, 0) for item in items[1:] for ask in method.asks(n)]
    table = DecisionTable.of(items, calls).select(method.asks(n))
    verdicts = method.decide_table(table)
    assert verdicts.choices[0] == MISSING
    assert verdicts.n_calls[0] == 0
    assert verdicts.verdict(0, item_id="q0", method=method.name).choice is None
    assert (verdicts.choices[1:] != MISSING).all()


@pytest.mark.parametrize("spec", SPECS)
def test_unparsed_answers_without_probabilities_give_a_null_verdict(spec: str) -> None:
    n = numbers_for(spec)[0]
    method = ready(spec, n)
    item = make_items(1, n, spec=spec)[0]
    calls = [msgspec.structs.replace(answer(item, ask, 0), **SILENT) for ask in method.asks(n)]
    verdict = method.decide(item, calls)
    assert verdict.choice is None
    assert verdict.confidence is None
    assert not verdict.consistent


@pytest.mark.parametrize("spec", WITH_PROBS)
def test_partial_probabilities_never_fall_back_to_the_raw_choice(spec: str) -> None:
    method = ready(spec, numbers_for(spec)[0])
    n = numbers_for(spec)[0]
    item = make_items(1, n, spec=spec)[0]
    calls = [
        msgspec.structs.replace(answer(item, ask, 0), **CHOICE_ALONE) for ask in method.asks(n)
    ]
    assert method.decide(item, calls).choice is None
    table = DecisionTable.of([item], [answer(item, ask, 0) for ask in method.asks(n)])
    assert table.probs is not None
    table.probs[:, :, 0] = np.nan
    assert method.decide_table(table.select(method.asks(n))).choices[0] == UNPARSED


@pytest.mark.parametrize("spec", SPECS)
def test_needing_more_than_a_choice_is_declared_honestly(spec: str) -> None:
    n = numbers_for(spec)[0]
    method = parse_method(spec)
    items = [blind(item) for item in make_items(30, n, spec=spec)]

    def bare(item: Item, ask: Ask) -> Decision:
        return msgspec.structs.replace(answer(item, ask, 0), **CHOICE_ALONE)

    needs_more = not method.reads <= {Evidence.CHOICE, Evidence.LEVELS}
    planned = method.plan_fit(items)
    if Evidence.PROBS in method.reads and planned:
        with pytest.raises(NeedsLogprobs, match=method.name):
            method.fit(items, [bare(item, ask) for item, ask in planned])
        return
    fitted = method.fit(items, [bare(item, ask) for item, ask in planned])
    verdict = fitted.decide(items[0], [bare(items[0], ask) for ask in fitted.asks(n)])
    assert (verdict.choice is None) == needs_more
    scaled = method.reads & {Evidence.LEVELS}
    task = Task.RUBRIC if scaled else task_for(n)
    reason = why_not(method, task=task, n=n, gives=scaled | {Evidence.CHOICE})
    assert (reason is not None) == needs_more


@pytest.mark.parametrize("spec", WITH_PROBS)
def test_equal_probabilities_are_decided_by_content_not_by_label_or_position(spec: str) -> None:
    method = parse_method(spec)
    for n in numbers_for(spec):
        items = [blind(item) for item in make_items(40, n, spec=spec)]

        def flat(item: Item, ask: Ask) -> Decision:
            return msgspec.structs.replace(answer(item, ask, 0), probs=(1 / item.n,) * item.n)

        fitted = method.fit(items, [flat(i, a) for i, a in method.plan_fit(items)])
        table = DecisionTable.of(
            items, [flat(item, d.ask) for item in items for d in pool(fitted, [item], 0)]
        )
        own = fitted.decide_table(table.select(fitted.asks(n)))
        assert len(set(own.choices.tolist())) == n  # not always the first
        for order in cyclic(n):
            outer = Presentation(order, tuple(range(n)))
            seen = fitted.decide_table(table.select(fitted.asks(n), through=outer))
            np.testing.assert_array_equal(np.array(order)[seen.choices], own.choices)


@pytest.mark.parametrize("spec", SPECS)
def test_verdicts_are_well_formed(spec: str) -> None:
    for n in numbers_for(spec):
        method = ready(spec, n)
        items = make_items(40, n, spec=spec)
        rng = np.random.default_rng(3)
        calls = damage([answer(i, a, 3) for i in items for a in method.asks(n)], rng, 0.5)
        verdicts = method.decide_table(DecisionTable.of(items, calls).select(method.asks(n)))
        assert verdicts.choices.shape == (40,)
        assert set(verdicts.choices.tolist()) <= {MISSING, UNPARSED, TIE, *range(n)}
        np.testing.assert_array_equal(verdicts.tied.sum(axis=1) > 1, verdicts.choices == TIE)
        named = verdicts.choices >= 0
        assert not np.isnan(verdicts.confidence[named]).any()
        assert np.isnan(verdicts.confidence[~named]).all()
        sure = verdicts.confidence[named]
        # a mean may lie at a level, and be highest for a candidate, that no answer names
        least = 0.0 if {Evidence.LEVELS, Evidence.SCORES} & method.reads else 1e-300
        assert ((sure >= least) & (sure <= 1 + 1e-12)).all()
        if len(method.asks(n)) == 1:
            assert (verdicts.consistent == -1).all()
        assert (verdicts.n_calls <= len(method.asks(n))).all()
        for row, item in enumerate(items):
            record = verdicts.verdict(row, item_id=item.id, method=method.name)
            assert record.choice == choice_of(int(verdicts.choices[row]))


@pytest.mark.parametrize("spec", SPECS)
def test_the_canonical_question_comes_first(spec: str) -> None:
    for n in numbers_for(spec):
        assert parse_method(spec).asks(n)[0].presentation == canonical(n)


@pytest.mark.parametrize("spec", SPECS)
def test_parameters_can_be_replaced_but_not_assigned(spec: str) -> None:
    method = parse_method(spec)
    with pytest.raises((AttributeError, TypeError)):
        method.name_of_nothing = 1  # type: ignore[attr-defined]
    assert replace(method) == method  # type: ignore[type-var]
