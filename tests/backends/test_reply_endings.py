"""Servers that end the reply "A" in every way that servers were seen to: whole audits."""

from dataclasses import replace

import pytest
from chat_cases import JumpClock, audited, backend_at, collect, query
from fake_server import FakeServer

from unswayed.auditing.records import CallsRecord
from unswayed.auditing.settings import AuditSettings
from unswayed.backends.anthropic import AnthropicDialect
from unswayed.backends.dialect import Dialect
from unswayed.backends.openai_compatible import OpenAIDialect
from unswayed.backends.simulated import simulated_items
from unswayed.model.calls import Failure, Response
from unswayed.model.parsing import Ending, ending, is_failed_attempt
from unswayed.prompts import PromptSettings

WORDS = [
    *("abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error"),
    *("timeout", "OTHER", "MALFORMED_FUNCTION_CALL", "FINISH_REASON_UNSPECIFIED", "pause_turn"),
    *("tool_calls", "incomplete", "repetition", "model_context_window_exceeded", "sensitive"),
    *("content-filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"),
    *("guardrail_intervened", "refusal", "time_limit", "max_output_tokens", "MAX_TOKENS"),
    *("eos_token", "stop", "end_turn", "STOP"),
]
SETTINGS = AuditSettings(methods=("direct",), resamples=100)
ITEMS = simulated_items(2, 2, seed=3)
CALLS = 4


async def calls_of(server: FakeServer, *, labels: tuple[str, str] = ("A", "B")) -> CallsRecord:
    """What an audit of two pairs in both orders counts."""
    settings = replace(SETTINGS, prompts=PromptSettings(label_set=labels))
    clock = JumpClock().clock()
    return (await audited(server, ITEMS, settings, clock=clock, max_retries=2)).record.metrics.calls


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("labels", [("A", "B"), ("1", "12")])
async def test_only_good_ending_gives_verdict(word: str, labels: tuple[str, str]) -> None:
    server = FakeServer(say=lambda _: labels[0], finish=lambda _: word)
    calls = await calls_of(server, labels=labels)
    if is_failed_attempt(word):
        assert (calls.failed, calls.made, calls.replies) == (CALLS, 0, 0)
        assert server.received == (3 + 1) * CALLS  # and once more at the end
        return
    ended = ending(word)
    longer = ended is Ending.CUT and labels == ("1", "12")  # "1" may have begun 12
    assert server.received == CALLS * (1 + longer)
    assert (calls.failed, calls.replies) == (0, CALLS)
    assert calls.unparsed == (0 if ended.is_read and not longer else CALLS)
    assert calls.refused == (CALLS if ended is Ending.REFUSED else 0)
    assert calls.broken == ({word: CALLS} if ended is Ending.BROKEN else {})


@pytest.mark.parametrize("word", ["abort", "OTHER", "refusal"])
async def test_probabilities_give_no_verdict_after_bad_ending(word: str) -> None:
    server = FakeServer(finish=lambda number: word if word != "abort" or number == 1 else "stop")
    calls = await calls_of(server)
    if word == "abort":  # the first answer was not recorded, its call was made again
        assert (calls.made, calls.unparsed, server.received) == (CALLS, 0, CALLS + 1)
        assert calls.label_mass == pytest.approx(1.0)
    else:
        assert (calls.made, calls.unparsed, server.received) == (CALLS, CALLS, CALLS)
        assert calls.label_mass is None


@pytest.mark.parametrize(
    ("dialect", "usual"),
    [(OpenAIDialect("m"), "stop"), (AnthropicDialect("m"), "end_turn")],
    ids=["completions", "messages"],
)
@pytest.mark.parametrize("word", [None, "end_turn", "pause_turn", "aborted", "NETWORK-ERROR"])
async def test_broken_message_is_failed_attempt(
    word: str | None, dialect: Dialect, usual: str
) -> None:
    async with FakeServer(finish=lambda _: word) as server:
        backend = backend_at(server.url, clock=JumpClock().clock(), max_retries=2)
        backend.dialect = dialect
        outcome = (await collect(backend, [query()]))["q0"]
    if is_failed_attempt(word):
        assert isinstance(outcome, Failure)
        assert (outcome.error, outcome.attempts) == ("BadResponseError", 3 + 1)
        assert outcome.message.endswith(f"the answer came with an error ({word}) (4 attempts)")
    else:
        assert isinstance(outcome, Response)
        assert outcome.finish_reason == (word or usual)
