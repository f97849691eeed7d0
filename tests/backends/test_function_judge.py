"""Functions as judges, through `us.audit`, `us.Judge` and `us.calibrate`."""

import asyncio
import hashlib
import json
import math
import os
import signal
import threading
import time
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unswayed as us
from forked import Forked
from unswayed.backends.simulated import SimulatedBackend, SimulatedJudge, simulated_items
from unswayed.base.errors import BackendError, UsageError

FAST = {"resamples": 100}


def worth(text: object) -> float:
    return int.from_bytes(hashlib.sha256(str(text).encode()).digest()[:4], "big") / 2**32


def rows(count: int = 60) -> list[dict[str, object]]:
    return [
        {
            "id": f"q{i}",
            "prompt": f"Q{i}",
            "candidates": [f"a{i}", f"b{i}"],
            "gold": int(worth(f"b{i}") > worth(f"a{i}")),
        }
        for i in range(count)
    ]


def place(prompt: str, answers: list[str]) -> int:
    return int(worth(answers[1]) > worth(answers[0]) + 0.2)


def label(prompt: str, first: str, second: str) -> str:
    return " b " if worth(second) > worth(first) + 0.2 else "A"


async def later(prompt: str, answers: list[str]) -> int:
    await asyncio.sleep(0)
    return place(prompt, answers)


class Called:
    def __call__(self, prompt: str, answers: list[str], *, strict: bool = True) -> np.int64:
        return np.int64(place(prompt, answers))


def shares(prompt: str, answers: list[str]) -> list[float]:
    first = 1 / (1 + math.exp(-6 * (worth(answers[0]) + 0.2 - worth(answers[1]))))
    return [first, 1 - first]


class TextlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def decisions(judged: list[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "item_id": row["id"],
            "order": order,
            "labels": ("A", "B"),
            "choice": order[place("", [row["candidates"][c] for c in order])],  # type: ignore[index]
        }
        for row in judged
        for order in ((0, 1), (1, 0))
    ]


def measured(result: us.AuditResult) -> dict[str, Any]:
    row = result.metrics["methods"]["direct"]
    return {name: row[name] for name in ("consistency", "position_rate", "accuracy")}


@pytest.mark.parametrize(
    "judge",
    [place, label, later, Called(), lambda p, a: later(p, a), lambda *given: place(*given)],
    ids=["place", "label", "async", "object", "lambda around async", "any arguments"],
)
def test_forms_of_a_function_measure_what_its_decisions_measure(judge: Any) -> None:
    wanted = us.audit(items=rows(), decisions=decisions(rows()), **FAST)
    assert measured(us.audit(judge, rows(), **FAST)) == measured(wanted)


def test_probabilities_make_every_method_run() -> None:
    judge = us.FunctionJudge(shares, probabilities=True)
    result = us.audit(judge, rows(100), methods="all", **FAST)
    assert result.metrics["methods"]["direct"]["accuracy"]["value"] < 0.9
    for name in ("average", "pride", "contextual", "cell-median"):
        assert result.metrics["methods"][name]["accuracy"]["value"] > 0.95
    assert result.metrics["skipped"]["debias-prompt"] == "this judge has its own prompt"


def test_open_backend_is_audited_and_left_open() -> None:
    class Kept(SimulatedBackend):
        closed = False

        async def close(self) -> None:
            self.closed = True

    items, judge = simulated_items(40), Kept(SimulatedJudge(slot=(0.6,)))
    result = us.audit(judge, items, protocol="coupled", **FAST)
    assert not judge.closed
    by_name = us.audit(judge.model, items, protocol="coupled", **FAST)
    assert measured(result) == measured(by_name)


def test_none_is_unparsed_and_tie_is_a_tie() -> None:
    result = us.audit(lambda p, a: None if p.endswith("7") else "TIE", rows(20), **FAST)
    row = result.metrics["methods"]["direct"]
    assert row["unparsed_rate"]["value"] == pytest.approx(0.1)
    assert row["tie_rate"]["value"] == pytest.approx(0.9)


def test_equally_probable_best_places_are_a_tie() -> None:
    judge = us.FunctionJudge(lambda p, a: (0.4, 0.4, 0.2), probabilities=True)
    three = [{"id": "x", "task": "mcq", "prompt": "p", "candidates": ["a", "b", "c"]}]
    (verdict,) = us.Judge(judge, method="direct").verdicts(three)
    assert isinstance(verdict, us.Verdict)
    assert verdict.choice == "tie"


@pytest.mark.parametrize(
    "returned",
    [True, 2, -1, 0.0, "The first.", {"A": 1.0}, [3, 4], [math.nan, 1], [0.2, 0.3, 0.5], b"A", []],
    ids=repr,
)
def test_anything_else_ends_the_run(returned: object) -> None:
    said = r"q\d+: function/lambda returned .*from 0 to 1, one of A, B"
    for probabilities in (False, True):
        judge = us.FunctionJudge(lambda p, a: returned, probabilities=probabilities)
        with pytest.raises(UsageError, match=said):
            us.audit(judge, rows(5), **FAST)


def test_undeclared_probabilities_are_rejected() -> None:
    with pytest.raises(UsageError, match="probabilities=True"):
        us.audit(shares, rows(5), **FAST)


def test_exception_is_a_failed_call_and_is_not_repeated() -> None:
    calls: list[str] = []

    def judge(prompt: str, answers: list[str]) -> int:
        calls.append(prompt)
        if prompt.endswith("7"):
            raise TimeoutError("the upstream service")
        return 0

    result = us.audit(judge, rows(20), **FAST)
    assert result.metrics["calls"]["failed"] == 4
    assert len(calls) == 40
    assert "function/judge raised TimeoutError: the upstream service" in result.run["warnings"][0]


def test_only_exceptions_are_an_error() -> None:
    with pytest.raises(BackendError, match="raised ZeroDivisionError: integer division"):
        us.audit(lambda p, a: 1 // 0, rows(5), **FAST)
    with us.Judge(lambda p, a: 1 // 0, method="vote") as judge, pytest.raises(BackendError):
        judge.compare("q", "a", "b")


@pytest.mark.parametrize(
    "function",
    [lambda a: 0, lambda p, a, b, c: 0, lambda *, prompt, answers: 0, lambda p, a, *, level: 0],
)
def test_other_arguments_are_rejected(function: Any) -> None:
    with pytest.raises(UsageError, match="a judge is a function of"):
        us.audit(function, rows(5))


def test_function_of_a_pair_rejects_more_candidates() -> None:
    three = [{"id": "x", "task": "mcq", "prompt": "p", "candidates": ["a", "b", "c"]}]
    with pytest.raises(UsageError, match="takes two answers, and the item has 3"):
        us.audit(label, three)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"protocol": "all"}, "sees no labels"),
        ({"protocol": "label"}, "sees no labels"),
        ({"prompt": "reasoning"}, "reads no prompt"),
        ({"base_url": "http://127.0.0.1:1"}, "takes no connection options"),
        ({"out": "calls"}, "name='judge-v3'"),
    ],
)
def test_options_without_meaning_are_rejected(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        us.audit(place, rows(5), **options)
    assert not Path("calls").exists()


def test_listwise_and_rubric_items_are_rejected() -> None:
    item = {"id": "x", "task": "listwise", "prompt": "p", "candidates": ["a", "b", "c"]}
    with pytest.raises(UsageError, match="judges only pairwise and mcq items"):
        us.audit(place, [item])


def test_named_function_resumes_from_its_folder(tmp_path: Path) -> None:
    calls: list[str] = []

    def judge(prompt: str, answers: list[str]) -> int:
        calls.append(prompt)
        return place(prompt, answers)

    named = us.FunctionJudge(judge, name="mine-v1")
    first = us.audit(named, rows(10), out=tmp_path / "run", **FAST)
    again = us.audit(named, rows(10), out=tmp_path / "run", **FAST)
    assert len(calls) == 20
    assert again.metrics["calls"]["cached"] == 20
    assert measured(first) == measured(again)
    assert first.metrics["model"] == "function/mine-v1"


def test_killed_audit_of_a_function_resumes_from_its_folder(tmp_path: Path) -> None:
    def audit(left: int) -> None:
        def judge(prompt: str, answers: list[str]) -> int:
            nonlocal left
            with (tmp_path / "asked.txt").open("a") as asked:
                asked.write(f"{prompt} {answers}\n")
            time.sleep(0.02)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return place(prompt, answers)

        named = us.FunctionJudge(judge, name="mine-v1", at_once=1)
        us.audit(named, rows(40), out=tmp_path / "run", **FAST)

    codes = [Forked(tmp_path, partial(audit, left)).code() for left in (30, 30, 0)]
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    undisturbed = us.audit(us.FunctionJudge(place, name="mine-v1"), rows(40), **FAST)
    named = us.FunctionJudge(place, name="mine-v1")
    resumed = us.audit(named, rows(40), out=tmp_path / "run", **FAST)
    assert measured(resumed) == measured(undisturbed)
    assert resumed.metrics["calls"]["made"] == 0
    asked = (tmp_path / "asked.txt").read_text().splitlines()
    assert len(set(asked)) == 80
    assert len(asked) < 80 + 2 * 30  # what was recorded was not asked again


def test_calibrate_fits_on_a_function(tmp_path: Path) -> None:
    judge = us.FunctionJudge(shares, name="shares-v1", probabilities=True)
    us.calibrate(us.methods.PriDe(), rows(100), judge, out=tmp_path / "pride.json")
    fitted = us.load_method(tmp_path / "pride.json")
    with us.Judge(judge, method=fitted) as corrected:
        asked = rows(200)[100:]
        choices = [getattr(verdict, "choice", None) for verdict in corrected.verdicts(asked)]
    assert sum(c == row["gold"] for c, row in zip(choices, asked, strict=True)) > 95
    with pytest.raises(UsageError, match="outlive the code"):
        us.calibrate("pride", rows(20), shares, out=tmp_path / "other.json")


def test_judge_gives_the_same_verdict_in_both_orders() -> None:
    with us.Judge(us.FunctionJudge(shares, probabilities=True)) as judge:
        one = judge.compare("q", "x1", "x2")
        other = judge.compare("q", "x2", "x1")
    assert one.scores is not None
    assert other.scores is not None
    assert one.scores == pytest.approx(other.scores[::-1])


def test_plain_functions_run_at_once_up_to_the_limit() -> None:
    busy, most, lock = 0, 0, threading.Lock()
    full = threading.Barrier(4, timeout=20)

    def judge(prompt: str, answers: list[str]) -> int:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        full.wait()  # passed by four together, or never
        with lock:
            busy -= 1
        return 0

    us.audit(us.FunctionJudge(judge, at_once=4), rows(8), **FAST)
    assert most == 4


def test_conversation_reaches_the_function_as_it_is() -> None:
    seen: list[object] = []
    talk = [{"role": "user", "content": "hello"}]
    item = {"id": "x", "task": "pairwise", "prompt": talk, "candidates": ["a", "b"]}
    us.audit(lambda p, a: seen.append(p) or 0, [item], **FAST)
    assert [turn.content for turn in seen[0]] == ["hello"]  # type: ignore[attr-defined]


def test_probabilities_of_any_number_type_count() -> None:
    judge = us.FunctionJudge(lambda p, a: (Fraction(1, 4), Fraction(3, 4)), probabilities=True)
    with us.Judge(judge, method="direct") as opened:
        verdict = opened.compare("q", "a", "b")
    assert verdict.choice == 1
    assert verdict.scores == pytest.approx((0.25, 0.75))


@pytest.mark.parametrize(
    "error",
    [StopIteration(), asyncio.CancelledError(), TextlessError()],
    ids=["stop", "cancelled", "text"],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_any_exception_is_a_failed_call(error: BaseException, is_async: bool) -> None:
    def judge(prompt: str, answers: list[str]) -> int:
        if prompt == "Q3":
            raise error
        return 0

    async def waiting(prompt: str, answers: list[str]) -> int:
        return judge(prompt, answers)

    result = us.audit(waiting if is_async else judge, rows(6), **FAST)
    assert result.metrics["calls"]["failed"] == 2
    assert result.metrics["calls"]["made"] == 10


@pytest.mark.parametrize(
    "returned", [10**5000, [10**400, 0], TextlessError()], ids=["int", "list", "object"]
)
def test_value_that_cannot_be_written_is_rejected(returned: object) -> None:
    judge = us.FunctionJudge(lambda p, a: returned, probabilities=True)
    with pytest.raises(UsageError, match=r"q\d+: function/lambda returned "):
        us.audit(judge, rows(5), **FAST)


def test_interrupted_process_does_not_wait_for_function(tmp_path: Path) -> None:
    def judge(prompt: str, answers: list[str]) -> int:
        if (prompt, answers) == ("Q1", ["a1", "b1"]):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3600)
        return 0

    process = Forked(tmp_path, lambda: us.audit(judge, rows(3)))
    assert process.code() == 1
    said = process.err.read_text()
    assert "KeyboardInterrupt" in said
    assert "Stopping. Finished work is kept" in said


def test_unreadable_answer_of_a_function_is_not_asked_again(tmp_path: Path) -> None:
    asked = []

    def silent(prompt: str, answers: list[str]) -> None:
        asked.append(prompt)

    us.audit(
        us.FunctionJudge(silent, name="silent-1"), rows(30), methods="direct", out=tmp_path, **FAST
    )
    assert len(asked) == 60


def test_flipped_items_show_what_a_function_was_given(tmp_path: Path) -> None:
    judge = us.FunctionJudge(lambda prompt, answers: 0, name="first-1")
    us.audit(judge, rows(30), methods="direct", out=tmp_path, **FAST)
    (first, *_), *_ = (
        item["shown"] for item in json.loads((tmp_path / "flipped.json").read_text())["flipped"]
    )
    assert [message["content"] for message in first["messages"]] == [
        f"Q{(n := first['messages'][0]['content'][1:].split()[0])}\n\n1: a{n}\n\n2: b{n}"
    ]
