"""Unread replies whose second call is still to come: missing, not unread."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import unswayed as us
from unswayed import audits
from unswayed.backends import Backend
from unswayed.backends.protocol import Outcome
from unswayed.backends.simulated import simulated_items
from unswayed.model.calls import Failure, Query, Request, Response

ITEMS = simulated_items(12, 2, seed=5)
RAMBLE = "Both have their merits, and much could be said."


@dataclass
class Talker(Backend):
    """Rambles about every third item, and cannot be reached again while it is `down`."""

    model: str = "fake/talker"
    down: bool = True
    asked: list[Request] = field(default_factory=list)

    def respond(self, query: Query) -> Outcome:
        self.asked.append(query.request)
        if len(query.request.messages) > 2:
            return (
                Failure(error="BackendError", message="lost") if self.down else Response(text="B")
            )
        number = [item.id for item in ITEMS].index(query.item.id)
        return Response(text=RAMBLE if number % 3 == 0 else "A")


@pytest.fixture
def talker(monkeypatch: pytest.MonkeyPatch) -> Talker:
    backend = Talker()
    monkeypatch.setattr(audits, "open_or_replay", lambda *_, **__: (backend, None))
    return backend


def audit(out: Path, **options: Any) -> Any:
    return us.audit("fake/talker", ITEMS, out=out, methods="vote", resamples=100, **options).metrics


def test_replies_with_failed_second_calls_await_them(talker: Talker, tmp_path: Path) -> None:
    first = audit(tmp_path)
    calls, direct = first["calls"], first["methods"]["direct"]
    assert (calls["replies"], calls["unparsed"], calls["awaiting"]) == (16, 0, 8)
    assert (direct["incomplete"], direct["unparsed_rate"]["value"]) == (4, 0.0)
    page = (tmp_path / "report.html").read_text()
    assert "8 unreadable replies still await a second call." in page
    talker.down = False
    calls = audit(tmp_path)["calls"]
    assert (calls["replies"], calls["unparsed"], calls["awaiting"]) == (24, 0, 0)
    assert "await a second call" not in (tmp_path / "report.html").read_text()


def test_replies_that_are_asked_no_second_time_await_nothing(
    talker: Talker, tmp_path: Path
) -> None:
    calls = audit(tmp_path, reask=False)["calls"]
    assert (calls["replies"], calls["unparsed"], calls["awaiting"]) == (24, 8, 0)
