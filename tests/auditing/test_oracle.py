"""The whole audit against a naive re-implementation of the written definitions."""

import itertools
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_audit import (
    MISSING,
    Answered,
    Case,
    Judge,
    Order,
    Shown,
    answered,
    average,
    direct,
    grouped,
    mean,
    own,
    paired,
    pride,
    raw,
    rotations,
    table_of,
    vote,
)

from unswayed.auditing.planning import plan_audit
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.model.decisions import Decision, Evidence
from unswayed.model.items import Item, ItemSet, Task
from unswayed.result import AuditResult

BOTH = frozenset({Evidence.CHOICE, Evidence.PROBS})

LETTERS = "ABCDE"
METHODS = ("direct", "vote", "average", "pride")


def views_of(cases: Sequence[Case]) -> dict[str, dict[int, list[Shown]]]:
    """The presentations that occur, sorted into protocols as `formats.md` names them."""
    found: dict[int, set[Shown]] = {}
    for case in cases:
        if case.calls:
            found.setdefault(case.n, set()).update(case.calls)
    result: dict[str, dict[int, list[Shown]]] = {"coupled": {}, "label": {}, "order": {}}
    for n, shown in found.items():
        plain = tuple(range(n))
        coupled = sorted(s for s in shown if s[1] == plain)
        result["coupled"][n] = coupled or sorted(shown)
        result["label"][n] = sorted(s for s in shown if s[0] == plain)
        result["order"][n] = sorted(s for s in shown if s[0] == s[1])
    for name in ("label", "order"):
        if any(len(shown) < 2 for shown in result[name].values()):
            del result[name]
    for case in cases:
        for shown_by_n in result.values():
            shown_by_n.setdefault(case.n, [own(case.n)])
    return result


def decisions_of(cases: Sequence[Case]) -> list[Decision]:
    return [
        Decision(
            item_id=case.id,
            order=order,
            labels=tuple(LETTERS[label] for label in labels),
            label_set=tuple(LETTERS[: case.n]),
            choice=choice,  # type: ignore[arg-type]
            probs=probs,
            model="m",
        )
        for case in cases
        for (order, labels), (choice, probs) in case.calls.items()
    ]


def items_of(cases: Sequence[Case]) -> ItemSet:
    return ItemSet.of(
        [
            Item(
                id=case.id,
                prompt=case.prompt,
                candidates=case.texts,
                task=Task.MCQ,
                gold=case.gold,  # type: ignore[arg-type]
                group=case.group,
                permutable=case.permutable,
            )
            for case in cases
        ],
        name="cases",
    )


def check(reported: object, expected: object, where: str) -> None:
    """Compare an estimate (a list of them, a table of them) with the naive value."""
    if isinstance(expected, Mapping):
        assert isinstance(reported, Mapping), where
        for name, value in expected.items():
            check(reported[name], value, f"{where}.{name}")
    elif isinstance(expected, list) and isinstance(reported, list):
        assert len(reported) == len(expected), where
        for k, (one, two) in enumerate(zip(reported, expected, strict=True)):
            check(one, two, f"{where}[{k}]")
    elif isinstance(expected, list):
        assert expected == [None] * len(expected), where
        check(reported, None, where)
    else:
        assert isinstance(reported, Mapping), where
        value = reported["value"]
        if expected != expected:  # the definition gives no number that rounding would not decide
            return
        if expected is None or value is None:
            assert value is expected, f"{where}: {value} for {expected}"
            assert reported.get("reason"), f"{where}: no reason"
        else:
            assert isinstance(expected, float)
            assert value == pytest.approx(expected, rel=1e-6, abs=1e-9), where
            if reported.get("low") is not None:
                assert reported["low"] - 1e-12 <= value <= reported["high"] + 1e-12, where


def in_common(
    made: Mapping[str, dict[int, list[Answered]]],
) -> dict[str, dict[int, list[Answered]]]:
    """The rows that every method answers in every view; without methods that lack too many."""
    whole = {
        name: {
            (n, k)
            for n, rows in parts.items()
            for k, row in enumerate(rows)
            if (
                MISSING not in row.verdicts
                if row.case.permutable
                else set(row.verdicts) != {MISSING}
            )
        }
        for name, parts in made.items()
    }
    base = whole["direct"]
    kept = [name for name in made if len(whole[name] & base) >= 0.9 * len(base)]
    shared = set.intersection(*(whole[name] for name in kept))
    return {
        name: {
            n: [row for k, row in enumerate(rows) if not shared or (n, k) in shared]
            for n, rows in made[name].items()
        }
        for name in kept
    }


def check_audit(
    metrics: Mapping[str, object],
    cases: Sequence[Case],
    views: Mapping[str, Mapping[int, list[Shown]]],
    *,
    gold_ties: str = "exclude",
    seed: int = 0,
    estimation: int | None = None,
) -> None:
    by_n: dict[int, list[Case]] = {}
    for case in cases:
        by_n.setdefault(case.n, []).append(case)
    rows = metrics["methods"]
    assert isinstance(rows, Mapping)
    made: dict[str, dict[int, list[Answered]]] = {}
    for name in METHODS:
        parts: dict[int, list[Answered]] = {}
        for n, same in by_n.items():
            judges: dict[str, Judge] = {"direct": direct, "vote": vote, "average": average}
            judge = judges.get(name) or pride(same, seed, estimation)
            parts[n] = answered(same, views["coupled"][n], judge)
        if name not in rows:
            assert isinstance(metrics["skipped"], Mapping)
            assert metrics["skipped"][name]
            continue
        check(rows[name], table_of(parts, views["coupled"], gold_ties), name)
        made[name] = parts
        groups, macro = grouped(parts, views["coupled"], gold_ties)
        for group, row in groups.items():
            check(metrics["groups"][group][name], row, f"{group}.{name}")  # type: ignore[index]
        if macro:
            check(metrics["macro"][name], macro, f"macro.{name}")  # type: ignore[index]
    common = in_common(made)
    for name in common.keys() - {"direct"}:
        gains = [
            gain
            for n in by_n
            for gain in paired(
                common[name][n], common["direct"][n], len(views["coupled"][n]), gold_ties
            )
        ]
        accuracy, consistency = zip(*gains, strict=True)
        expected = {
            "accuracy": mean([gain for gain in accuracy if gain is not None]),
            "consistency": mean([gain for gain in consistency if gain is not None]),
        }
        check(metrics["differences"][f"{name}-direct"], expected, f"{name}-direct")  # type: ignore[index]
    protocols = metrics["protocols"]
    assert isinstance(protocols, Mapping)
    assert set(protocols) == set(views)
    for protocol, shown in views.items():
        parts = {n: answered(same, shown[n], raw) for n, same in by_n.items()}
        check(protocols[protocol], table_of(parts, shown, gold_ties), protocol)


EIGHTHS = {
    n: [row for row in itertools.product(range(9), repeat=n) if sum(row) == 8] for n in range(2, 6)
}


@st.composite
def call(draw: st.DrawFn, n: int, *, with_probs: bool) -> tuple[object, object]:
    kind = draw(st.integers(0, 9))
    choice: object = draw(st.integers(0, n - 1))
    if kind == 0:
        choice = None
    elif kind == 1:
        choice = "tie"
    probs = None
    if with_probs and draw(st.integers(0, 11)):
        probs = tuple(k / 8 for k in draw(st.sampled_from(EIGHTHS[n])))
    return choice, probs


@st.composite
def golds(draw: st.DrawFn, n: int) -> object:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return "tie"
    if kind == 1:
        return None
    if kind == 2:
        return tuple(sorted(draw(st.sets(st.integers(0, n - 1), min_size=2, max_size=n))))
    return draw(st.integers(0, n - 1))


@st.composite
def presentations_of(draw: st.DrawFn, n: int) -> list[Shown]:
    plain = tuple(range(n))
    orders: list[Order] = list(rotations(n))
    others = st.permutations(range(n)).map(tuple)
    if draw(st.booleans()):
        orders += draw(st.lists(others, max_size=3))
    if draw(st.integers(0, 4)) == 0:
        orders = draw(st.lists(others, min_size=1, max_size=4))
    shown: list[Shown] = [(order, plain) for order in orders]
    if draw(st.booleans()):
        shown += [(plain, order) for order in draw(st.lists(others, max_size=3))]
    if draw(st.booleans()):
        shown += [(order, order) for order in draw(st.lists(others, max_size=3))]
    if draw(st.integers(0, 5)) == 0:
        shown += [(draw(others), draw(others))]
    return list(dict.fromkeys(shown))


@st.composite
def datasets(draw: st.DrawFn) -> list[Case]:
    sizes = draw(st.sampled_from([(2,), (2,), (3,), (4,), (5,), (2, 3), (2, 4), (3, 5)]))
    with_probs = draw(st.booleans())
    with_groups = draw(st.booleans())
    holes = draw(st.integers(0, 2))
    shown = {n: draw(presentations_of(n)) for n in sizes}
    cases = []
    for number in range(draw(st.integers(len(sizes), 12))):
        n = sizes[number % len(sizes)]
        texts = tuple(draw(st.sampled_from(["x", "y", f"t{c}"])) for c in range(n))
        case = Case(
            id=f"i{number}-{draw(st.integers(0, 99))}",
            texts=texts,
            gold=draw(golds(n)),
            group=draw(st.sampled_from([None, "g", "h"])) if with_groups else None,
            permutable=draw(st.integers(0, 7)) > 0,
            prompt=draw(st.sampled_from([f"q{number}", "q", ""])),
        )
        for one in shown[n]:
            if not (holes and draw(st.integers(0, 9)) < holes):
                case.calls[one] = draw(call(n, with_probs=with_probs))  # type: ignore[assignment]
        cases.append(case)
    if not any(case.calls for case in cases):
        cases[0].calls[shown[cases[0].n][0]] = (0, None)
    return cases


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(
    cases=datasets(),
    gold_ties=st.sampled_from(["exclude", "class"]),
    seed=st.integers(0, 3),
    estimation=st.sampled_from([None, 2, 5]),
)
def test_recorded_decisions_measure_as_the_definitions_say(
    cases: list[Case], gold_ties: str, seed: int, estimation: int | None
) -> None:
    wanted = AuditSettings(
        methods=METHODS,
        resamples=100,
        gold_ties=gold_ties,  # type: ignore[arg-type]
        seed=seed,
        estimation_items=estimation,
    )
    record = AuditResult(
        audit_decisions(decisions_of(cases), items_of(cases), wanted, command="test")
    )
    check_audit(
        record.metrics,
        cases,
        views_of(cases),
        gold_ties=gold_ties,
        seed=seed,
        estimation=estimation,
    )


def orders_named(name: str, n: int) -> list[Order]:
    if name == "full":
        return sorted(itertools.permutations(range(n)))
    forward = rotations(n)
    backward = [tuple(reversed(order)) for order in forward]
    extra = {"cyclic": [], "balanced": backward, "structured": backward[:1]}[name]
    return list(dict.fromkeys([*forward, *extra]))


def run_simulated(
    items: ItemSet, wanted: AuditSettings, model: str
) -> tuple[AuditResult, list[Decision]]:
    record = audit_calls(items, wanted, model, BackendSettings(), directory=None)
    plan = plan_audit(items, wanted, gives=BOTH)
    return record, list(record.record.source(plan.questions()))


@pytest.mark.parametrize(
    ("orders", "sizes"),
    [
        ("cyclic", (2,)),
        ("full", (3,)),
        ("balanced", (4,)),
        ("structured", (2, 5)),
        ("cyclic", (3, 4)),
    ],
)
def test_simulated_judges_measure_as_the_definitions_say(
    orders: str, sizes: tuple[int, ...]
) -> None:
    made = [item for n in sizes for item in simulated_items(24, n, seed=n).items]
    made = [
        msgspec.structs.replace(
            item,
            task=Task.MCQ,
            permutable=number % 9 != 4,
            group="gh"[number % 2],
            gold=None if number % 11 == 3 else item.gold,
        )
        for number, item in enumerate(made)
    ]
    wanted = AuditSettings(methods=METHODS, orders=orders, protocol="all", resamples=100)
    record, decisions = run_simulated(
        ItemSet.of(made, name="made"),
        wanted,
        "simulated/judge?slot=0.9&label=0.5&unparsed=0.1&tie=0.1",
    )
    cases = {
        item.id: Case(  # type: ignore[arg-type]
            item.id, item.candidates, item.gold, item.group, item.permutable, item.prompt
        )
        for item in made
    }
    for one in decisions:
        labels = tuple(one.label_set.index(symbol) for symbol in one.labels)
        cases[one.item_id].calls[one.order, labels] = (one.choice, one.probs)
    views: dict[str, dict[int, list[Shown]]] = {"coupled": {}, "label": {}, "order": {}}
    for n in sizes:
        plain, sets = tuple(range(n)), orders_named(orders, n)
        views["coupled"][n] = [(order, plain) for order in sets]
        views["label"][n] = [(plain, order) for order in sets]
        views["order"][n] = [(order, order) for order in sets]
    check_audit(record.metrics, list(cases.values()), views)
