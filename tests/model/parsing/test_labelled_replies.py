"""The reader on sets of replies: hardly anything is read wrongly, and what is stated clearly is read."""

import re
from collections import Counter

import pytest

import needs
from reliability.replies import (
    OPEN,
    OPPOSITE_FORMS,
    SETS,
    Reply,
    labelled_replies,
    opposite_replies,
    recorded_replies,
    tally,
)

REPLIES = {name: labelled_replies(path) for name, path in SETS.items()}
OPEN_REPLIES = labelled_replies(OPEN)


@pytest.mark.parametrize("name", REPLIES)
def test_set_has_distinct_replies_and_possible_readings(name: str) -> None:
    replies = REPLIES[name]
    assert len({(r.text, r.labels, r.cut, r.quoted, r.texts, r.scale) for r in replies}) == len(
        replies
    )
    for reply in replies:
        assert reply.reads in {*reply.labels, "tie", None}
        assert reply.reads is not None or not reply.clear


@pytest.mark.parametrize(
    ("name", "n", "wrong", "unread"),
    [
        ("labelled", 1698, 0.01, 0.09),  # English prose of many words is left unread
        ("fresh", 120, 0.01, 0.05),
        ("plain, by language", 400, 0.0, 0.05),
        ("misleading", 350, 0.0, 0.0),
        ("strong place against weak", 40, 0.0, 0.05),
        ("blind", 880, 0.003, 0.05),
        ("untouched", 200, 0.0, 0.13),  # no rule was changed after it was read
    ],
)
def test_few_replies_are_wrong_or_unread(name: str, n: int, wrong: float, unread: float) -> None:
    counts = tally(REPLIES[name])["all"]
    assert counts.n >= n
    assert len(counts.wrong) <= wrong * counts.n
    assert len(counts.unread) <= unread * counts.clear, [reply.text for reply in counts.unread]
    known = {(reply.text, reply.labels) for reply in OPEN_REPLIES}
    assert {(reply.text, reply.labels) for reply in counts.wrong} <= known


def test_no_language_is_left_behind() -> None:
    tallies = tally(REPLIES["plain, by language"])
    assert max(len(own.unread) for kind, own in tallies.items() if kind != "all") <= 2
    assert sum(counts.n >= 10 for counts in tallies.values()) >= 12


@pytest.mark.parametrize("reply", OPEN_REPLIES, ids=lambda reply: repr(reply.text))
def test_listed_reply_is_read_wrongly(reply: Reply) -> None:
    """The page on reliability lists these replies: a reply that is read well leaves the list."""
    assert reply.reading() not in {None, reply.reads}


@needs.recorded
def test_recorded_readings_match_authors_or_are_unread() -> None:
    recorded = list(recorded_replies())
    counts = tally(reply for reply in recorded if reply.reads is not None)
    assert {kind: (own.n, own.lost, len(own.wrong)) for kind, own in counts.items()} == {
        "MT-Bench": (4781, 1, 0),  # a mark in the middle of a sentence
        "LLMBar": (1463, 24, 0),  # verdicts in the middle of prose
        "JudgeBench": (527, 0, 0),
        "PA-GRPO chatbot": (1544, 0, 0),
        "PA-GRPO mmlu": (2745, 55, 10),  # the authors' pattern takes `B. a ...` for A
        "all": (11_060, 80, 10),
    }
    assert all(re.search(r"Answer: B\*\*\Z", reply.text) for reply in counts["all"].wrong)
    # Six transport errors, and replies that compare twice or say who is better in words.
    others = Counter((r.kind, r.reading()) for r in recorded if r.reads is None)
    assert [others["MT-Bench", label] for label in (None, "A", "B", "tie")] == [13, 3, 2, 1]
    assert [others["JudgeBench", label] for label in (None, "A", "B", "tie")] == [10, 3, 0, 0]
    assert (others["PA-GRPO chatbot", None], others["LLMBar", None]) == (2, 1)


@needs.recorded
@pytest.mark.parametrize("form", OPPOSITE_FORMS)
def test_form_is_not_overruled_by_prose_before_it(form: str) -> None:
    counts = tally(list(opposite_replies(form))[::8])["all"]
    assert counts.n > 400
    assert counts.wrong == []
    assert form == "box" or counts.read > 0.85 * counts.n


def test_the_tally_counts_a_wrong_reading_and_a_lost_one() -> None:
    replies = [
        Reply(kind="x", text="B", reads="A"),
        Reply(kind="x", text="Hm, B it is.", reads="B", clear=True),
        Reply(kind="y", text="B", reads="B", clear=True),
    ]
    counts = tally(replies)
    assert [reply.text for reply in counts["x"].wrong] == ["B"]
    assert [reply.text for reply in counts["x"].unread] == ["Hm, B it is."]
    assert (counts["x"].lost, counts["y"].unread) == (1, [])
    assert (counts["all"].n, counts["all"].read, len(counts["all"].wrong)) == (3, 2, 1)
