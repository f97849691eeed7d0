from __future__ import annotations

import asyncio
import itertools
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_asking import (
    CPU,
    WORDS,
    answered,
    ask,
    chat,
    logprobs,
    opened,
    plain_label_logprobs,
    query,
)
from random_llama import CHAT_TEMPLATE, make_random_llama

from unswayed.backends import local_jobs
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.backends.local_chats import LabelTokens
from unswayed.base.errors import UsageError
from unswayed.calls import Caller, Question, RunCounts, RunSettings, stop_on_interrupt
from unswayed.model.calls import Failure, Query, Response
from unswayed.model.items import Item, Message
from unswayed.model.presentation import X0, X2, Ask
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore, Memory

torch = pytest.importorskip("torch")


# --- label probabilities ---------------------------------------------------------------------


def test_label_probabilities_equal_the_models_forward_pass(
    folder: Path, backend: HuggingFaceBackend
) -> None:
    chats = [chat(length) for length in (3, 40, 11)]
    for messages, response in zip(chats, ask(backend, map(query, chats)), strict=True):
        assert logprobs(response) == pytest.approx(plain_label_logprobs(folder, messages), abs=1e-4)


def test_a_label_answer_lists_every_label_once_likeliest_first(backend: HuggingFaceBackend) -> None:
    (response,) = answered(backend, [query(chat(5), labels=("A", "B", "C"))])
    assert response.exact
    assert response.top_logprobs is not None
    tops = response.top_logprobs[0]
    assert sorted(top.token for top in tops) == ["A", "B", "C"]
    assert [top.logprob for top in tops] == sorted((top.logprob for top in tops), reverse=True)
    assert response.text == tops[0].token
    assert (response.finish_reason, response.output_tokens, response.cost_usd) == ("stop", 1, 0.0)
    assert sum(np.exp(top.logprob) for top in tops) < 1


def test_batches_do_not_change_the_answer(folder: Path, backend: HuggingFaceBackend) -> None:
    asked = [query(chat(length, start=length)) for length in (30, 2, 17, 9, 64, 1)]
    alone = opened(folder, replace(CPU, batch_tokens=1))
    for together, single in zip(answered(backend, asked), answered(alone, asked), strict=True):
        assert logprobs(together) == pytest.approx(logprobs(single), abs=1e-4)
        assert together.input_tokens == single.input_tokens


def test_trees_do_not_change_the_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = opened(folder)
    scorer = backend._load().scorer
    assert scorer.takes_trees
    seen = []
    score = scorer.score

    def noting(
        prompts: Sequence[Any], labels: Sequence[Any], *, steps: Sequence[Any]
    ) -> Iterator[Any]:
        seen.append((len(prompts), len(steps)))
        return score(prompts, labels, steps=steps)

    monkeypatch.setattr(scorer, "score", noting)
    question = chat(200)[1].content
    chats = [(Message("user", f"{question} A: {a}. B: {b}."),) for a in WORDS for b in WORDS[:2]]
    answers = answered(backend, map(query, chats))
    assert any(steps for _, steps in seen)
    for messages, response in list(zip(chats, answers, strict=True))[::5]:
        assert logprobs(response) == pytest.approx(plain_label_logprobs(folder, messages), abs=1e-4)
    given = sum(one.input_tokens for one in answers)
    distinct = {
        tuple(tokens[:end])
        for (written,) in (
            backend._load().plan.reader.writer.write([one], thinking=False) for one in chats
        )
        for tokens in [written.tokens]
        for end in range(1, len(tokens) + 1)
    }
    (remark,) = backend.remarks
    assert "of 18 label prompts 18 were read as trees" in remark
    assert f"{len(distinct):,} of {given:,} tokens" in remark


def test_shared_examples_are_read_once_and_change_nothing(folder: Path) -> None:
    shown = chat(300)[1].content
    ends = [Message("user", f"{shown}\nItem {number}: A or B?") for number in range(8)]
    asked = [
        query((Message("system", "Judge."), end), f"i{number}") for number, end in enumerate(ends)
    ]
    backend = opened(folder)
    for one, answer in zip(asked, ask(backend, asked), strict=True):
        expected = plain_label_logprobs(folder, one.request.messages)
        assert logprobs(answer) == pytest.approx(expected, abs=1e-4)
    (remark,) = backend.remarks
    assert "of 8 label prompts 8 were read as trees" in remark


def test_a_sampled_label_follows_the_probabilities(backend: HuggingFaceBackend) -> None:
    asked = [query(chat(4), temperature=2.0, sample=k) for k in range(1, 1001)]
    answers = answered(backend, asked)
    found = logprobs(answers[0])
    odds = (found["A"] - found["B"]) / 2.0
    share = sum(one.text == "A" for one in answers) / 1000
    assert share == pytest.approx(1 / (1 + np.exp(-odds)), abs=0.065)  # 4 standard errors
    again = answered(backend, asked[:50])
    assert [one.text for one in again] == [one.text for one in answers[:50]]


# --- label tokens ----------------------------------------------------------------------------


def test_a_split_label_counts_with_its_first_token(
    folder: Path, backend: HuggingFaceBackend
) -> None:
    (response,) = ask(backend, [query(chat(4), labels=("Zebra", "Quagga"))])
    loaded = backend._load()
    (written,) = loaded.plan.reader.writer.write([chat(4)], thinking=False)
    assert len(loaded.tokenizer.encode("Zebra")) > 1
    first = loaded.tokenizer.encode("Zebra")[0]
    assert first in loaded.plan.reader.labels.ids(("Zebra", "Quagga"), written.text)[0]
    assert set(logprobs(response)) == {"Zebra", "Quagga"}


def test_labels_that_begin_with_the_same_token_are_refused(backend: HuggingFaceBackend) -> None:
    with pytest.raises(UsageError, match="'Zebra1'"):
        ask(backend, [query(chat(4), labels=("Zebra1", "Zebra2"))])


def test_a_merged_label_counts_with_the_tokens_that_contain_it(tmp_path: Path) -> None:
    made = make_random_llama(tmp_path / "base", chat_template=None)
    with pytest.warns(UserWarning, match="no chat template"):
        loaded = opened(made)._load()
    prompt = "Which?\n\nAnswer:"
    before = loaded.plan.reader.labels.ids(("A", "B"), prompt)
    loaded.tokenizer.add_tokens([":A"])
    merged = loaded.tokenizer.convert_tokens_to_ids(":A")
    (tokens,) = loaded.plan.reader.writer.encode([f"{prompt}A"])
    assert tokens[-1] == merged
    after = LabelTokens(loaded.plan.reader.writer).ids(("A", "B"), prompt)
    said = loaded.tokenizer.convert_tokens_to_ids("A")
    assert said in after[0]
    assert set(after[0]) - {merged} == set(before[0])
    assert after[1] == before[1]


def test_no_token_stands_for_two_labels(backend: HuggingFaceBackend) -> None:
    loaded = backend._load()
    for labels in (("A", "B", "C"), ("a", "A"), ("1", "2", "3")):
        ids = loaded.plan.reader.labels.ids(labels, "Which?</s><|assistant|>")
        flat = [token for row in ids for token in row]
        assert len(flat) == len(set(flat))
        assert all(ids)


def test_case_counts_only_where_labels_stay_distinct(backend: HuggingFaceBackend) -> None:
    loaded = backend._load()
    lower, upper = (loaded.tokenizer.convert_tokens_to_ids(token) for token in ("a", "A"))
    folded, _ = loaded.plan.reader.labels.ids(("A", "B"), "x<|assistant|>")
    assert {lower, upper} <= set(folded)
    exact_lower, exact_upper = loaded.plan.reader.labels.ids(("a", "A"), "x<|assistant|>")
    assert lower in exact_lower
    assert lower not in exact_upper
    assert upper in exact_upper


# --- generation ------------------------------------------------------------------------------


def reasoning(length: int, **fields: Any) -> Query:
    return query(chat(length), **{"top_logprobs": 0, "max_tokens": 12, **fields})


def test_greedy_text_is_that_of_transformers_alone(
    folder: Path, backend: HuggingFaceBackend
) -> None:
    loaded = backend._load()
    lengths = (3, 25, 8)
    answers = answered(backend, [reasoning(length) for length in lengths])
    for length, response in zip(lengths, answers, strict=True):
        (written,) = loaded.plan.reader.writer.write([chat(length)], thinking=True)
        output = loaded.model.generate(
            torch.tensor([written.tokens]), max_new_tokens=12, do_sample=False
        )
        new = output[0, len(written.tokens) :]
        assert response.text == loaded.tokenizer.decode(new, skip_special_tokens=True)
        assert response.top_logprobs is None
        assert response.output_tokens == len(new)


def test_sampled_text_depends_on_the_request_alone(
    folder: Path, backend: HuggingFaceBackend
) -> None:
    asked = [reasoning(4 + k, temperature=1.0, sample=k) for k in range(4)]
    alone = [answered(backend, [one])[0].text for one in asked]
    assert [one.text for one in answered(backend, asked)] == alone
    same_prompt = [reasoning(4, temperature=1.0, sample=k) for k in range(8)]
    drawn = {one.text for one in answered(backend, same_prompt)}
    assert len(drawn) == 8


def test_the_first_sampled_token_follows_the_softmax(backend: HuggingFaceBackend) -> None:
    loaded = backend._load()
    (written,) = loaded.plan.reader.writer.write([chat(3)], thinking=True)
    with torch.no_grad():
        logits = loaded.model(torch.tensor([written.tokens])).logits[0, -1].double()
    expected = (logits / 0.3).softmax(-1).numpy()
    top = int(expected.argmax())
    asked = [reasoning(3, temperature=0.3, sample=k, max_tokens=1) for k in range(1, 401)]
    said = loaded.tokenizer.decode([top])
    share = sum(one.text == said for one in answered(backend, asked)) / 400
    assert 0.05 < expected[top] < 0.99, "an even or certain distribution shows nothing"
    assert share == pytest.approx(expected[top], abs=0.1)  # 4 standard errors


def test_generation_says_whether_it_was_cut_off(tmp_path: Path) -> None:
    made = make_random_llama(tmp_path / "ender")
    backend = opened(made)
    (cut,) = answered(backend, [reasoning(3)])
    assert (cut.finish_reason, cut.output_tokens) == ("length", 12)
    # whatever it would have said third now ends its answer
    loaded = backend._load()
    (written,) = loaded.plan.reader.writer.write([chat(3)], thinking=True)
    third = int(loaded.model.generate(torch.tensor([written.tokens]), max_new_tokens=3)[0, -1])
    loaded.model.generation_config.eos_token_id = [1, third]
    (ended,) = answered(backend, [reasoning(3)])
    assert ended.finish_reason == "stop"
    assert ended.output_tokens <= 3


# --- running ---------------------------------------------------------------------------------


def test_a_prompt_longer_than_the_model_reads_is_a_failure(backend: HuggingFaceBackend) -> None:
    short, long = ask(backend, [query(chat(3)), query(chat(5000))])
    assert isinstance(short, Response)
    assert isinstance(long, Failure)
    assert "q7" in long.message
    assert "1024" in long.message
    (generated,) = ask(backend, [reasoning(3, max_tokens=2000)])
    assert isinstance(generated, Failure)


def test_queries_are_pulled_a_window_at_a_time(
    backend: HuggingFaceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_jobs, "WINDOW", 4)
    pulled = itertools.count()

    def queries() -> Iterable[Query]:
        for number in range(20):
            next(pulled)
            yield query(chat(3, start=number))

    async def first_answer() -> int:
        answers = backend.answer(queries())
        await anext(answers)
        await answers.aclose()
        return next(pulled)

    assert asyncio.run(first_answer()) == 4


def test_a_batch_that_does_not_fit_is_halved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = opened(folder)
    scorer = backend._load().scorer
    score, sizes = scorer.score, []

    def small_memory(
        prompts: Sequence[Any], labels: Sequence[Any], *, steps: Sequence[Any]
    ) -> Iterator[Any]:
        sizes.append(len(prompts))
        if len(prompts) > 2 or len(prompts[0]) > 100:
            raise torch.OutOfMemoryError
        yield from score(prompts, labels, steps=steps)

    monkeypatch.setattr(scorer, "score", small_memory)
    *fitting, huge = ask(backend, [query(chat(3, start=k)) for k in range(7)] + [query(chat(200))])
    assert all(isinstance(one, Response) for one in fitting)
    assert isinstance(huge, Failure)
    assert "memory" in huge.message
    assert max(sizes) > 2


def test_the_model_runs_outside_the_event_loops_thread(
    backend: HuggingFaceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    run = backend._run

    def noting(jobs: list[Any], steps: tuple[Any, ...]) -> Iterator[Any]:
        seen.add(threading.get_ident())
        yield from run(jobs, steps)

    monkeypatch.setattr(backend, "_run", noting)
    ask(backend, [query(chat(3))])
    assert seen
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_keeps_batch_under_way_and_starts_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr("unswayed.calls.caller.GRACE_S", 0.01)
    backend = opened(folder, replace(CPU, batch_tokens=400))
    main, sizes = threading.get_ident(), []
    stops: list[asyncio.Event] = []
    run_batch = backend._run

    def slow(jobs: list[Any], steps: tuple[Any, ...]) -> Iterator[Any]:
        sizes.append(len(jobs))
        if len(sizes) == 2:
            signal.pthread_kill(main, number)
            while not stops[0].is_set():  # a busy machine takes its time to hear it
                time.sleep(0.01)
            time.sleep(0.3)
        yield from run_batch(jobs, steps)

    monkeypatch.setattr(backend, "_run", slow)
    questions = [
        Question(Item(id=f"q{k}", prompt=f"Which {k}?", candidates=("one", "two")), Ask(shown))
        for k in range(60)
        for shown in (X0, X2)
    ]

    async def work(store: CallStore) -> RunCounts:
        with stop_on_interrupt() as stop:
            stops.append(stop)
            caller = Caller(backend, store, RunSettings(prompts=PromptSettings()))
            return await caller.ask(questions, stop=stop)

    with Memory() as store:
        counts = asyncio.run(work(store))
        assert len(sizes) == 2
        assert sizes[0] < len(store) == counts.made <= sum(sizes) < len(questions)
        assert counts.interrupted


def test_a_local_model_costs_nothing(backend: HuggingFaceBackend) -> None:
    assert backend.price(1000, 1000) == 0.0
    assert backend.offline
    assert backend.gives_logprobs


# --- replies that cannot be read ------------------------------------------------------------------


def test_only_text_without_label_is_reasked_in_another_pass(tmp_path: Path) -> None:
    """Random weights write no label; the second prompt goes on where the first one ended.

    A reasoning prompt leaves thinking to the template, however small its cap; a label alone does not.
    """
    switch = "{% if enable_thinking is defined and not enable_thinking %}closed{% endif %}"
    folder = make_random_llama(tmp_path / "model", chat_template=CHAT_TEMPLATE + switch)
    backend = opened(folder)
    loaded = backend._load()
    item = Item(id="q", prompt="Which?", candidates=("one", "two"))
    scored, written = Question(item, Ask(X0)), Question(item, Ask(X0, "reasoning"))
    settings = RunSettings(prompts=PromptSettings(max_tokens=3))
    with CallStore.open(tmp_path / "calls") as store:
        caller = Caller(backend, store, settings)
        first = caller._drafter.draft(written)
        (prompt,) = loaded.plan.reader.writer.write([first.request.messages], thinking=True)
        said = loaded.model.generate(torch.tensor([prompt.tokens]), max_new_tokens=1)[0, -1]
        loaded.model.generation_config.eos_token_id = [1, int(said)]  # so that it is complete
        plan = caller.price([scored, written])
        counts = asyncio.run(caller.ask([scored, written]))
        decisions = list(caller.read([scored, written]))
        second = [call.request for call in store.calls() if len(call.request.messages) > 2]
        for call in store.calls():
            thinks = call.request.max_tokens == 3 and not call.request.top_logprobs
            (prompt,) = loaded.plan.reader.writer.write([call.request.messages], thinking=thinks)
            assert call.response.input_tokens == len(prompt.tokens)
    assert (plan.n_to_make, plan.n_more, plan.most_more_usd) == (2, 1, 0.0)
    assert (counts.made, counts.seconds) == (3, 1)
    assert [decision.reasked for decision in decisions] == [False, True]
    assert decisions[0].probs is not None
    assert [message.role for message in second[0].messages[-2:]] == ["assistant", "user"]
