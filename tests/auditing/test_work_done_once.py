"""An audit plans once, renders each question once, parses each answer twice, reads no file back."""

from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import unswayed as us
from unswayed import audits
from unswayed.auditing import audit as whole
from unswayed.auditing import run_directory
from unswayed.backends.protocol import Outcome
from unswayed.backends.simulated import SimulatedBackend, simulated_items
from unswayed.calls import drafts
from unswayed.calls import questions as rendering
from unswayed.cli import main
from unswayed.model.calls import Query
from unswayed.model.items import ItemSet
from unswayed.model.parsing import Ending
from unswayed.report.collect import load_run

JUDGE = "simulated/judge?slot=1&label=0.3&unparsed=0.1&tie=0.05"
METHODS = "direct,vote,average,pride,domain-contextual,debias-prompt"


class Work:
    """What was done how often, by whatever tells one piece of work from another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: dict[str, Counter[Any]] = {}
        self._patch = monkeypatch

    def watch(self, name: str, where: object, attribute: str, which: Callable[..., object]) -> None:
        counted = self.done.setdefault(name, Counter())
        real: Callable[..., object] = getattr(where, attribute)

        def watched(*args: Any, **kwargs: Any) -> object:
            counted[which(*args, **kwargs)] += 1
            return real(*args, **kwargs)

        self._patch.setattr(where, attribute, watched)

    def most(self, name: str) -> int:
        return max(self.done[name].values(), default=0)

    def total(self, name: str) -> int:
        return self.done[name].total()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work(monkeypatch)
    work.watch("plan", whole, "plan_audit", lambda *_, **__: "plan")
    work.watch("render", rendering, "render", lambda item, ask, _: (item.id, ask))
    for reading in (rendering, drafts):
        work.watch(
            "parse",
            reading,
            "read_by",
            lambda _, question, response, __: (question.item.id, question.ask, response),
        )
    work.watch("disk", run_directory, "read_bytes", lambda path: path.name)
    work.watch("sums", audits, "write_sums", lambda directory: directory)
    return work


@pytest.fixture
def items() -> ItemSet:
    return simulated_items(60, 2, seed=4)


def check(work: Work, n_questions: int) -> None:
    assert work.total("plan") == 1
    assert work.most("render") == 1
    assert work.total("render") == len(work.done["render"]) == n_questions
    assert work.most("parse") == 2
    assert work.total("disk") == 0
    assert work.total("sums") == 1


def test_python_does_everything_once(work: Work, items: ItemSet, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = us.audit(JUDGE, items, methods=METHODS, resamples=100, out=out)
    n_questions = sum(1 for _ in result.record.plan.calls())
    assert result.metrics["flips"]["total"] > 10
    assert result.metrics["calls"]["made"] == n_questions
    check(work, n_questions)
    run = load_run(out)
    assert work.done["disk"]["metrics.json"] == 1
    assert all(all(view.spans) for flipped in run.flips.flipped for view in flipped.shown)


@pytest.mark.parametrize("n", [2, 4])
def test_what_is_asked_about_an_item_is_asked_in_a_row(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts that begin alike reach a server's prefix cache one after the other."""
    sent: list[str] = []
    respond = SimulatedBackend.respond

    def noted(backend: SimulatedBackend, query: Query) -> Outcome:
        sent.append(query.item.id)
        return respond(backend, query)

    monkeypatch.setattr(SimulatedBackend, "respond", noted)
    us.audit(JUDGE, simulated_items(40, n, seed=4), methods="vote,pride", resamples=100)
    in_a_row = [item_id for item_id, _ in groupby(sent)]
    assert len(sent) == 40 * n
    assert len(in_a_row) == len(set(in_a_row)) == 40


def test_the_command_does_the_same(work: Work, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert (
        main(["audit", "--model", JUDGE, "--resamples", "100", "--limit", "40", "--out", str(out)])
        == 0
    )
    check(work, 2 * 40 * 2)  # two orders, with the labels as they are and exchanged


def test_a_second_run_renders_and_parses_once(work: Work, items: ItemSet, tmp_path: Path) -> None:
    us.audit(JUDGE, items, methods=METHODS, resamples=100, out=tmp_path)
    for counted in work.done.values():
        counted.clear()
    result = us.audit(JUDGE, items, methods=METHODS, resamples=100, out=tmp_path)
    assert result.metrics["calls"]["made"] == 0
    assert work.total("plan") == work.most("render") == work.most("parse") == 1


def test_a_price_renders_once_and_parses_nothing(work: Work, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["audit", "--model", JUDGE, "--limit", "40", "--out", str(out), "--dry-run"]) == 0
    assert work.total("plan") == work.most("render") == 1
    assert work.total("parse") == 0
    assert not out.exists()


def test_a_cut_off_answer_and_its_retry_are_parsed_twice_each(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "ending", lambda _: Ending.CUT)
    result = us.audit(JUDGE, simulated_items(40, 2), resamples=100)
    assert result.metrics["calls"]["unparsed"] > 0
    assert work.most("render") == 1
    assert work.most("parse") <= 4  # an answer and its retry may be alike: two each


def test_prompts_beyond_the_room_are_rendered_once_more(
    work: Work, items: ItemSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MOST_KEPT", 20_000)
    result = us.audit(JUDGE, items, resamples=100)
    again = sum(count == 2 for count in work.done["render"].values())
    assert 0 < again < result.metrics["calls"]["made"]
    assert work.most("render") == 2


def test_what_was_said_is_shown_without_rendering_or_parsing(
    work: Work, items: ItemSet, tmp_path: Path
) -> None:
    result = us.audit(JUDGE, items, resamples=100, out=tmp_path / "run")
    before = work.total("render"), work.total("parse")
    written = (tmp_path / "run" / "report.html").read_text()
    assert result.report(tmp_path / "again.html").read_text() == written
    assert (work.total("render"), work.total("parse")) == before
