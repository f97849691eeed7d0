"""Everything registered, and the example of an outside package, keep the rules of `unswayed.testing`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from example_package import EXAMPLE, installed
from unswayed.backends import BACKENDS, Backend
from unswayed.base.errors import UnknownNameError
from unswayed.methods import METHODS
from unswayed.methods.apoc import SKIPS
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method, spec_name
from unswayed.methods.over_orders import Vote
from unswayed.metrics import METRICS
from unswayed.model.calls import Response
from unswayed.model.decisions import DecisionTable, Evidence
from unswayed.model.items import TASKS
from unswayed.model.presentation import presentations
from unswayed.prompts import PROMPTS
from unswayed.testing import (
    check_backend,
    check_engine,
    check_method,
    check_metric,
    check_objective,
    check_prompt,
    check_reward,
    check_skip,
    judges,
    methods,
    metrics,
    tasks,
)
from unswayed.testing.judges import answer, make_items, pool
from unswayed.tiny.items import rubric_items
from unswayed.training.reward_settings import REWARDS
from unswayed.training.table import ENGINES, OBJECTIVES

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
    "selective:orders=auto",
    "selective:guarantee=mean",
    "balanced-rubric:layouts=all",
    "repeat-score:samples=3",
    "bias-cost:search=all",
    "apoc:skip=never",
    "pcf:orders=cyclic",
    "pcf:runs=3",
    "label-shift:strength=0.5",
)
CHECKS = (
    (check_prompt, PROMPTS),
    (check_skip, SKIPS),
    (check_reward, REWARDS),
    (check_objective, OBJECTIVES),
    (check_engine, ENGINES),
)
with installed():
    SPECS = (*METHODS, *VARIANTS)
    METRIC_NAMES, TASK_NAMES = tuple(METRICS), tuple(TASKS)
    OTHERS = [(table.kind, name, check) for check, table in CHECKS for name in table]


def by_name(rule):
    return rule.__name__


@pytest.fixture(scope="module", autouse=True)
def _example() -> Iterator[None]:
    with installed():
        yield


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Small estimation sets are warned about; the tests of each method check that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        yield


def test_example_is_among_those_tested() -> None:
    assert {"first-two", "label-shift"} <= {*SPECS}
    assert EXAMPLE["metric"] <= {*METRIC_NAMES}
    assert EXAMPLE["task"] <= {*TASK_NAMES}


@pytest.mark.parametrize("spec", SPECS)
def test_method_keeps_its_rules(spec, monkeypatch) -> None:
    method = parse_method(spec)
    if spec in VARIANTS:  # its default is tried with four candidates too
        sizes = judges.sizes(method)[:2]
        monkeypatch.setattr(judges, "sizes", lambda _: sizes)
    check_method(method)


@pytest.mark.parametrize("spec", SPECS)
def test_method_is_displayed_as_it_was_asked_for(spec) -> None:
    assert spec_name(parse_method(spec)) == spec


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_metric_keeps_its_rules(name) -> None:
    check_metric(METRICS.load(name))


@pytest.mark.parametrize("name", TASK_NAMES)
@pytest.mark.parametrize("rule", tasks.RULES, ids=by_name)
def test_task_keeps_rule(rule, name) -> None:
    rule(TASKS.load(name))


@pytest.mark.parametrize(("kind", "name", "check"), OTHERS)
def test_thing_of_another_kind_keeps_its_rules(kind, name, check) -> None:
    (table,) = (table for _, table in CHECKS if table.kind == kind)
    check(table.load(name))


@pytest.mark.parametrize(
    ("name", "model", "items"),
    [
        ("simulated", "judge", None),
        ("longest", "words", None),
        ("tiny", "judge", None),  # knows the words of the items that are asked about by default
        ("tiny", "rubric", rubric_items(10)),
    ],
)
def test_backend_keeps_rules(name, model, items) -> None:
    check_backend(BACKENDS.load(name), model, items=items)


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
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [2, 3, 4])
def test_method_of_every_order_answers_alike_under_every_view(spec, n, seed) -> None:
    method = judges.fitted(parse_method(spec), n)
    items = make_items(method, 8, n)
    table = DecisionTable.of(items, pool(method, items, partial(answer, seed=seed)))
    own = method.decide_table(table.select(method.asks(n)))
    for shape in presentations("cyclic", n):
        seen = method.decide_table(table.select(method.asks(n), through=shape))
        mapped = np.where(seen.choices >= 0, np.array(shape.order)[seen.choices], seen.choices)
        np.testing.assert_array_equal(mapped, own.choices)
        np.testing.assert_array_equal(seen.tied, own.tied[:, list(shape.order)])


class ReadsPosition(Vote):
    """A vote that always names the first candidate."""

    def decide_table(self, table):
        verdicts = super().decide_table(table)
        verdicts.choices[verdicts.choices >= 0] = 0
        return verdicts


class Greedy(Backend):
    model = "greedy/test"
    offline = True

    async def answer(self, queries):
        for query in list(queries):
            yield query, Response(text=query.request.labels[0])


def open_greedy(model, settings):
    """The first label, once every question is there."""
    return Greedy()


class SilentlyNeedsMore(Vote):
    reads = frozenset({Evidence.CHOICE, Evidence.PROBS})


@pytest.mark.parametrize(
    ("check", "broken", "rule"),
    [
        (check_method, ReadsPosition(), "is_read_by_its_name|has_a_full_description"),
        (check_metric, replace(METRICS.load("accuracy"), meaning=""), "says_what_it_is"),
        (check_reward, replace(REWARDS.load("con"), sampled=lambda z, right: z * np.nan), "pays_e"),
        (check_reward, replace(REWARDS.load("con"), sampled=lambda z, right: z * 1.0), "ignores_"),
        (check_backend, lambda model, settings: None, "says_what_it_is"),
        (check_backend, open_greedy, "pulls_lazily"),
        (check_skip, lambda item: item.gold, "is_a_function_of_blind_items"),
    ],
)
def test_broken_rule_is_named(check, broken, rule) -> None:
    with pytest.raises(AssertionError, match=f"breaks the rule ({rule})"):
        check(broken)


@pytest.mark.parametrize("reads", ["probs", ("probs",), frozenset({"logprobs"})])
def test_method_with_unknown_evidence_is_refused(reads) -> None:
    with pytest.raises(TypeError, match=r"^Odd\.reads is .*Write reads = frozenset\(\{Evidence"):
        type("Odd", (Vote,), {"reads": reads})


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        (methods.keeps_the_verdict_of_a_fair_judge, (ReadsPosition(), 2)),
        (methods.never_falls_back_to_the_raw_choice, (SilentlyNeedsMore(), 2)),
        (methods.declares_what_it_reads, (SilentlyNeedsMore(), 2)),
        (
            metrics.adds_up,
            (replace(METRICS.load("accuracy"), statistics=lambda o: np.ones((40, 2))),),
        ),
        (metrics.names_its_needs, (replace(METRICS.load("label_mass"), needs=()),)),
    ],
)
def test_rule_is_broken_by_what_it_is_against(rule, broken) -> None:
    with pytest.raises((AssertionError, ValueError)):
        rule(*broken)


def test_metric_knows_the_name_it_is_registered_under() -> None:
    assert [METRICS.name_of(METRICS.load(name)) for name in METRICS] == list(METRICS)
    with pytest.raises(UnknownNameError, match="no metric is"):
        METRICS.name_of(replace(METRICS.load("accuracy"), title="a copy"))
