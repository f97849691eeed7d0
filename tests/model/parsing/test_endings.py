"""Finish reasons: an allow-list, and what is read of a reply that ended so."""

import msgspec
import pytest

from unswayed.model.calls import Response, TokenLogprob
from unswayed.model.items import Item
from unswayed.model.parsing import Ending, ending, is_failed_attempt, is_unread, read_decision
from unswayed.model.presentation import Ask, canonical

TRIED = {
    Ending.COMPLETE: "eos_token stop end_turn STOP",
    Ending.CUT: "time_limit max_output_tokens MAX_TOKENS",
    Ending.REFUSED: "sensitive content-filter SAFETY RECITATION PROHIBITED_CONTENT BLOCKLIST SPII "
    "guardrail_intervened refusal",
    Ending.BROKEN: "abort aborted cancelled OTHER MALFORMED_FUNCTION_CALL network_error timeout "
    "insufficient_system_resource pause_turn tool_calls incomplete repetition error "
    "model_context_window_exceeded FINISH_REASON_UNSPECIFIED",
}
WORDS = [(word, kind) for kind, words in TRIED.items() for word in words.split()]
ITEM = Item(id="q", prompt="Which?", candidates=("one", "two"))


def test_thirty_one_words_are_listed() -> None:
    assert len(WORDS) == len({word for word, _ in WORDS}) == 31


@pytest.mark.parametrize(("word", "kind"), WORDS)
def test_known_finish_reason_has_its_ending(word: str, kind: Ending) -> None:
    assert ending(word) is kind
    assert ending(word.swapcase().replace("_", "-")) is kind


@pytest.mark.parametrize("reason", [None, ""])
def test_reply_without_finish_reason_is_complete(reason: str | None) -> None:
    assert ending(reason) is Ending.COMPLETE
    assert not is_failed_attempt(reason)


def test_retried_endings_are_broken() -> None:
    failed = {word for word, _ in WORDS if is_failed_attempt(word)}
    reasons = "abort aborted cancelled error network_error timeout insufficient_system_resource"
    assert failed == set(reasons.split())
    assert {ending(word) for word in failed} == {Ending.BROKEN}
    assert is_failed_attempt("NETWORK-ERROR")


@pytest.mark.parametrize(("word", "kind"), WORDS)
@pytest.mark.parametrize("labels", [("A", "B"), ("1", "12")])
def test_only_good_ending_is_read(word: str, kind: Ending, labels: tuple[str, str]) -> None:
    likely = ((TokenLogprob(labels[0], -0.1), TokenLogprob(labels[1], -2.4)),)
    response = Response(text=labels[0], finish_reason=word)
    known = msgspec.structs.replace(response, tokens=(labels[0],), top_logprobs=likely)
    asked = Ask(canonical(2))
    plain, probable = (
        read_decision(ITEM, asked, labels, own, model="m", answer_only=True)
        for own in (response, known)
    )
    # cut off, "1" may have begun 12
    read = kind is Ending.COMPLETE or (kind is Ending.CUT and labels == ("A", "B"))
    assert plain.choice == (0 if read else None)
    assert (probable.choice, probable.probs) == (None, None) or kind.is_read
    assert is_unread(response, plain) == (kind.is_read and not read)
    assert plain.finish_reason == word
