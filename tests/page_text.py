"""A page as the text that a reader sees, one block on a line, and what the terminal shows."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

from rich.console import Console

from unswayed.report.data import RunData
from unswayed.report.terminal import terminal_report

INLINE = frozenset({"a", "b", "bdi", "code", "i", "small", "span", "tspan"})
SILENT = frozenset({"script", "style"})
VOID = frozenset({"br", "col", "input", "link", "meta"})


class _Reader(HTMLParser):
    """Collects texts, and what charts and controls are called aloud."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SILENT:
            self.silent += 1
        if tag not in INLINE:
            self.lines.append("")
        for name, value in attrs:
            if name in {"aria-label", "title"}:
                self.lines += [f"[{name}: {value}]", ""]
            elif name == "id" and tag == "section":
                self.lines += ["", f"== {value} ==", ""]

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self.silent -= 1
        if tag not in INLINE:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.lines[-1] += data


def page_text(page: str) -> str:
    """The page's visible text, in reading order, with the names of charts and controls."""
    reader = _Reader()
    reader.feed(page)
    lines = (re.sub(r"[ \n]+", " ", line).strip(" ") for line in reader.lines)
    return "".join(f"{line}\n" for line in lines if line)


def printed(run: RunData, width: int = 120) -> str:
    """What the terminal shows of a run."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(terminal_report(run), crop=False)
    return text.getvalue()
