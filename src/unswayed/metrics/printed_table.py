"""Tables as they are printed: which cells of accuracy, consistency (Con) and consistent accuracy (CA) cannot be.

Each row is checked against the rules for its number of candidates (`printed_rules`).

**Rounding.** A printed value stands for all values within half a unit of its last place; a cell is
impossible only if none of them fit. What is averaged over different items in its columns (rows without
gold, incomplete ones) is beyond these rules, and no defence of the table.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Unpack

from unswayed.base.errors import UsageError
from unswayed.metrics.accuracy import ACCURACY, CONSISTENT_ACCURACY
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.printed_rules import Design, Rule, candidates_of, rules_for
from unswayed.metrics.table import METRICS

Line = Sequence[tuple[str, object]]
"""One row: heading and cell of each column, in order."""

_ACC, _CON, _CA = map(METRICS.name_of, (ACCURACY, CONSISTENCY, CONSISTENT_ACCURACY))
_TERMS: Final = (_ACC, _CON, _CA)
_ALIASES: Final[Mapping[str, str]] = {
    **{name.replace("_", " "): name for name in _TERMS},
    **dict.fromkeys(("acc", "mean accuracy", "acc both", "accuracy both orders"), _ACC),
    **dict.fromkeys(("con", "cons", "consist", "consistent", "consistency rate"), _CON),
    **dict.fromkeys(
        (
            "ca",
            "c acc",
            "con acc",
            "cons acc",
            "consistent acc",
            "both correct",
            "consistently right",
        ),
        _CA,
    ),
}
_LONGEST_FIRST: Final = sorted(_ALIASES, key=len, reverse=True)
_NOISE: Final = re.compile(r"[%()\[\]*_`.:↑↓\s-]+")
_NUMBER: Final = re.compile(r"(-?(?:\d+(?:[.,]\d*)?|[.,]\d+))(?:e([-+]?\d{1,3})\b)?", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[a-zA-Z][^>]*>")
_SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Impossible:
    """A row of a published table that cannot be."""

    row: int  # its number, from 1
    name: str  # its name, where the table has one
    rule: str  # the rule it breaks
    excess: float  # by how much, in the table's unit, rounding not deducted
    rounding: float = 0.0  # how much of it the rounding of the printed digits could explain


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows (or triples, if a row has several) with one number of candidates."""

    # that number; None if it is unknown, so that only rules for any number were checked
    candidates: int | None
    rules: tuple[str, ...]  # the rules that were checked
    n: int  # number of rows with all three terms
    impossible: int  # number of these rows that break a rule


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of checking a table."""

    kinds: tuple[Kind, ...]  # checked rows by number of candidates, unknown last
    passed_over: tuple[int, ...]  # the lines of those that lack one
    unit: float  # 100 if the table is in percent, else 1
    impossible: tuple[Impossible, ...]  # the rows that break a rule, worst first


class _Printed(NamedTuple):
    """A value as printed, and half a unit of its last place."""

    value: float
    rounding: float
    percent: bool = False


class _Triple(NamedTuple):
    row: int
    name: str
    terms: Mapping[str, _Printed]
    candidates: int | None


def check_cells(rows: Iterable[Mapping[str, object]], **design: Unpack[Design]) -> list[Impossible]:
    """Find the impossible rows of a published table, given as cells by column, worst first; see `check_table`."""
    lines = ((number, list(row.items())) for number, row in enumerate(rows, start=1))
    return list(check_table(lines, **design).impossible)


def check_table(
    lines: Iterable[tuple[int, Line]], *, only: Sequence[str] = (), **design: Unpack[Design]
) -> Checked:
    """Return a table as printed, its numbered rows each checked by the rules for its number of candidates.

    A heading ends in what its column holds: accuracy (acc), consistency (con), consistent accuracy
    (ca), with or without marks such as `%` and `↑`; what stands before it says what the three
    belong to ("MT-Bench Acc"). One heading may name several ("Acc/Con/CA"), its cells then hold as
    many values. Cells are numbers or text that begins with one (a difference such as "+3.2" is
    none); columns without any name the row. A table is in percent if a value is above 1 or a `%`
    stands at one. `only` checks what has one of these words in the name of its row or columns.
    """
    tolerance = design.get("tolerance")
    if tolerance is not None and not 0.0 <= tolerance <= 100.0:  # NaN is neither
        raise UsageError(f"tolerance {tolerance:g} is not between 0 and 100.")
    lines = list(lines)
    words = [word.casefold() for word in only]
    triples = [
        triple
        for number, line in lines
        for triple in _triples(number, line)
        if not words or any(word in triple.name.casefold() for word in words)
    ]
    full = [triple for triple in triples if len(triple.terms) == len(_TERMS)]
    if not full:
        headings = dict.fromkeys(heading for _, line in lines for heading, _ in line)
        raise UsageError(_why_none(list(headings), only if words and not triples else ()))
    cells = (cell for triple in full for cell in triple.terms.values())
    unit = 100.0 if any(cell.percent or cell.value > 1.0 for cell in cells) else 1.0
    for triple in full:
        for term, cell in triple.terms.items():
            if not 0.0 <= cell.value <= unit:
                raise UsageError(
                    f"row {triple.row}: {term} {cell.value} is not between 0 and {unit:g}"
                )
    if unit > 1:
        _check_units(full)
    by_size: defaultdict[int | None, list[_Triple]] = defaultdict(list)
    for triple in full:
        size = triple.candidates or candidates_of(triple.name) or design.get("candidates")
        by_size[size].append(triple)
    kinds, broken = [], []
    for size in sorted(by_size, key=lambda size: size or math.inf):
        rules, rows = rules_for(size, design), by_size[size]
        own = [bad for row in rows for bad in _broken(row, rules, unit, tolerance)]
        impossible = len({(bad.row, bad.name) for bad in own})
        kinds.append(Kind(size, tuple(rule.text for rule in rules), len(rows), impossible))
        broken += own
    worst = sorted(broken, key=lambda row: -row.excess)
    lacking = dict.fromkeys(triple.row for triple in triples if len(triple.terms) < len(_TERMS))
    return Checked(tuple(kinds), tuple(lacking), unit, tuple(worst))


def _why_none(headings: Sequence[str], only: Sequence[str]) -> str:
    if only:
        return f"no row or column has {' or '.join(map(repr, only))} in its name. Correct --only."
    if not headings:
        return "there is no table with a heading and a row below it. Write both."
    there = {term for heading in headings for term in _meaning(heading)[1]}
    missing = [term for term in _TERMS if term not in there]
    why = (
        f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} under none of the headings "
        + ", ".join(headings)
        if missing
        else "in each row, at least one is not a number"
    )
    return (
        f"no row has all three of {_ACC}, {_CON} and {_CA}: {why}. "
        "Name the columns so (or acc, con, ca)."
    )


def _check_units(full: Sequence[_Triple]) -> None:
    """Check that no column and no row of a table in percent can be meant as fractions."""
    columns = [(f"column {term}", [triple.terms[term] for triple in full]) for term in _TERMS]
    rows = [(f"row {triple.row}", list(triple.terms.values())) for triple in full]
    for place, cells in (*columns, *rows):
        highest = max(cell.value for cell in cells)
        if 0 < highest <= 1 and not any(cell.percent for cell in cells):
            raise UsageError(
                f"the table is in percent, but {place} is nowhere above {highest:g}: these may be "
                "fractions. Write all in one unit, or add % to values that are percentages."
            )


def _broken(
    triple: _Triple, rules: Iterable[Rule], unit: float, tolerance: float | None
) -> Iterator[Impossible]:
    cells = [triple.terms[term] for term in _TERMS]
    for rule in rules:
        terms = zip(rule.weights, cells, strict=True)
        excess = sum(weight * cell.value for weight, cell in terms) - rule.constant * unit
        terms = zip(rule.weights, cells, strict=True)
        rounding = sum(abs(weight) * cell.rounding for weight, cell in terms)
        if excess > (rounding if tolerance is None else tolerance) + _SLACK * unit:
            yield Impossible(triple.row, triple.name, rule.text, excess, rounding)


def _triples(number: int, line: Line) -> Iterator[_Triple]:
    """Yield the triples of a row: one, or one for each thing that its headings name."""
    together: dict[tuple[str, int], dict[str, _Printed]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    names: list[str] = []
    candidates = None
    for heading, cell in line:
        group, terms = _meaning(heading)
        parts = str(cell).split("/") if len(terms) > 1 else [str(cell)]
        values = map(_printed, parts) if len(parts) == len(terms) else [None] * len(terms)
        if _NOISE.sub(" ", heading).lower().split()[-1:] in (["candidates"], ["options"]):
            size = str(cell).strip(" -–—*_`")
            candidates = int("0" + re.sub(r"\D.*", "", size)) or None
            if size and (candidates or 0) < 2:
                raise UsageError(f"row {number}: candidates is {size!r}. Write 2 or more, or none.")
        elif not terms:
            if isinstance(cell, str) and cell.strip(" -*_`"):
                names.append(cell.strip(" *_`"))
            continue
        for term, value in zip(terms, values, strict=False):
            place = seen[group, term]
            seen[group, term] += 1
            printed = together.setdefault((group, place), {})
            if value is not None:
                printed[term] = value._replace(percent=value.percent or "%" in heading)
    for (group, _), printed in together.items():
        yield _Triple(number, " ".join(filter(None, (*names, group))), printed, candidates)


def _meaning(heading: str) -> tuple[str, list[str]]:
    """Return the subject of a column and the terms it holds, in order; no terms in a column of names."""
    group, terms = "", []
    for part in heading.split("/"):
        words = _NOISE.sub(" ", part).strip().lower()
        alias = next((a for a in _LONGEST_FIRST if words == a or words.endswith(f" {a}")), None)
        if alias is None:
            return "", []
        terms.append(_ALIASES[alias])
        plain = re.sub(r"[%*`↑↓]+", "", part).strip().rstrip("().:_- ")
        group = group or plain[: max(0, len(plain) - len(alias))].strip(" :(_-–—")
        twice, said = _meaning(group) if group else ("", [])
        if said == terms[-1:]:  # "Accuracy (Acc)"
            group = twice
    return group, terms


def _printed(text: str) -> _Printed | None:
    """Return the number that a cell begins with; None where there is none."""
    match = _NUMBER.match(text.strip(" \t*_`~$"))
    if match is None:
        return None
    digits, power = match[1].replace(",", "."), int(match[2] or 0)
    rounding = 0.5 * 10.0 ** (power - len(digits.partition(".")[2]))
    return _Printed(float(f"{digits}e{power}"), rounding, "%" in text)


def markdown_rows(text: str) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return the rows of the tables of a Markdown text, each with its line; empty if there are none.

    A row below the rule that names terms and nothing else is a heading of its own, and what stands
    above it, once for several columns, says what they belong to. A cell too many or too few is left out.
    """
    rows: list[tuple[int, list[tuple[str, str]]]] = []
    header: list[str] = []
    before: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if "|" not in line:
            header, before = [], []
            continue
        inner = line.strip().removeprefix("|").removesuffix("|")
        cells = [
            _TAG.sub(" ", cell).replace("\\|", "|").strip()
            for cell in re.split(r"(?<!\\)\|", inner)
        ]
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            header = before
            continue
        named = [bool(_meaning(cell)[1]) for cell in cells if cell]
        if header and len(named) >= len(_TERMS) and all(named):
            header = _below(before, cells)
        elif header:
            rows.append((number, list(zip(header, cells, strict=False))))
        before = cells
    return [row for row in rows if any(_meaning(heading)[1] for heading, _ in row[1])]


def _below(groups: Sequence[str], cells: Sequence[str]) -> list[str]:
    """Headings of two rows as one: a group stands over its first column."""
    over, headings = "", []
    for place, cell in enumerate(cells):
        over = (groups[place] if place < len(groups) else "") or over
        headings.append(f"{over} {cell}".strip() if cell else "")
    return headings
