"""A run that older rules of reading measured: what changed is said once, before anything is asked."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import unswayed as us
from unswayed import audits
from unswayed.backends import Backend, BackendSettings
from unswayed.backends.protocol import Outcome
from unswayed.backends.simulated import simulated_items
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.parsing import READER
from unswayed.store import CallStore
from unswayed.store.pool import OLDER

ITEMS = simulated_items(12, 2, seed=5)
RAMBLE = "Both have their merits, and much could be said."


@dataclass
class Talker(Backend):
    """Says the first label of most items, rambles about the others, and gives way when pressed."""

    model: str = "fake/talker"
    down: bool = False  # whether second calls fail
    asked: list[Request] = field(default_factory=list)

    def respond(self, query: Query) -> Outcome:
        self.asked.append(query.request)
        first, again = len(self.asked), len(query.request.messages) > 2
        if again and self.down:
            return Failure(error="BackendError", message="lost")
        text = "B" if again else "tie" if first == 2 else RAMBLE if first % 8 == 0 else "A"
        return Response(text=text, cost_usd=0.5)

    def price(self, input_tokens: int, output_tokens: int) -> float:
        return 0.00001 * (input_tokens + output_tokens)


@pytest.fixture
def talker(monkeypatch: pytest.MonkeyPatch) -> Talker:
    backend = Talker()
    monkeypatch.setattr(audits, "open_or_replay", lambda *_, **__: (backend, None))
    return backend


def audit(out: Path, **options: Any) -> Any:
    result = us.audit("fake/talker", ITEMS, out=out, methods="vote", resamples=100, **options)
    return result.metrics["calls"]


def make_older(run: Path, *, changed: bool = True) -> None:
    """As an older version left it, whose rules read 2 verdicts more, 1 less and 1 otherwise."""
    with CallStore.open(run) as store, store.transaction() as connection:
        names = [("reader",), ("reread",), (OLDER,)]
        connection.executemany("DELETE FROM meta WHERE name = ?", names)
        connection.execute("UPDATE calls SET truncated = 0")
    record = json.loads((run / "run.json").read_text())
    assert record.pop("reader") == READER == 2
    (run / "run.json").write_text(json.dumps(record))
    (run / "SHA256SUMS").unlink()
    if changed:
        parts = json.loads((run / "answers.json").read_text())
        cells = [(row, v) for row in parts[0]["choices"] for v in range(len(row))]
        unread = [(row, v) for row, v in cells if row[v] == -1]
        read = [(row, v) for row, v in cells if row[v] >= 0]
        for row, v in unread[:2]:
            row[v] = 0
        read[0][0][read[0][1]] = -1
        read[1][0][read[1][1]] = 1 - read[1][0][read[1][1]]
        (run / "answers.json").write_text(json.dumps(parts))


def said(text: str) -> list[str]:
    return [line for line in text.splitlines() if "reading rules" in line]


def test_changed_verdicts_are_reported_once_before_calls(
    talker: Talker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = audit(tmp_path, reask=False)
    assert (before["made"], before["unparsed"], before["awaiting"]) == (24, 3, 0)
    assert "reread" not in before
    make_older(tmp_path)
    capsys.readouterr()
    calls = audit(tmp_path)
    (line,) = said(capsys.readouterr().err)
    assert line.startswith(
        "unswayed: Newer reading rules changed 4 of 24 verdicts (2 now unparsed, 1 now "
        "read, 1 to another label). Asking again takes 3 calls, at most $0.0"
    )
    changed = {"now_unread": 2, "now_read": 1, "to_another": 1, "of": 24}
    assert (calls["made"], calls["unparsed"], calls["reasked"]) == (3, 0, 3)
    assert calls["reread"] == changed
    assert len(talker.asked) == 27
    again = audit(tmp_path)
    assert not said(capsys.readouterr().err)
    assert (again["made"], again["reread"]) == (0, changed)


def test_changed_verdicts_are_not_asked_with_reask_off(
    talker: Talker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(tmp_path, reask=False)
    make_older(tmp_path)
    calls = audit(tmp_path, reask=False)
    assert said(capsys.readouterr().err)[0].endswith("1 to another label).")
    assert (calls["made"], calls["unparsed"], len(talker.asked)) == (0, 3, 24)
    assert calls["reread"]["of"] == 24


def test_unchanged_verdicts_are_silent_and_unread_are_found(
    talker: Talker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(tmp_path, reask=False)
    make_older(tmp_path, changed=False)
    calls = audit(tmp_path)
    assert not said(capsys.readouterr().err)
    assert (calls["made"], calls["reread"]["of"]) == (3, 24)
    assert calls["reread"]["now_unread"] == 0


def test_price_reports_changed_verdicts_and_keeps_store(talker: Talker, tmp_path: Path) -> None:
    audit(tmp_path, reask=False)
    make_older(tmp_path)
    for _ in range(2):
        plan = audits.price_calls(
            ITEMS,
            us.auditing.settings.AuditSettings(methods=("vote",)),
            "fake/talker",
            BackendSettings(),
            directory=tmp_path,
        )
        assert (plan.n_to_make, plan.n_reasks, plan.n_more) == (3, 3, 0)
        assert said("\n".join(plan.remarks))
    assert len(talker.asked) == 24


def test_left_out_calls_are_counted(talker: Talker, tmp_path: Path) -> None:
    audit(tmp_path)
    result = us.audit(
        "fake/talker", ITEMS, out=tmp_path, methods="vote", resamples=100, reask=False
    )
    assert any("3 recorded second replies left out" in line for line in result.run["warnings"])
    assert (result.metrics["calls"]["unparsed"], result.metrics["calls"]["reasked"]) == (3, 0)
    assert result.run["settings"]["reask"] is False


def test_a_damaged_note_stops_no_run(talker: Talker, tmp_path: Path) -> None:
    audit(tmp_path)
    for noted in ("", "{", "7", "\0"):
        with CallStore.open(tmp_path) as store:
            store.note("reread", noted)
            store.note(OLDER, noted)
        assert "reread" not in audit(tmp_path)


def test_replies_with_failed_second_calls_await_them(talker: Talker, tmp_path: Path) -> None:
    talker.down = True
    first = us.audit("fake/talker", ITEMS, out=tmp_path, methods="vote", resamples=100).metrics
    calls, direct = first["calls"], first["methods"]["direct"]
    assert (calls["replies"], calls["unparsed"], calls["awaiting"]) == (21, 0, 3)
    assert (direct["incomplete"], direct["unparsed_rate"]["value"]) == (3, 0.0)
    told = "3 unreadable replies still await a second call."
    assert told in (tmp_path / "report.html").read_text()
    talker.down = False
    calls = audit(tmp_path)
    assert (calls["replies"], calls["unparsed"], calls["awaiting"]) == (24, 0, 0)
    assert "await a second call" not in (tmp_path / "report.html").read_text()
