"""What `metrics.json` counts of replies: broken endings, disagreements, second calls."""

from pathlib import Path

import msgspec
import pytest

from unswayed.auditing.audit import unread_replies
from unswayed.auditing.export import export_decisions
from unswayed.auditing.flips import flips_of
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.records import CallsRecord, Metrics, Reread
from unswayed.auditing.rows import as_json, converted
from unswayed.auditing.settings import AuditSettings
from unswayed.data.importers import line_of, read_decisions_file, read_recording, write_decisions
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet

TURNED = {"order": (1, 0)}


def decision(name: str, **fields: object) -> Decision:
    given = {"order": (0, 1), "labels": ("A", "B"), "model": "m", **fields}
    return Decision(item_id=name, **given)  # type: ignore[arg-type]


DECISIONS = [
    decision("a", choice=0, probs=(0.8, 0.2), disagrees=True),
    decision("a", choice=0, probs=(0.6, 0.4), disagrees=True, **TURNED),  # shown second
    decision("b", choice=1, reasked=True),
    decision("b", choice=1, reasked=True, **TURNED),
    decision("c", choice="tie", reasked=True),
    decision("c", reasked=True, **TURNED),
    decision("d", finish_reason="abort"),
    decision("d", finish_reason="abort", **TURNED),
    decision("e", finish_reason="OTHER"),
    decision("e", finish_reason="SAFETY", **TURNED),
    decision("f", finish_reason="abort", choice=0),  # read by somebody else: stays as it is
    decision("f", finish_reason="abort", substitute=("N/A", "N/A")),
]


def calls_of(decisions: object) -> CallsRecord:
    settings = AuditSettings(resamples=100)
    return audit_decisions(decisions, None, settings, command="test").metrics.calls  # type: ignore[arg-type]


def test_replies_are_counted_by_ending_and_reading() -> None:
    calls = calls_of(DECISIONS)
    assert (calls.replies, calls.unparsed, calls.refused) == (11, 5, 1)
    assert calls.broken == {"OTHER": 1, "abort": 2}
    assert (calls.disagree, calls.disagree_positions) == (2, (1, 1))
    assert (calls.reasked, calls.reasked_read, calls.reasked_positions) == (4, 3, (1, 1))


def test_unread_examples_name_the_finish_reason() -> None:
    made = [
        decision("a", text="A", finish_reason="tool_calls"),
        decision("b", text="I cannot say.", finish_reason="stop"),
        decision("c", text="", finish_reason="content_filter"),
        decision("d", text="I cannot say.", finish_reason="stop"),
    ]
    settings = AuditSettings(resamples=100)
    examples = flips_of(audit_decisions(made, None, settings, command="test")).unparsed_examples
    assert examples == (
        "(finish reason tool_calls) A",
        "I cannot say.",
        "(finish reason content_filter)",
    )


def test_probabilities_that_second_calls_lack_are_told() -> None:
    made = [
        decision("a", choice=0, probs=(0.8, 0.2)),
        decision("a", choice=0, probs=(0.6, 0.4), **TURNED),
        decision("b", choice=1, reasked=True),
        decision("b", choice=1, **TURNED),
    ]
    settings = AuditSettings(resamples=100, methods=("average",))
    warnings = audit_decisions(made, None, settings, command="test").run.warnings
    assert (
        "2 of 4 answers came without label probabilities (1 asked again, which gives none), by prompt: default 2; methods "
        "that need them (average) give no verdict there. Use vote, which needs none."
    ) in warnings


def test_unread_endings_are_told_with_a_remedy() -> None:
    assert list(unread_replies(CallsRecord(refused=1, broken={"tool_calls": 5}))) == [
        "1 answer refused by the model or a filter: unparsed, whatever the text. "
        "Reword the prompt, or relax the provider's filter.",
        "5 answers with an unknown finish reason (tool_calls 5): unparsed, whatever the text. "
        "Switch off tools and other features that end replies early at the server.",
    ]


def test_verdicts_by_position_name_every_position() -> None:
    shown_first = [
        decision("a", choice=0, reasked=True),
        decision("a", choice=1, reasked=True, **TURNED),
        decision("b", choice=0, probs=(0.8, 0.2), disagrees=True),
        decision("b", choice=1, **TURNED),
    ]
    calls = calls_of(shown_first)
    assert (calls.reasked_positions, calls.disagree_positions) == ((2, 0), (1, 0))
    unread = calls_of([decision("a", reasked=True), decision("b", choice=0)])
    assert (unread.reasked_positions, unread.disagree_positions) == ((0, 0), ())


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.parquet"])
def test_recorded_decisions_keep_counts(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        export_decisions(DECISIONS, path, "parquet")
    else:
        write_decisions(path, DECISIONS)
        assert list(read_decisions_file(path)) == DECISIONS
    assert calls_of(read_recording(path)) == calls_of(DECISIONS)


def test_line_omits_false_marks() -> None:
    plain, told = line_of(decision("a", choice=0)), line_of(DECISIONS[0])
    assert b"reasked" not in plain
    assert b"disagrees" not in plain
    assert (b'"disagrees":true' in told, b"reasked" in told) == (True, False)
    sly = decision("a", text=',"reasked":false', flags={"reasked": (False, True)})
    assert msgspec.json.decode(line_of(sly), type=Decision) == sly


def test_record_keeps_every_count() -> None:
    calls = msgspec.structs.replace(
        calls_of(DECISIONS), reread=Reread(now_unread=28, now_read=3, of=4800)
    )
    written = as_json(Metrics(calls=calls))
    assert converted(written, Metrics).calls == calls
    assert written["calls"]["broken"] == {"OTHER": 1, "abort": 2}
    assert "reread" not in as_json(Metrics())["calls"]


# --- without the items of which a reply was asked again ---------------------------------------


def judged(n_reasked: int, n_items: int = 20) -> Metrics:
    """Gold is the first candidate; re-asked items flip, every fifth other one is wrong throughout."""
    items = [
        Item(id=f"q{k}", prompt="?", candidates=("one", "two"), gold=0) for k in range(n_items)
    ]
    made = []
    for k in range(n_items):
        again, choice = k < n_reasked, int(k % 5 == 4)
        made.append(decision(f"q{k}", choice=choice, reasked=again))
        made.append(decision(f"q{k}", choice=choice ^ again, **TURNED))
    settings = AuditSettings(resamples=100, methods=("direct", "vote"))
    return audit_decisions(made, ItemSet.of(items, name="d"), settings, command="test").metrics


def test_many_reasked_items_add_figures_without_them() -> None:
    metrics = judged(2)  # 2 of 40 replies
    rows = metrics.without_reasked
    assert isinstance(rows, dict)
    assert set(rows) == set(metrics.methods)
    direct, whole = rows["direct"], metrics.methods["direct"]
    assert set(direct.values) == {"accuracy", "consistency"}
    # 18 items stay, of which 4 are wrong in both orders: (4, 9, 14, 19)
    assert (direct["accuracy"].value, direct["accuracy"].n) == (pytest.approx(14 / 18), 18)
    assert (direct["consistency"].value, direct["consistency"].n) == (1.0, 18)
    assert whole["accuracy"].value == pytest.approx((14 + 2 * 0.5) / 20)
    assert whole["consistency"].value == pytest.approx(18 / 20)
    assert converted(as_json(metrics), Metrics) == metrics


@pytest.mark.parametrize(("n_reasked", "n_items"), [(0, 20), (1, 25), (20, 20)])
def test_few_reasked_replies_or_all_items_add_no_section(n_reasked: int, n_items: int) -> None:
    metrics = judged(n_reasked, n_items)  # 1 of 50 replies is 2%, not more
    assert metrics.without_reasked is msgspec.UNSET
    assert "without_reasked" not in as_json(metrics)


def test_recorded_replies_without_verdict_are_reported() -> None:
    refused, broken = (
        decision("a", choice=None, finish_reason=word) for word in ("refusal", "finished")
    )
    broken = msgspec.structs.replace(broken, item_id="b")
    made = [decision("c", choice=0), refused, broken]
    said = audit_decisions(made, None, AuditSettings(resamples=100), command="test").run.warnings
    assert [line.partition(":")[0] for line in said if line.startswith("1 answer ")] == [
        "1 answer refused by the model or a filter",
        "1 answer with an unknown finish reason (finished 1)",
    ]


def test_verdicts_between_equal_scores_are_told() -> None:
    made = [
        decision(name, choice=order[0], probs=probs, **more)
        for name, probs in (("a", (0.9, 0.1)), ("b", (0.8, 0.2)), ("c", (0.9, 0.1)))
        for order, more in (((0, 1), {}), ((1, 0), TURNED))
        for probs in ((probs if order == (0, 1) or name == "c" else probs[::-1]),)
    ]
    settings = AuditSettings(resamples=100, methods=("average",))
    metrics = audit_decisions(made, None, settings, command="test").metrics
    assert metrics.cautions["average"] == (
        "average: 4 of 6 verdicts have equal scores, so a hash of id and text decides.",
    )


def test_decisions_of_other_prompts_are_counted() -> None:
    made = [decision("a", choice=0), decision("a", choice=0, **TURNED)]
    other = [decision("a", choice=1, prompt_id="reasoning")]
    settings = AuditSettings(resamples=100)
    warnings = audit_decisions([*made, *other], None, settings, command="test").run.warnings
    assert (
        "only decisions with the prompt 'default' are used; 1 decision with other prompts left out."
        in warnings
    )
