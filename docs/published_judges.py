"""The recorded judges of published.md, measured, with what their projects publish about them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unswayed as us
from unswayed.auditing.records import Metrics
from unswayed.data.importers import Imported, import_files, parse_map
from unswayed.data.importers.decisions_file import write_decisions
from unswayed.metrics import Row, measure, outcomes_from_decisions
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, encode_item

SHARED = Path(__file__).parents[2] / "shared"
DATA = SHARED / "data"
AUTOJ = DATA / "autoj" / "pairs_with_judge_dev.jsonl.gz"
ARENA = (
    "id=extra_info.original_question_id,order=extra_info.permutation,"
    "verdict=extra_info.model_answer,gold=reward_model.ground_truth,gold_is=label"
)


@dataclass(frozen=True)
class Judge:
    """A recorded judge of pairs, measured.

    Attributes:
        name: What to call it.
        row: The row of `unswayed audit`, without intervals.
        pairs: By item, what was displayed beside the choice in each of the two orders.
        published: Its fields in `expected/*.json`.
    """

    name: str
    row: Row
    pairs: dict[str, tuple[str, str]]
    published: dict[str, Any]

    @property
    def consistency(self) -> float:
        """Share of pairs with one verdict."""
        return number(self.row, "consistency")

    @property
    def letters_differ(self) -> float:
        """Share of pairs whose two answers differ as strings, an unread one being empty."""
        return sum(own != other for own, other in self.pairs.values()) / len(self.pairs)

    @property
    def undecided(self) -> float:
        """Share of answers that are ties or were not read."""
        answers = [answer for pair in self.pairs.values() for answer in pair]
        return sum(answer not in ("A", "B") for answer in answers) / len(answers)


def expected(name: str) -> dict[str, Any]:
    """The figures of one file of `expected`."""
    figures: dict[str, Any] = json.loads((DATA / "expected" / f"{name}.json").read_text())
    return figures


def symbol(decision: Decision) -> str:
    """Return the symbol displayed next to the choice."""
    if isinstance(decision.choice, int):
        return "AB"[decision.order.index(decision.choice)]
    return "T" if decision.choice == "tie" else ""


def judge(
    name: str, items: Sequence[Item], decisions: Iterable[Decision], published: dict[str, Any]
) -> Judge:
    """Measure one judge, or one group of its items."""
    names = {item.id for item in items}
    own = [decision for decision in decisions if decision.item_id in names]
    both: dict[str, list[str]] = {}
    for decision in own:
        both.setdefault(decision.item_id, ["", ""])[decision.order[0]] = symbol(decision)
    row = measure(outcomes_from_decisions(items, own), resamples=0)
    return Judge(name, row, {item: (a, b) for item, (a, b) in both.items()}, published)


def read(*files: Path) -> Imported:
    """The items and decisions of recorded files."""
    return import_files("auto", list(files))


def number(row: Row, metric: str) -> float:
    """A value that is there."""
    value = row[metric].value
    assert value is not None, metric
    return value


def judgebench() -> Iterator[tuple[str, str, Judge]]:
    """Every judge, overall and by bucket."""
    for name, figures in expected("judgebench_recorded_judges")["judges"].items():
        made = read(DATA / figures["file"])
        for bucket, fields in figures["buckets"].items():
            items = [item for item in made.items if bucket in ("Overall", item.group)]
            short = " on ".join(reversed(name.split(" | ")[::2]))
            yield short, bucket, judge(short, items, made.decisions, fields)


def mt_bench() -> Iterator[Judge]:
    """The judges of the Position-Bias-Analyzer's MT-Bench files that are here."""
    for name, figures in expected("mtbench_position_bias_judges")["judges"].items():
        made = read(DATA / figures["file"])
        yield judge(name, made.items, made.decisions, figures["overall"])
    for name, repetitions in expected("mtbench_repetition_judges")["judges"].items():
        for k in (1, 2, 3):
            for file in DATA.glob(f"mtbench/repetition{k}_{name}_*.tsv.gz"):
                made = read(file)
                own = f"{name}, repetition {k}"
                yield judge(own, made.items, made.decisions, repetitions[f"repetition{k}"])


def arena() -> Imported:
    """The judge of PA-GRPO's training pairs."""
    rows = DATA / "pagrpo_train" / "chatbot_arena_filter_2perm_think_dev.jsonl.gz"
    return import_files("jsonl", [rows], fields=parse_map(ARENA))


def recorded() -> Iterator[tuple[str, Imported, str]]:
    """Every judge of pairs with gold that is recorded in two orders, and how it counts tied gold."""
    for name, figures in expected("judgebench_recorded_judges")["judges"].items():
        yield f"{name.split(' | ')[2]}, JudgeBench", read(DATA / figures["file"]), "exclude"
    for name, figures in expected("llmbar_recorded_judges")["judges"].items():
        yield name.replace("|", ", "), read(DATA / figures["file"]), "exclude"
    yield "Auto-J, tied gold as a class", read(AUTOJ), "class"
    yield "Llama-3.1-8B, PA-GRPO's training pairs", arena(), "exclude"


def audited(made: Imported, **options: Any) -> Metrics:
    """The figures of `unswayed audit` on recorded decisions."""
    with tempfile.TemporaryDirectory() as folder:
        items, decisions = Path(folder, "items.jsonl"), Path(folder, "decisions.jsonl")
        items.write_bytes(b"".join(encode_item(item) + b"\n" for item in made.items))
        write_decisions(decisions, made.decisions)
        return us.audit(items=items, decisions=decisions, **options).record.metrics


def all_pairs(known: Sequence[Judge]) -> Iterator[Judge]:
    """Every judge of pairs in two orders that is recorded here."""
    yield from (own for name, bucket, own in judgebench() if bucket == "Overall")
    for name, figures in expected("llmbar_recorded_judges")["judges"].items():
        made = read(DATA / figures["file"])
        yield judge(name.replace("|", ", "), made.items, made.decisions, figures)
    made = read(AUTOJ)
    yield judge("Auto-J", made.items, made.decisions, expected("autoj_recorded")["dev"])
    yield from known
    made = arena()
    figures = expected("pagrpo_chatbot_arena_recorded")["dev"]
    yield judge(
        "Llama-3.1-8B on pairs that it flips (PA-GRPO's training pairs)",
        made.items,
        made.decisions,
        figures,
    )
