"""A reply that cannot be read is asked for its label once more, in audits and by judges alike."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from fakes import SETTINGS, FakeBackend, pair, questions
from unswayed.backends import Backend
from unswayed.backends.protocol import Outcome
from unswayed.base.errors import BackendError
from unswayed.calls import Caller, Question, RunCounts, RunSettings
from unswayed.calls.drafts import most_tokens
from unswayed.calls.judge import Judge
from unswayed.calls.window import Window
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.decisions import Decision, Verdict
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, Ask, canonical
from unswayed.prompts import PromptSettings, render
from unswayed.store import CallStore, Memory
from unswayed.store.pool import OLDER

WITHOUT = replace(SETTINGS, reask=False)
RAMBLE = "Both have their merits, and much could be said."
ASKS = "Reply with the label only: A or B."


def rambles(query: Query) -> Outcome:
    """Says B when it is asked again."""
    again = query.request.messages[-1].content == ASKS
    return Response(
        text="B" if again else RAMBLE,
        input_tokens=len(query.request.messages),
        output_tokens=1,
        cost_usd=0.25 if again else 1.0,
        latency_s=2.0,
    )


@dataclass
class Talker(FakeBackend):
    """Answers all it is asked, one by one."""

    reply: Callable[[Query], Outcome] = rambles
    gives_logprobs: bool = False
    per_token: float | None = 0.001
    connections: int = 1


def audited(
    backend: Backend, store: CallStore, asked: list[Question], settings: RunSettings = SETTINGS
) -> tuple[RunCounts, list[Decision]]:
    caller = Caller(backend, store, settings)
    counts = asyncio.run(caller.ask(asked))
    return counts, list(caller.read(asked))


def judged(
    backend: Backend, pool: CallStore, asked: list[Question], settings: RunSettings = SETTINGS
) -> tuple[RunCounts, list[Decision]]:
    caller = Caller(backend, pool, settings, remembers=False)
    outcome = asyncio.run(caller.decide(asked))
    return caller.counts, [decision for decision in outcome.decisions if decision is not None]


Asks = Callable[..., tuple[RunCounts, list[Decision]]]
ENGINES = pytest.mark.parametrize("ask", [audited, judged])


# --- what is asked -------------------------------------------------------------------------------


@ENGINES
def test_rambling_judge_is_reasked_in_same_conversation(ask: Asks, store: CallStore) -> None:
    backend = Talker()
    counts, decisions = ask(backend, store, questions(1))
    assert [decision.choice for decision in decisions] == [1, 0]
    assert {d.reasked for d in decisions} == {True}
    assert {(d.cost_usd, d.output_tokens, d.latency_s, d.probs) for d in decisions} == {
        (1.25, 2, 4.0, None)
    }
    assert (counts.planned, counts.made, counts.seconds, counts.unparsed) == (4, 4, 2, 0)
    second = backend.asked[-1]
    (first,) = (r for r in backend.asked if r.messages == second.messages[:-2])
    assert [(m.role, m.content) for m in second.messages[-2:]] == [
        ("assistant", RAMBLE),
        ("user", ASKS),
    ]
    assert (second.max_tokens, second.temperature, second.top_logprobs) == (16, 0.0, 0)
    assert (second.sample, second.labels, second.nonce) == (0, ("A", "B"), first.nonce)
    asked_before = len(backend.asked)
    assert ask(backend, store, questions(1))[1] == decisions
    assert len(backend.asked) == asked_before


@ENGINES
def test_only_unread_replies_of_batch_are_reasked(ask: Asks, store: CallStore) -> None:
    def some(query: Query) -> Outcome:
        again = len(query.request.messages) > 2
        return (
            replace_text(rambles(query), "A")
            if int(query.item.id[1:]) % 3 and not again
            else rambles(query)
        )

    counts, decisions = ask(Talker(some), store, questions(60))
    assert (counts.made, counts.seconds, counts.unparsed) == (160, 40, 0)
    assert [d.reasked for d in decisions] == [k % 3 == 0 for k in range(60) for _ in range(2)]
    assert all(d.choice is not None for d in decisions)


def replace_text(response: Outcome, text: str) -> Outcome:
    assert isinstance(response, Response)
    return msgspec.structs.replace(response, text=text)


@ENGINES
def test_unread_second_reply_is_final(ask: Asks, store: CallStore) -> None:
    backend = Talker(lambda query: replace_text(rambles(query), RAMBLE))
    counts, decisions = ask(backend, store, questions(1))
    assert (counts.made, counts.seconds, counts.unparsed) == (4, 2, 2)
    assert [(d.choice, d.reasked) for d in decisions] == [(None, True)] * 2
    assert ask(backend, store, questions(1))[0].made == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I will not say.", "refusal"),
        ("I will not say.", "content_filter"),
        (RAMBLE, "abort"),
        (RAMBLE, "tool_calls"),
        ("tie", "stop"),
        ("B", "stop"),
    ],
)
@ENGINES
def test_refused_broken_and_read_replies_are_not_reasked(
    ask: Asks, text: str, reason: str, store: CallStore
) -> None:
    backend = Talker(lambda _: Response(text=text, finish_reason=reason, cost_usd=0.0))
    _, decisions = ask(backend, store, questions(1))
    assert len(backend.asked) == 2
    assert [decision.reasked for decision in decisions] == [False, False]


@ENGINES
def test_unread_longer_reply_is_final(ask: Asks, store: CallStore) -> None:
    def reply(query: Query) -> Outcome:
        reason = "length" if query.request.max_tokens == 16 else "stop"
        return Response(text=RAMBLE, finish_reason=reason, cost_usd=0.0)

    backend = Talker(reply)
    _, decisions = ask(backend, store, questions(1))
    assert [request.max_tokens for request in backend.asked] == [16, 16, 64, 64]
    assert [(d.choice, d.reasked) for d in decisions] == [(None, False)] * 2


def test_reask_omits_thinking_and_start_of_long_reply(store: CallStore) -> None:
    texts = iter(["<think>B</think>" + "x" * 9000 + "\ud83d", "<think>all of it</think>\n"])

    def reply(query: Query) -> Outcome:
        if len(query.request.messages) > 2:
            return Response(text="A", cost_usd=0.0)
        return Response(text=next(texts), cost_usd=0.0)

    backend = Talker(reply)
    _, decisions = audited(backend, store, questions(1))
    assert [decision.reasked for decision in decisions] == [True, True]
    shown = {request.messages[-2].content for request in backend.asked[2:]}
    assert shown == {"x" * 7999 + "\ufffd", "(no answer)"}
    assert audited(backend, store, questions(1))[0].made == 0  # as stored it has the same key


@ENGINES
def test_each_sample_is_reasked_about_own_reply(ask: Asks, store: CallStore) -> None:
    backend = Talker()
    asked = questions(1, *(Ask(X0, sample=sample) for sample in range(3)))
    _, decisions = ask(backend, store, asked)
    again = [request for request in backend.asked if request.messages[-1].content == ASKS]
    assert [(r.sample, r.temperature) for r in again] == [(0, 0.0), (1, 0.0), (2, 0.0)]
    assert len({msgspec.json.encode(request) for request in again}) == 3
    assert [(d.choice, d.reasked, d.sample) for d in decisions] == [(1, True, s) for s in range(3)]


def test_template_sets_reask_sentence(tmp_path: Path, store: CallStore) -> None:
    template = tmp_path / "own.txt"
    template.write_text(
        "---\nreask: Nur den Buchstaben, {labels}, bitte.\n---\n{{ question }}"
        "{% for c in candidates %}\n{{ c.label }}: {{ c.text }}{% endfor %}"
    )
    settings = RunSettings(prompts=PromptSettings(template=str(template)))
    backend = Talker(
        lambda q: Response(text="B" if len(q.request.messages) > 1 else RAMBLE, cost_usd=0.0)
    )
    _, decisions = audited(backend, store, questions(1), settings)
    assert {d.choice for d in decisions} == {0, 1}
    assert backend.asked[-1].messages[-1].content == "Nur den Buchstaben, A or B, bitte."


def test_lists_are_not_reasked(store: CallStore) -> None:
    item = Item(id="l", prompt="?", candidates=("a", "b", "c"), task=Task.LISTWISE)
    backend = Talker()
    _, decisions = audited(backend, store, [Question(item, Ask(canonical(3)))])
    assert (len(backend.asked), decisions[0].reasked) == (1, False)


# --- stopped between the calls -------------------------------------------------------------------


def test_run_killed_between_calls_makes_second_call_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Talker()
    with CallStore.open(tmp_path) as store:
        with monkeypatch.context() as killed:
            killed.setattr(Window, "_follow", lambda *_: None)
            audited(backend, store, questions(1))
        assert len(backend.asked) == 2
    with CallStore.open(tmp_path) as store:
        plan = Caller(backend, store, SETTINGS).price(questions(1))
        assert (plan.n_distinct, plan.n_cached, plan.n_to_make, plan.n_reasks) == (4, 2, 2, 2)
        assert (plan.n_more, plan.most_reasks_usd) == (0, plan.most_cost_usd)
        _, decisions = audited(backend, store, questions(1))
    assert len(backend.asked) == 4
    assert [decision.choice for decision in decisions] == [1, 0]


@ENGINES
def test_answers_read_by_older_rules_are_found(ask: Asks, tmp_path: Path) -> None:
    """As a file has them that was written before answers were marked for it."""
    backend = Talker()
    with CallStore.open(tmp_path) as store:
        audited(backend, store, questions(1), WITHOUT)
        with store.transaction() as connection:
            connection.execute("UPDATE calls SET truncated = 0")
            connection.execute("DELETE FROM meta WHERE name = ?", (OLDER,))
    with CallStore.open(tmp_path, read_only=True) as store:
        assert Caller(backend, store, SETTINGS).price(questions(1)).n_to_make == 2
    some = Question(pair(1), Ask(X0))
    with CallStore.open(tmp_path) as store:
        audited(backend, store, [some])  # nothing is known of the others by that
    with CallStore.open(tmp_path) as store:
        assert [d.choice for d in ask(backend, store, questions(1))[1]] == [1, 0]
    with CallStore.open(tmp_path, read_only=True) as store:
        assert Caller(backend, store, SETTINGS).price([*questions(1), some]).n_to_make == 0


# --- settings and budgets ------------------------------------------------------------------------


@ENGINES
def test_reask_off_ignores_recorded_second_calls(ask: Asks, store: CallStore) -> None:
    backend = Talker()
    counts, decisions = ask(backend, store, questions(1), WITHOUT)
    assert (counts.made, counts.unparsed, counts.left_out, len(backend.asked)) == (2, 2, 0, 2)
    assert [(d.choice, d.reasked, d.cost_usd) for d in decisions] == [(None, False, 1.0)] * 2
    assert [d.choice for d in ask(backend, store, questions(1))[1]] == [1, 0]
    assert len(backend.asked) == 4
    counts, decisions = ask(backend, store, questions(1), WITHOUT)
    assert (counts.made, counts.left_out) == (0, 2)
    assert [(d.choice, d.reasked, d.cost_usd) for d in decisions] == [(None, False, 1.0)] * 2


def one_call() -> float:
    """A budget that reaches for one first call of `Talker`, and for nothing behind it."""
    request = Request(
        model="fake/one",
        messages=render(pair(0), Ask(X0), SETTINGS.prompts).messages,
        labels=("A", "B"),
        max_tokens=16,
    )
    return 1.0 + 0.001 * sum(most_tokens(request)) - 0.1


def test_budget_for_one_call_leaves_reply_unread(store: CallStore) -> None:
    backend = Talker()
    settings = replace(SETTINGS, budget_usd=one_call())
    counts, decisions = audited(backend, store, questions(1, Ask(X0)), settings)
    assert counts.budget_spent
    assert counts.exit_code == 3
    assert (len(backend.asked), counts.planned, counts.made) == (1, 2, 1)
    assert [(d.choice, d.reasked) for d in decisions] == [(None, False)]
    _, decisions = audited(backend, store, questions(1, Ask(X0)))
    assert [(d.choice, d.reasked) for d in decisions] == [(1, True)]
    assert len(backend.asked) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_judge_over_budget_gives_no_verdict_before_second_call(
    is_async: bool,
) -> None:
    async def asynchronously(judge: Judge) -> Verdict:
        try:
            return await judge.acompare("Question 0?", "yes", "no")
        finally:
            await judge.aclose()

    def verdict(judge: Judge) -> Verdict:
        if is_async:
            return asyncio.run(asynchronously(judge))
        with judge:
            return judge.compare("Question 0?", "yes", "no")

    backend = Talker()
    judge = Judge(backend, method="direct", budget=one_call())
    with pytest.raises(BackendError, match="does not cover the next call"):
        verdict(judge)
    assert judge.counts.budget_spent
    assert len(backend.asked) == 1
    judge = Judge(backend, method="direct")
    assert verdict(judge).choice == 1
    assert judge.counts.made == 2
    judge = Judge(backend, method="direct", reask=False)
    assert verdict(judge).choice is None
    assert (judge.counts.made, judge.null_reasons) == (1, {"with unparsed answers": 1})


def test_failed_second_call_is_retried_by_next_command(store: CallStore) -> None:
    def fails(query: Query) -> Outcome:
        if len(query.request.messages) > 2:
            return Failure(error="BackendError", message="q0: no second turn")
        return rambles(query)

    counts, decisions = audited(Talker(fails), store, questions(1, Ask(X0)))
    assert (counts.failed, counts.exit_code) == (1, 3)
    assert [(d.choice, d.reasked) for d in decisions] == [(None, False)]
    counts, decisions = judged(Talker(fails), store, questions(1, Ask(X0)))
    assert (counts.failed, decisions) == (1, [])
    assert judged(Talker(), store, questions(1, Ask(X0)))[1][0].choice == 1


def test_plan_prices_unreadable_replies(store: CallStore) -> None:
    plan = Caller(Talker(), store, SETTINGS).price(questions(3))
    assert (plan.n_to_make, plan.n_reasks, plan.n_more) == (6, 0, 6)
    backend = Talker()
    audited(backend, store, questions(3))
    again = [request for request in backend.asked if len(request.messages) > 2]
    most = sum(0.001 * sum(most_tokens(request)) for request in again)
    assert plan.most_more_usd is not None
    assert most <= plan.most_more_usd < 1.3 * most
    assert Caller(Talker(), Memory(), WITHOUT).price(questions(3)).n_more == 0


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (["refusal", "stop"], {"with finish reason 'refusal'": 1, "with unparsed answers": 1}),
        (
            ["tool_calls", "weird\nword"],
            {
                "with finish reason 'tool_calls'": 1,
                "with finish reason 'weird\\nword'": 1,
            },
        ),
    ],
)
def test_a_verdict_on_nothing_says_how_its_answers_ended(
    words: list[str], reasons: dict[str, int]
) -> None:
    ends = iter(words)
    backend = Talker(lambda _: Response(text=RAMBLE, finish_reason=next(ends)))
    with Judge(backend, method="direct", reask=False) as judge:
        for number in range(2):
            assert judge.compare(f"Question {number}?", "yes", "no").choice is None
        assert judge.null_reasons == reasons
