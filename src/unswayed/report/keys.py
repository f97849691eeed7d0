"""The key figures under the headline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unswayed.decisions import Estimate
from unswayed.report.findings import Finding
from unswayed.report.numerals import interval, ordinal, share, spelled
from unswayed.report.plots import Block, Mark, PlotRow, PlotTable, mark, row
from unswayed.visible import one_line

__all__ = ["KeyFigure", "key_figures", "key_tables"]

MOST = 4


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number to remember.

    Attributes:
        reference: Where a judge without bias, or the recommended method, would be.
        compared: That reference in words.
    """

    label: str
    estimate: Estimate
    reference: float | None
    compared: str

    @property
    def number(self) -> str:
        """The value in percent, without the sign."""
        return share(self.estimate.value or 0.0)

    @property
    def mark(self) -> Mark | None:
        """Its strip."""
        return mark(self.estimate, expected=self.reference, on=True)

    @property
    def below(self) -> str:
        """Interval and comparison."""
        return "; ".join(part for part in (interval(self.estimate), self.compared) if part)


def key_figures(found: Finding) -> list[KeyFigure]:
    """At most four figures: position, steadiness, and how often it is right."""
    made = [_position(found), _steadiness(found)]
    made += [_right_in_all(found), _right(found)] if found.audit.has_gold else _alone(found)
    return [figure for figure in made if figure is not None][:MOST]


def _position(found: Finding) -> KeyFigure | None:
    if not found.rates:
        return None
    where = ordinal(found.position)
    label = f"of calls pick the answer in {where} position"
    if found.n == 2 and found.position == 1:
        label = "of calls pick the answer in last position"
    if found.n > 2:
        label = f"of calls pick the {where} option"
    compared = f"no bias: {share(found.expected, 0 if 100 % found.n == 0 else 1)}"
    return KeyFigure(label, found.rates[found.position], found.expected, compared)


def _steadiness(found: Finding) -> KeyFigure | None:
    estimate = found.audit.plain.get("consistency") or found.audit.base_row.get("consistency")
    if estimate is None or estimate.value is None:
        return None
    if found.n > 2:
        orders = found.audit.orders_each
        of = f"an item's {spelled(orders)} orders" if orders else "an item's orders"
        label = f"of {of} agree with its most frequent answer"
        return KeyFigure(label, estimate, 1.0, "no bias: 100")
    flips = Estimate(
        value=1 - estimate.value,
        low=None if estimate.high is None else 1 - estimate.high,
        high=None if estimate.low is None else 1 - estimate.low,
        n=estimate.n,
    )
    also = "flip or cannot be read" if found.audit.flips.get("unread") else "flip"
    label = f"of verdicts {also} when the answers change places"
    return KeyFigure(label, flips, 0.0, "no bias: 0")


def _with_remedy(found: Finding, metric: str) -> tuple[float | None, str]:
    method = found.recommended
    if method is None or method == found.audit.base:
        return None, ""
    estimate = found.audit.methods[method].get(metric)
    if estimate is None or estimate.value is None:
        return None, ""
    return estimate.value, f"with {one_line(method)}: {share(estimate.value)}"


def _right_in_all(found: Finding) -> KeyFigure | None:
    estimate = found.audit.base_row.get("consistent_accuracy")
    if estimate is None:
        return None
    label = "of items are judged right in both orders"
    if found.n > 2:
        label = "of items have the right answer as their most frequent one"
    return KeyFigure(label, estimate, *_with_remedy(found, "consistent_accuracy"))


def _right(found: Finding) -> KeyFigure | None:
    estimate = found.audit.base_row.get("accuracy")
    if estimate is None:
        return None
    label = "of single verdicts are right, as used today"
    return KeyFigure(label, estimate, *_with_remedy(found, "accuracy"))


def _alone(found: Finding) -> list[KeyFigure | None]:
    """What stands in for accuracy without gold: each bias on its own."""
    made: list[KeyFigure | None] = []
    expected = found.expected
    compared = f"no bias: {share(expected, 0 if 100 % found.n == 0 else 1)}"
    alone = found.audit.rates("order", "position")
    named = found.audit.rates("label", "label")
    if alone:
        text = f"pick the {ordinal(found.position)} position with the labels balanced out"
        made.append(KeyFigure(text, alone[found.position], expected, compared))
    if named:
        index = max(range(len(named)), key=lambda i: named[i].value or 0.0)
        text = f"pick the label {found.labels[index]} with the positions balanced out"
        made.append(KeyFigure(text, named[index], expected, compared))
    return made


def key_tables(findings: Sequence[Finding], names: Sequence[str]) -> list[PlotTable]:
    """The key figures of several runs: one small table per figure, a row per run."""
    by_label: dict[str, list[PlotRow]] = {}
    for found, run_name in zip(findings, names, strict=True):
        for figure in key_figures(found):
            made = row(run_name, figure.estimate, expected=figure.reference, on=True)
            by_label.setdefault(figure.label, []).append(made)
    return [
        PlotTable(f"% {label}", "", "dot", (Block(tuple(rows)),), ticks=(0, 0.5, 1), wide="r")
        for label, rows in by_label.items()
    ]
