"""The report in the terminal: headline, a table of all methods, the recommendation."""

from __future__ import annotations

from markupsafe import Markup
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from unswayed.base.visible import one_line, visible
from unswayed.report.applying import Application, applications_of
from unswayed.report.claims import unfollowed
from unswayed.report.data import RunData
from unswayed.report.findings import Finding
from unswayed.report.scores import lede_of, uneven_orders
from unswayed.report.table import Cell, MetricsTable, main_table
from unswayed.report.words import plain, say, sentence, spans

FEWEST_COLUMNS = 2
UNLIMITED = 10_000


def terminal_report(run: RunData) -> RenderableType:
    """Build the terminal report of a run, for `rich.print`: the same numbers and sentences as the page."""
    finding = Finding(run)
    parts: list[RenderableType] = [Text(_plain("lead.headline", finding), style="bold")]
    warning = _plain("lead.missing", finding)
    if warning:
        parts.append(Text(warning, style="yellow"))
    parts += [Text(visible(plain(told))) for told in say("facts.replies", finding, True)]
    lede = lede_of(finding)
    if lede:
        parts.append(_text(lede))
    protocols = _plain("terminal.protocols", finding, bool(unfollowed(finding)))
    if protocols:
        parts += [Text(""), Text(protocols)]
    table = main_table(finding)
    if table.rows:
        notes = _plain("terminal.terminal_notes", table.by_construction, table.notes, table.others)
        parts += [Text(""), _Methods(table), Text(notes, style="dim")]
    parts += [
        Text(_plain("lists.uneven", *uneven), style="yellow") for uneven in uneven_orders(finding)
    ]
    advice = sentence("advice.advice", finding)
    uses = applications_of(finding)
    if advice and (uses or advice not in lede):
        parts += [Text(""), _text(advice)]
    for use in uses:
        parts += [Text(""), Text(one_line(use.title), style="bold"), _verbatim(use)]
    return Group(*parts)


def _plain(macro: str, *given: object) -> str:
    return visible(plain(sentence(macro, *given)))


def _text(words: Markup) -> Text:
    line = Text()
    for text, strong in spans(words):
        line.append(visible(text), style="bold" if strong else None)
    return line


def _verbatim(use: Application) -> Text:
    """Lines to copy: never broken, however narrow the terminal."""
    blocks = [block for block in (use.command, "\n".join(use.python)) if block]
    return Text("\n\n".join(map(visible, blocks)), no_wrap=True, overflow="ignore")


class _Methods:
    """The table of methods; columns that the terminal has no room for are named below it."""

    def __init__(self, table: MetricsTable) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw as many columns as fit, the first ones first."""
        free, shown = options.update(max_width=UNLIMITED), len(self.table.columns)
        while shown > FEWEST_COLUMNS:
            if console.measure(self._drawn(shown), options=free).maximum <= options.max_width:
                break
            shown -= 1
        yield self._drawn(shown)
        left_out = [column.title for column in self.table.columns[shown:]]
        if left_out:
            yield Text(_plain("terminal.no_room", left_out), style="dim")

    def _drawn(self, shown: int) -> Table:
        """Return the table with its first `shown` metrics."""
        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        drawn.add_column("Method", no_wrap=True)
        drawn.add_column("Calls\nper item", justify="right")
        for column in self.table.columns[:shown]:
            drawn.add_column(column.title.replace(" ", "\n"), justify="right", no_wrap=True)
        for row in self.table.rows:
            name = Text(one_line(row.name), style="bold" if row.kind == "rec" else "")
            if row.remark:
                name.append(f"\n{row.remark}", style="dim")
            drawn.add_row(name, row.calls.text, *map(_cell, row.cells[:shown]))
        return drawn


def _cell(cell: Cell) -> Text:
    if cell.by_construction:
        return Text(f"{cell.text}†", style="dim")
    text = Text(cell.text, style="bold" if cell.best else "")
    if cell.below:
        text.append(f"\n{cell.below}", style="dim")
    return text
