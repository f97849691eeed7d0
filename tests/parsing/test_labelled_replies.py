"""The parser on the labelled set: nothing is read wrongly, and what is stated clearly is read."""

import pytest

from reliability.replies import OPEN, Reply, labelled_replies, tally

REPLIES = labelled_replies()


def test_the_set_is_large_and_has_every_kind_of_reading() -> None:
    assert len(REPLIES) >= 400
    assert len({(r.text, r.labels, r.cut, r.quoted) for r in REPLIES}) == len(REPLIES)
    for reply in REPLIES:
        assert reply.reads in {*reply.labels, "tie", None}
        assert reply.reads is not None or not reply.clear


@pytest.mark.parametrize("kind", sorted({reply.kind for reply in REPLIES}))
def test_no_reply_is_read_wrongly(kind: str) -> None:
    counts = tally(reply for reply in REPLIES if reply.kind == kind)["all"]
    assert [(reply.text, reply.reads, reply.reading()) for reply in counts.wrong] == []


@pytest.mark.xfail(reason="read wrongly today; docs/reliability.md lists them", strict=True)
@pytest.mark.parametrize("reply", labelled_replies(OPEN), ids=lambda reply: repr(reply.text))
def test_replies_that_are_still_read_wrongly(reply: Reply) -> None:
    assert reply.reading() in {None, reply.reads}


def test_replies_that_state_a_verdict_clearly_are_read() -> None:
    clear = [reply for reply in REPLIES if reply.clear]
    lost = [reply.text for reply in clear if reply.reading() is None]
    assert len(clear) >= 200
    assert len(lost) <= 0.03 * len(clear), lost


def test_the_tally_counts_a_wrong_reading_and_a_lost_one() -> None:
    replies = [
        Reply(kind="x", text="B", reads="A"),
        Reply(kind="x", text="Hm, B it is.", reads="B", clear=True),
        Reply(kind="y", text="B", reads="B", clear=True),
    ]
    counts = tally(replies)
    assert [reply.text for reply in counts["x"].wrong] == ["B"]
    assert (counts["x"].lost, counts["x"].clear_read, counts["y"].clear_read) == (1, 0, 1)
    assert (counts["all"].n, counts["all"].read, len(counts["all"].wrong)) == (3, 2, 1)
