"""What an audit should report, computed the slow way from the written definitions.

Loops over dictionaries, one call at a time; nothing of the package is used but the names of the
fields that come in. A call is `(order, labels) -> (choice, probs)` with `order[p]` the candidate at
position p, `labels[p]` the number of the label printed there, `choice` a candidate, "tie", None
(unparsed) or MISSING, and `probs` by candidate or None.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

MISSING = "missing"

Choice = int | str | None
Order = tuple[int, ...]
Shown = tuple[Order, Order]
Call = tuple[Choice, tuple[float, ...] | None]
Values = dict[str, object]


@dataclass
class Case:
    """One item with its recorded calls; `gold` as in items.jsonl."""

    id: str
    texts: tuple[str, ...]
    gold: object
    group: str | None = None
    permutable: bool = True
    prompt: str = ""
    calls: dict[Shown, Call] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.texts)

    def right(self) -> set[int]:
        if isinstance(self.gold, int):
            return {self.gold}
        return set(self.gold) if isinstance(self.gold, tuple) else set()

    def call(self, shown: Shown) -> Call:
        return self.calls.get(shown, (MISSING, None))


@dataclass
class Answered:
    """Verdicts of one item under every view, by its own candidates."""

    case: Case
    verdicts: list[Choice]
    tied: list[set[int]]
    probs: list[tuple[float, ...] | None]

    @property
    def complete(self) -> bool:
        return self.case.permutable and MISSING not in self.verdicts


def own(n: int) -> Shown:
    return tuple(range(n)), tuple(range(n))


def rotations(n: int) -> list[Order]:
    made = []
    row = list(range(n))
    for _ in range(n):
        made.append(tuple(row))
        row = [*row[1:], row[0]]
    return made


def label_on(shown: Shown, candidate: int) -> int:
    order, labels = shown
    for position, here in enumerate(order):
        if here == candidate:
            return labels[position]
    raise AssertionError(shown)


def position_of(shown: Shown, candidate: int) -> int:
    return list(shown[0]).index(candidate)


def asked_through(view: Shown, asked: Order) -> Shown:
    """What is shown when the item, already shown as `view`, is reordered by `asked`."""
    order, labels = view
    return tuple(order[k] for k in asked), labels


def first_by_hash(case: Case, among: Sequence[int]) -> int:
    """The tie rule: lowest sha256 of item id and candidate text, then the index."""

    def rank(candidate: int) -> tuple[bytes, int]:
        text = case.texts[candidate] or f"\x00{candidate}"
        return hashlib.sha256(f"{case.id}\x00{text}".encode()).digest(), candidate

    return sorted(among, key=rank)[0]


def best(case: Case, scores: Sequence[float]) -> int:
    top = max(scores)
    return first_by_hash(case, [c for c, score in enumerate(scores) if score >= top - 1e-9])


def read(case: Case, shown: Shown) -> Choice:
    """The answer to one call: what was stated, else the likeliest candidate."""
    choice, _ = case.call(shown)
    return choice


def direct(case: Case, view: Shown) -> tuple[Choice, set[int], tuple[float, ...] | None]:
    choice = read(case, view)
    return choice, set(range(case.n)) if choice == "tie" else set(), case.call(view)[1]


def vote(case: Case, view: Shown) -> tuple[Choice, set[int], tuple[float, ...] | None]:
    votes: dict[Choice, int] = defaultdict(int)
    for asked in rotations(case.n):
        choice = read(case, asked_through(view, asked))
        if choice == MISSING:
            return MISSING, set(), None
        if choice is not None:
            votes[choice] += 1
    if not votes:
        return None, set(), None
    top = max(votes.values())
    leaders = {int(choice) for choice, count in votes.items() if count == top and choice != "tie"}
    if votes["tie"] >= top:
        return "tie", set(range(case.n)), None
    if len(leaders) > 1:
        return "tie", leaders, None
    return leaders.pop(), set(), None


def average(case: Case, view: Shown) -> tuple[Choice, set[int], tuple[float, ...] | None]:
    calls = [case.call(asked_through(view, asked)) for asked in rotations(case.n)]
    if any(choice == MISSING for choice, _ in calls):
        return MISSING, set(), None
    known = [probs for _, probs in calls if probs is not None]
    if len(known) < len(calls):
        return None, set(), None
    mean = tuple(math.fsum(probs[c] for probs in known) / len(known) for c in range(case.n))
    return best(case, mean), set(), mean


Judge = Callable[[Case, Shown], tuple[Choice, set[int], tuple[float, ...] | None]]


def digest(seed: int, case: Case) -> bytes:
    """Of the question without the order of its candidates; of the id where there is no text."""
    name = case.id
    if case.prompt and all(case.texts):
        parts = [case.prompt, "", *sorted(case.texts)]
        name = hashlib.sha256("\x00".join(parts).encode()).hexdigest()
    return hashlib.sha256(f"{seed}\x00{name}".encode()).digest()


def fold(seed: int, case: Case) -> int:
    return int.from_bytes(digest(seed, case)[:4], "big") % 5


def smallest(cases: Sequence[Case]) -> float:
    """The smallest probability of the rotations that is not rounded to 0; 0 if there is none."""
    every = [
        p
        for case in cases
        for order in rotations(case.n)
        for p in case.call((order, tuple(range(case.n))))[1] or ()
    ]
    return min((p for p in every if p > 1.0001e-10), default=0.0)


def floored(probs: tuple[float, ...], least: float) -> list[float]:
    """Zeros replaced by the smallest probability, renormalised."""
    if min(probs) > 1.0001e-10:
        return list(probs)
    raised = [p if p > 1.0001e-10 else max(p, least) for p in probs]
    return [p / math.fsum(raised) for p in raised]


def label_prior(case: Case, least: float) -> list[float] | None:
    """softmax over labels of the mean log probability over the rotations; None if one is unknown."""
    n = case.n
    total = [0.0] * n
    for order in rotations(n):
        shown = (order, tuple(range(n)))
        choice, probs = case.call(shown)
        if choice == MISSING or probs is None:
            return None
        for candidate, p in enumerate(floored(probs, least)):
            total[label_on(shown, candidate)] += math.log(p + 1e-10)
    weights = [math.exp(value / n - max(total) / n) for value in total]
    return [weight / sum(weights) for weight in weights]


def pride(cases: Sequence[Case], seed: int, size: int | None = None) -> Judge:
    """Cross-fitted over the cases, which have the same number of candidates."""
    permutable = [case for case in cases if case.permutable]
    ordered = sorted(permutable, key=lambda case: (digest(seed, case), case.id))
    if size is None:
        size = min(200, max(1, round(0.2 * len(cases))))
    priors: dict[int, list[float] | None] = {}
    for k in range(5):
        chosen = [case for case in ordered if fold(seed, case) != k][:size]
        least = smallest(chosen)
        known = [prior for case in chosen if (prior := label_prior(case, least)) is not None]
        priors[k] = [math.fsum(column) / len(known) for column in zip(*known, strict=True)] or None

    def judge(case: Case, view: Shown) -> tuple[Choice, set[int], tuple[float, ...] | None]:
        choice, probs = case.call(view)
        if choice == MISSING:
            return MISSING, set(), None
        if probs is None:
            return None, set(), None
        prior = priors[fold(seed, case)]
        if prior is None or view[1] != tuple(range(case.n)):
            prior = [1.0] * case.n
        raw = [(probs[c] + 1e-10) / prior[label_on(view, c)] for c in range(case.n)]
        scores = tuple(value / sum(raw) for value in raw)
        return best(case, scores), set(), scores

    return judge


def answered(cases: Sequence[Case], views: Sequence[Shown], judge: Judge) -> list[Answered]:
    """Every view of every case; a case that may not be permuted has its own call only."""
    made = []
    for case in cases:
        row = Answered(case, [], [], [])
        for view in views:
            if case.permutable:
                choice, tied, probs = judge(case, view)
            else:
                choice, tied, probs = MISSING, set(), None
            row.verdicts.append(choice)
            row.tied.append(tied)
            row.probs.append(probs)
        if not case.permutable:
            single = judge in (direct, raw) or judge not in (vote, average)
            alone = judge if single else direct
            place = list(views).index(own(case.n)) if own(case.n) in views else 0
            row.verdicts[place], row.tied[place], _ = alone(case, own(case.n))
        made.append(row)
    return made


def raw(case: Case, view: Shown) -> tuple[Choice, set[int], tuple[float, ...] | None]:
    """The call as it was read, for the sections on protocols."""
    choice, probs = case.call(view)
    return choice, set(range(case.n)) if choice == "tie" else set(), probs


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def is_class(row: Answered, gold_ties: str) -> bool:
    return gold_ties == "class" and row.case.gold == "tie"


def hit(row: Answered, verdict: Choice, gold_ties: str) -> bool:
    return verdict == "tie" if is_class(row, gold_ties) else verdict in row.case.right()


def accuracies(rows: Sequence[Answered], gold_ties: str) -> tuple[float | None, float | None]:
    plain, fractional = [], []
    for row in rows:
        if not (row.case.right() or is_class(row, gold_ties)):
            continue
        hits, earned = [], []
        for verdict, tied in zip(row.verdicts, row.tied, strict=True):
            if verdict == MISSING:
                continue
            hits.append(float(hit(row, verdict, gold_ties)))
            share = len(tied & row.case.right()) / len(tied) if tied else 0.0
            halves = verdict == "tie" and not is_class(row, gold_ties)
            earned.append(share if halves else hits[-1])
        if hits:
            plain.append(sum(hits) / len(hits))
            fractional.append(sum(earned) / len(earned))
    return mean(plain), mean(fractional)


def counts_of(row: Answered) -> dict[Choice, int]:
    found: dict[Choice, int] = defaultdict(int)
    for verdict in row.verdicts:
        if verdict is not None:
            found[verdict] += 1
    return found


def consistencies(
    rows: Sequence[Answered], n_views: int, gold_ties: str
) -> tuple[float | None, float | None]:
    same, right = [], []
    for row in rows:
        if not row.complete or n_views < 2:
            continue
        counts = counts_of(row)
        top = max(counts.values(), default=0)
        modes = [choice for choice, count in counts.items() if count == top]
        pair = row.case.n == 2
        same.append(float(top == n_views) if pair else top / n_views)
        if row.case.right() or is_class(row, gold_ties):
            always = all(hit(row, verdict, gold_ties) for verdict in row.verdicts)
            unique = len(modes) == 1 and hit(row, modes[0], gold_ties)
            right.append(float(always if pair else unique))
    return mean(same), mean(right)


def shares(rows: Sequence[Answered], views: Sequence[Shown], n: int) -> Values:
    """Rates by position and label, and the balance of recalls and choices over labels."""
    at_position, at_label = [0] * n, [0] * n
    whole = any(row.case.permutable and row.complete for row in rows) and len(views) > 1
    gold, hits, chosen = [0] * n, [0] * n, [0] * n
    for row in rows:
        if not row.case.permutable:
            continue
        right = row.case.right()
        for verdict, view in zip(row.verdicts, views, strict=True):
            if verdict == MISSING:
                continue
            if isinstance(verdict, int) and (row.complete or not whole):
                at_position[position_of(view, verdict)] += 1
                at_label[label_on(view, verdict)] += 1
            if len(right) == 1:
                (answer,) = right
                gold[label_on(view, answer)] += 1
                hits[label_on(view, answer)] += verdict == answer
                if isinstance(verdict, int):
                    chosen[label_on(view, verdict)] += 1
    recalls = [h / g for h, g in zip(hits, gold, strict=True) if g]
    middle = mean(recalls) or 0.0
    spread = math.sqrt(sum((r - middle) ** 2 for r in recalls) / len(recalls)) if recalls else None
    total = sum(at_position)
    return {
        "position_rate": [count / total if total else None for count in at_position],
        "label_rate": [count / total if total else None for count in at_label],
        "rstd": spread if len(recalls) > 1 else None,
        "ckld": divergence(gold, chosen, 0.5),
        "ckld_raw": divergence(gold, chosen, 0.0),
    }


def divergence(gold: Sequence[int], chosen: Sequence[int], extra: float) -> float | None:
    if not sum(gold) or not sum(chosen):
        return None
    n, value = len(gold), 0.0
    for g, c in zip(gold, chosen, strict=True):
        p = (g + extra) / (sum(gold) + n * extra)
        q = (c + extra) / (sum(chosen) + n * extra)
        if p and not q:
            return None  # infinite
        value += p * math.log(p / q) if p else 0.0
    return value


def kappa(rows: Sequence[Answered], n_views: int) -> float | None:
    tables = [counts_of(row) for row in rows if row.complete and None not in row.verdicts]
    if not tables or n_views < 2:
        return None
    agree = [
        (sum(k * k for k in table.values()) - n_views) / (n_views * (n_views - 1))
        for table in tables
    ]
    totals: dict[Choice, int] = defaultdict(int)
    for table in tables:
        for choice, count in table.items():
            totals[choice] += count
    expected = sum((count / (len(tables) * n_views)) ** 2 for count in totals.values())
    if expected > 1 - 1e-12:
        return None
    return (sum(agree) / len(agree) - expected) / (1 - expected)


def iccs(rows: Sequence[Answered], n_views: int) -> tuple[float | None, float | None]:
    table = []
    for row in rows:
        right = row.case.right()
        if not row.complete or None in row.probs or (row.case.n > 2 and len(right) != 1):
            continue
        at = 0 if row.case.n == 2 else next(iter(right))
        table.append([probs[at] for probs in row.probs if probs is not None])
    items = len(table)
    if items < 2 or n_views < 2:
        return None, None
    grand = math.fsum(map(math.fsum, table)) / (items * n_views)
    of_rows = [math.fsum(row) / n_views for row in table]
    of_columns = [math.fsum(row[v] for row in table) / items for v in range(n_views)]
    msr = n_views * math.fsum((m - grand) ** 2 for m in of_rows) / (items - 1)
    msc = items * math.fsum((m - grand) ** 2 for m in of_columns) / (n_views - 1)
    rest = math.fsum(
        (table[i][v] - of_rows[i] - of_columns[v] + grand) ** 2
        for i in range(items)
        for v in range(n_views)
    )
    mse = rest / ((items - 1) * (n_views - 1))
    if msr < 1e-25:
        return None, None
    if msr < 1e-7:  # items that hardly differ: the quotient is rounding
        return math.nan, math.nan
    bottom = msr + (msc - mse) / items
    if abs(bottom) <= 1e-7:
        return math.nan, (msr - mse) / msr
    return (msr - mse) / bottom if bottom > 0 else None, (msr - mse) / msr


def rate(rows: Sequence[Answered], wanted: Choice) -> float | None:
    made = [verdict for row in rows for verdict in row.verdicts if verdict != MISSING]
    return sum(verdict == wanted for verdict in made) / len(made) if made else None


def overall(parts: Mapping[int, list[Answered]], views: Mapping[int, int], ties: str) -> Values:
    """What is defined whatever the number of candidates."""
    every = [row for rows in parts.values() for row in rows]
    plain, fractional = accuracies(every, ties)
    same: list[Answered] = [row for row in every if views[row.case.n] > 1]
    joined = [consistency_of(row, views[row.case.n], ties) for row in same]
    return {
        "accuracy": plain,
        "accuracy_fractional": fractional,
        "consistency": mean([c for c, _ in joined if c is not None]),
        "consistent_accuracy": mean([c for _, c in joined if c is not None]),
        "unparsed_rate": rate(every, None),
        "tie_rate": rate(every, "tie"),
    }


def consistency_of(
    row: Answered, n_views: int, gold_ties: str
) -> tuple[float | None, float | None]:
    return consistencies([row], n_views, gold_ties)


def measured(rows: Sequence[Answered], views: Sequence[Shown], n: int, gold_ties: str) -> Values:
    """One number of candidates."""
    icc2k, icc3k = iccs(rows, len(views))
    return {
        **overall({n: list(rows)}, {n: len(views)}, gold_ties),
        **shares(rows, views, n),
        "fleiss_kappa": kappa(rows, len(views)),
        "icc2k": icc2k,
        "icc3k": icc3k,
    }


def table_of(
    parts: Mapping[int, list[Answered]], views: Mapping[int, Sequence[Shown]], ties: str
) -> Values:
    """A row of `metrics.json`: with several numbers of candidates, each by itself as `strata`."""
    kept = {n: rows for n, rows in sorted(parts.items()) if rows}
    each = {n: measured(rows, views[n], n, ties) for n, rows in kept.items()}
    if len(each) == 1:
        return next(iter(each.values()))
    row = overall(kept, {n: len(views[n]) for n in kept}, ties)
    row["strata"] = {str(n): values for n, values in each.items()}
    return row


def grouped(
    parts: Mapping[int, list[Answered]], views: Mapping[int, Sequence[Shown]], ties: str
) -> tuple[dict[str, Values], Values]:
    """A row per group, and the plain mean over the groups in which a value is defined."""
    names = {row.case.group for rows in parts.values() for row in rows}
    if names <= {None}:
        return {}, {}
    made = {}
    for name in names:
        of_group = {n: [r for r in rows if r.case.group == name] for n, rows in parts.items()}
        made[name or "(no group)"] = table_of(of_group, views, ties)
    macro: Values = {}
    for metric in ("accuracy", "accuracy_fractional", "consistency", "consistent_accuracy"):
        macro[metric] = mean([v for row in made.values() if isinstance(v := row[metric], float)])
    return made, macro


def paired(
    first: Sequence[Answered], second: Sequence[Answered], n_views: int, gold_ties: str
) -> list[tuple[float | None, float | None]]:
    """Per item, what the first has over the second: accuracy and consistency; None if not in both."""
    made = []
    for one, two in zip(first, second, strict=True):
        assert one.case.id == two.case.id
        of_one = accuracies([one], gold_ties)[0], consistencies([one], n_views, gold_ties)[0]
        of_two = accuracies([two], gold_ties)[0], consistencies([two], n_views, gold_ties)[0]
        gains = [
            None if a is None or b is None else a - b for a, b in zip(of_one, of_two, strict=True)
        ]
        made.append((gains[0], gains[1]))
    return made
