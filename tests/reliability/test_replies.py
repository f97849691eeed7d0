"""The harness of the labelled set prints a row per kind and fails nothing silently."""

import pytest

from reliability import replies


def test_the_table_has_a_row_for_every_kind_and_no_wrong_reading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replies.main()
    lines = capsys.readouterr().out.splitlines()
    kinds = {reply.kind for reply in replies.labelled_replies()}
    assert [line.split(" | ")[0].lstrip("| ") for line in lines[2:-2]] == list(
        dict.fromkeys(reply.kind for reply in replies.labelled_replies())
    )
    assert len(lines) == 2 + len(kinds) + 2
    assert lines[-2].endswith(" | 0 |")
    assert lines[-1].startswith("| open, not in the sum |")
