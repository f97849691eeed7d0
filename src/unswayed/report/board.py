"""A ranking of models in the terminal."""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from unswayed.base.visible import one_line, visible
from unswayed.metrics.board import Ranking, Standing
from unswayed.report.numerals import interval, percent, plural, points, share

COLUMNS: Final = "Score|95%\ninterval|Rank|Ranks\npossible|Shown\nfirst|Shown\nsecond"
LISTED: Final = 6
"""Most pairs of models that a sentence names; JSON has all under `certainly_above`."""


def board_report(ranking: Ranking) -> RenderableType:
    """Build the table of models and the sentences around it, for `rich.print`."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Model", overflow="fold")
    for title in COLUMNS.split("|"):
        table.add_column(title, justify="right", no_wrap=True)
    for own in ranking.models:
        table.add_row(*_cells(own, ranking.baseline))
    told = [*sentences(ranking)]
    warnings = [Text(visible(warning), style="yellow") for warning in ranking.warnings]
    return Group(Text(told[0], style="bold"), *warnings, Text(""), table, Text("\n".join(told[1:])))


def _cells(own: Standing, baseline: str | None) -> tuple[str, ...]:
    name = one_line(own.model)
    ranks = f"{own.best_rank}–{own.worst_rank}"
    if own.model == baseline:
        return f"{name} (baseline)", share(0.5), "", str(own.rank), ranks, "", ""
    return (
        name,
        share(own.score.value or 0.0),
        interval(own.score),
        str(own.rank),
        ranks,
        share(own.first),
        share(own.second),
    )


def sentences(ranking: Ranking) -> list[str]:
    """Describe the position effect, the certain orders, other designs and the counts."""
    pairs = len(ranking.models) * (len(ranking.models) - 1) // 2
    others = [own for own in ranking.models if own.model != ranking.baseline]
    shares = sorted(own.shown_first for own in others)
    first, last = percent(shares[0]), percent(shares[-1])
    always = f"{first} for every model" if first == last else f"from {first} to {last} by model"
    certain = [
        f"{one_line(own.model)} over {one_line(other)}"
        for own in ranking.models
        for other in own.certainly_above
    ]
    which = f": {', '.join(certain)}" if 0 < len(certain) <= LISTED else ""
    over = "" if ranking.baseline is None else f" over {one_line(ranking.baseline)}"
    return [
        f"Position effect: {points(ranking.position_effect)} (share of wins when shown first minus when shown "
        f"second, mean over models).",
        f"A score is the share of wins{over}, as the mean of both positions; ties count half. Values are percentages.",
        f"The order is certain for {len(certain)} of {plural(pairs, 'pair')} of models{which}.",
        f"If always shown first, {ranking.changed_if_first} of {plural(len(others), 'model')} would be on the "
        f"other side of 50%. If always shown second, {ranking.changed_if_second} would be.",
        f"A judge that always takes the first answer would give {always}.",
        f"{plural(ranking.comparisons, 'comparison')} on {plural(ranking.questions, 'question')}, "
        f"{ranking.unread:,} unparsed.",
    ]
