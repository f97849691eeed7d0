"""The façade for one item: the audit's verdicts, in sync and async code, streaming or not."""

import asyncio
import os
import signal
import threading
import warnings
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import needs
import unswayed as us
from unswayed.backends import open_backend
from unswayed.backends.simulated import SimulatedBackend, simulated_items
from unswayed.base.errors import BackendError, ItemError, MethodError, UnknownNameError, UsageError
from unswayed.base.sync import LoopThread, run_sync
from unswayed.calls import Caller, Question, RunSettings
from unswayed.calls.calibration import calibrate
from unswayed.calls.judge import Judge
from unswayed.calls.judging import Judged, JudgeFailure, windows
from unswayed.methods.additive import Effects
from unswayed.methods.fitted_file import FittedFile, load_method, save_method
from unswayed.methods.names import parse_method
from unswayed.methods.priors import LabelPrior
from unswayed.methods.protocol import is_fitted
from unswayed.model.calls import Failure, Query, Response
from unswayed.model.decisions import Decision, Verdict
from unswayed.model.faces import named
from unswayed.model.items import Item, ItemSet, Task
from unswayed.model.presentation import settled
from unswayed.prompts import PromptSettings, prompt_fingerprint
from unswayed.store import CallStore, Memory

MODEL = "simulated/judge?slot=1&noise=0.6&unparsed=0.05"


@pytest.fixture(scope="module")
def pairs() -> ItemSet:
    return simulated_items(80, 2, seed=11)


def fitted(items: ItemSet, path: Path, *, model: str = MODEL, method: str = "pride") -> FittedFile:
    """What `unswayed calibrate` writes."""
    backend, prompts = open_backend(model), PromptSettings()
    made = asyncio.run(
        calibrate(
            parse_method(method),
            items,
            Caller(backend, Memory(), RunSettings(prompts=prompts)),
        )
    )
    save_method(
        path,
        made.method,
        model=backend.model,
        prompt_fingerprint=prompt_fingerprint(prompts),
        label_set=made.label_set,
        estimation_fingerprint=items.fingerprint,
        estimation_ids=[item.id for item in items],
    )
    return load_method(path)


def judged(judge: Judge, items: Iterable[Item]) -> list[Verdict]:
    verdicts = list(judge.verdicts(items))
    assert all(isinstance(verdict, Verdict) for verdict in verdicts)
    return verdicts  # type: ignore[return-value]


# --- the same as the audit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    ["direct", "canonical", "vote", "average", "average:space=logit", "repeat", "sequential"],
)
@pytest.mark.parametrize("n", [2, 4])
def test_verdicts_are_the_audit_s(method: str, n: int) -> None:
    items = simulated_items(60, n, seed=7)
    with Judge(MODEL, method=method) as judge:
        streamed = judged(judge, items)
    store, backend = Memory(), open_backend(MODEL)
    how = RunSettings(prompts=PromptSettings())
    chosen = parse_method(method)
    questions = [
        Question(item, about)
        for item in items
        for ask in chosen.asks(n)
        if (about := settled(ask, item)) is not None
    ]
    caller = Caller(backend, store, how)
    asyncio.run(caller.ask(questions))
    by_item: dict[str, list[Decision]] = {item.id: [] for item in items}
    for decision in caller.read(questions):
        by_item[decision.item_id].append(decision)
    batch = [chosen.decide(item, by_item[item.id]) for item in items]
    assert [verdict.choice for verdict in streamed] == [verdict.choice for verdict in batch]
    assert [verdict.item_id for verdict in streamed] == [item.id for item in items]


def test_one_at_a_time_is_the_same_as_many(pairs: ItemSet) -> None:
    with Judge(MODEL, method="vote") as judge:
        many = judged(judge, pairs)
    with Judge(MODEL, method="vote") as judge:
        assert [judged(judge, [item])[0] for item in pairs] == many


def test_a_fitted_method_corrects(pairs: ItemSet, tmp_path: Path) -> None:
    file = fitted(pairs, tmp_path / "pride.json", model="simulated/judge?slot=3&content=1&noise=0")
    new = simulated_items(100, 2, seed=99)
    model = "simulated/judge?slot=3&content=1&noise=0"
    with Judge(model, method=file) as judge:
        corrected = judged(judge, new)
    with Judge(model, method="direct") as judge:
        plain = judged(judge, new)

    def firsts(verdicts: list[Verdict]) -> int:
        return sum(verdict.choice == 0 for verdict in verdicts)

    assert firsts(plain) > 75  # the slot is worth 3 logits
    assert 30 < firsts(corrected) < 70
    assert {verdict.n_calls for verdict in corrected} == {1}


@pytest.mark.parametrize("n", [2, 4])
def test_audit_takes_judge_as_function(n: int) -> None:
    items = simulated_items(20, n)
    with Judge("simulated/judge?slot=3", method="average") as judge:
        heard = us.audit(judge, items, methods="direct", resamples=100)
        shown = [judge(item.prompt, item.candidates) for item in items]
    assert heard["direct"].consistency.value == 1.0
    assert [row.choice for row in heard.decisions if row.order == tuple(range(n))] == shown


def test_call_with_one_answer_names_its_item() -> None:
    with Judge("simulated/judge") as judge, pytest.raises(ItemError, match="candidates"):
        judge("Q", ["one"])


# --- faces -------------------------------------------------------------------------------------


def test_compare_and_answer_return_verdicts() -> None:
    with Judge("simulated/judge", method="average") as judge:
        verdict = judge.compare("Which is better?", "one", "two", reference="three")
        assert verdict.choice in (0, 1)
        assert verdict.n_calls == 2
        assert verdict.confidence is not None
        assert judge.answer("Which letter?", ["a", "b", "c"]).n_calls == 3
        assert judge.model.startswith("simulated/judge?")


SCALE = {1: "poor", 2: "fair", 3: "good", 4: "very good", 5: "excellent"}


def test_rank_gives_the_order_of_the_mean_scores() -> None:
    with Judge("simulated/judge?slot=0&label=0&noise=0&content=2") as judge:
        verdict = judge.rank("Who wrote Emma?", ["one", "two", "three"], reference="four")
        direct = Judge("simulated/judge?slot=0&label=0&noise=0&content=2", method="direct")
        assert direct.rank("Who wrote Emma?", ["one", "two", "three"]).ranking is not None
        direct.close()
    assert verdict.n_calls == 3  # each answer once in every place
    assert verdict.scores is not None
    assert verdict.ranking is not None
    order = [candidate for place in verdict.ranking for candidate in place]
    assert order == sorted(range(3), key=lambda c: -verdict.scores[c])
    assert verdict.ranking[0] == (verdict.choice,)


def test_places_of_a_ranking_are_shared_by_equal_scores() -> None:
    def ranked(*scores: float, tie: tuple[int, ...] | None = None) -> object:
        return Verdict(item_id="q", choice=None, method="vote", scores=scores, tie=tie).ranking

    assert ranked(10.0, 30.0, 20.0) == ((1,), (2,), (0,))
    assert ranked(0.1 + 0.2, 0.3, 0.5) == ((2,), (0, 1))  # equal but for rounding
    assert ranked(0.0, 0.0, 0.0, tie=(0, 1, 2)) == ((0, 1, 2),)
    assert ranked(0.25, 0.0, 0.25, tie=(0, 2)) == ((0, 2), (1,))
    assert Verdict(item_id="q", choice=0, method="vote").ranking is None


def test_score_gives_the_value_in_any_order_of_the_scale() -> None:
    judge = Judge("simulated/judge?slot=0&label=0&noise=0&content=3", method="vote")
    with judge:
        rising = judge.score("Explain rain.", "It falls.", SCALE)
        falling = judge.score("Explain rain.", "It falls.", dict(reversed(SCALE.items())))
    assert rising.score == falling.score
    assert isinstance(rising.choice, int)
    assert isinstance(falling.choice, int)
    assert list(SCALE)[rising.choice] == rising.score
    assert falling.choice == 4 - rising.choice
    assert rising.n_calls == 5
    assert rising.sd == 0.0  # without bias every order names the same level


def test_the_mean_score_names_its_need_for_probabilities() -> None:
    with Judge("simulated/judge?slot=0&label=0&noise=0") as judge:  # the expected value
        verdict = judge.score("Explain rain.", "It falls.", SCALE)
        assert verdict.scores == pytest.approx(verdict.scores)
        assert verdict.score == pytest.approx(
            sum(p * value for p, value in zip(verdict.scores or (), SCALE, strict=True))
        )
    without = "simulated/judge?logprobs=0"
    with Judge(without) as judge:
        assert judge.rank("q", ["a", "b", "c"]).choice is not None  # scores need none
        with pytest.raises(UsageError, match=r"does not give\. Use ") as refusal:
            judge.score("Explain rain.", "It falls.", SCALE)
    remedies = str(refusal.value).partition("Use ")[2].rstrip(".").split(" or ")
    for remedy in remedies:
        with Judge(without, method=remedy) as judge:
            assert judge.score("Explain rain.", "It falls.", SCALE).score is not None


def test_equal_questions_get_equal_verdicts_from_every_face() -> None:
    async def asynchronous() -> list[Verdict]:
        judge = Judge("simulated/judge", method="vote")
        verdicts = await asyncio.gather(*(judge.acompare("q", "a", "b") for _ in range(3)))
        await judge.aclose()
        return list(verdicts)

    async def notebook() -> Verdict:  # the synchronous face inside a running loop
        with Judge("simulated/judge", method="vote") as judge:
            return judge.compare("q", "a", "b")

    with Judge("simulated/judge", method="vote") as judge:
        first = judge.compare("q", "a", "b")
    assert asyncio.run(asynchronous()) == [first] * 3
    assert asyncio.run(notebook()) == first
    with Judge("simulated/judge", method="vote") as judge:
        assert judge.compare("q", "b", "a").item_id == first.item_id


@pytest.mark.parametrize("method", ["average", "additive:orders=swap"])
def test_an_exact_tie_goes_to_the_same_answer_in_either_order(method: str) -> None:
    undecided = "simulated/judge?content=0&slot=0&label=0&noise=0"
    chosen = parse_method(method)
    if not is_fitted(chosen):
        chosen = replace(chosen, effects=(Effects(2, (0.0, 0.0), (0.0, 0.0), True, (), 20),))
    with Judge(undecided, method=chosen) as judge:
        for number in range(20):
            one = judge.compare(f"q{number}", "a", "b")
            other = judge.compare(f"q{number}", "b", "a")
            assert one.scores == other.scores == pytest.approx((0.5, 0.5))
            assert one.choice == 1 - other.choice  # type: ignore[operator]


def test_a_single_question_uses_the_prior_of_its_group() -> None:
    method = replace(
        parse_method("pride:prior=group"),
        priors=(
            LabelPrior(2, (0, 1), (0.5, 0.5), 40),
            LabelPrior(2, (0, 1), (0.999, 0.001), 20, "maths"),
        ),
    )
    with Judge("simulated/judge?content=0&slot=1&label=1&noise=0", method=method) as judge:
        assert judge.compare("q", "a", "b").choice == 0
        assert judge.compare("q", "a", "b", group="maths").choice == 1
        assert judge.answer("q", ["a", "b"]).choice == 0
        assert judge.answer("q", ["a", "b"], group="maths").choice == 1


def test_a_file_refuses_other_numbers_of_candidates(pairs: ItemSet, tmp_path: Path) -> None:
    for method in ("pride", "additive", "calibraeval", "contextual", "batch"):
        file = fitted(pairs, tmp_path / f"{method}.json", method=method)
        with Judge(MODEL, method=file, calls=tmp_path / method) as judge:
            for n in (3, 4, 5):
                with pytest.raises(
                    UsageError,
                    match=rf"simulated-4-00000: {method}.* fitted for 2 candidates, and .* has {n}",
                ):
                    list(judge.verdicts(simulated_items(2, n, seed=4)))
        with CallStore.open(tmp_path / method) as store:
            assert len(store) == 0


def test_a_malformed_question_is_an_error() -> None:
    with Judge("simulated/judge") as judge:
        with pytest.raises(ItemError, match="at least 2, got 1"):
            judge.answer("Which?", ["only"])
        with pytest.raises(ItemError, match="candidates: needs at least 2, got 1"):
            judge.rank("Which?", ["only"])
        for levels, reason in (
            ({1: "poor"}, "levels: a scale needs at least 2, got 1"),
            ({"1": "poor", "2": "good"}, "levels: '1' is not a number: give {value: description}"),
            ({1: "poor", float("nan"): "good"}, "levels: nan is not a number"),
            ({1: "poor", 2: " "}, "levels: 2 has no description"),
        ):
            with pytest.raises(ItemError) as refusal:
                judge.score("Explain rain.", "It falls.", levels)  # type: ignore[arg-type]
            assert reason in str(refusal.value)
        with pytest.raises(UsageError, match=r"score\(\): levels \['poor', 'good'\]: expected Map"):
            judge.score("Explain rain.", "It falls.", ["poor", "good"])  # type: ignore[arg-type]
        assert judge.counts.made == 0


def test_a_wrong_argument_of_a_question_is_named() -> None:
    with Judge("simulated/judge") as judge:
        with pytest.raises(
            UsageError, match=r"answer\(\): options 'abc': expected Sequence\[str\]"
        ):
            judge.answer("Which?", "abc")
        with pytest.raises(UsageError, match=r"compare\(\): prompt 1: expected Text"):
            judge.compare(1, "a", "b")  # type: ignore[arg-type]
        with pytest.raises(ItemError, match="candidates: None is neither text nor a tuple of Mess"):
            judge.rank("Which?", ["a", None])  # type: ignore[list-item]
        with pytest.raises(UsageError, match=r"compare\(\): missing .*'second'"):
            judge.compare("Which?", "a")  # type: ignore[call-arg]


def test_recorded_calls_are_used_and_kept(pairs: ItemSet, tmp_path: Path) -> None:
    with Judge(MODEL, method="vote", calls=tmp_path) as judge:
        first = judged(judge, pairs)
    with CallStore.open(tmp_path) as store:
        assert len(store) == 2 * len(pairs)
    with Judge(Broken(MODEL), method="vote", calls=tmp_path) as judge:  # asks nobody
        assert judged(judge, pairs) == first


@needs.posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_judge_made_before_fork_raises_instead_of_waiting() -> None:
    with Judge("simulated/judge") as judge:
        before = judge.compare("prompt", "first", "second")
        child = os.fork()
        if not child:
            signal.alarm(30)
            try:
                judge.compare("prompt", "first", "second")
            except UsageError as error:
                os._exit(0 if "before a fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert judge.compare("prompt", "first", "second") == before


def test_closed_judge_raises() -> None:
    judge = Judge("simulated/judge")
    judge.compare("q", "a", "b")
    judge.close()
    with pytest.raises(UsageError, match="this judge is closed"):
        judge.compare("q", "a", "b")
    judge.close()


# --- what cannot be judged ---------------------------------------------------------------------


def test_a_method_must_exist_be_fitted_and_fit_the_model(pairs: ItemSet) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'pride'"):
        Judge(MODEL, method="prid")
    with pytest.raises(UsageError, match="unswayed calibrate pride"):
        Judge(MODEL, method="pride")
    with pytest.raises(UsageError, match=r"does not\s+give. Use vote"):
        Judge("simulated/judge?logprobs=0", method="repeat-mean")
    with (
        Judge("simulated/judge?logprobs=0", method="average") as judge,
        pytest.raises(UsageError, match=r"does not\s+give. Use vote"),
    ):
        judge.compare("q", "a", "b")
    assert judge.counts.made == 0
    with pytest.raises(UsageError, match="nothing can drift"):
        Judge(MODEL, method="vote", shadow=0.1)
    with pytest.raises(UsageError, match="from 0 to 1"):
        Judge(MODEL, method="vote", shadow=2)


def test_items_the_method_is_not_for_are_refused_before_any_call(tmp_path: Path) -> None:
    three = simulated_items(1, 3, seed=1)[0]
    with (
        Judge(MODEL, method="vote:orders=swap", calls=tmp_path) as judge,
        pytest.raises(UsageError, match="'swap' needs 2 candidates, got 3"),
    ):
        list(judge.verdicts([three]))
    listwise = msgspec.structs.replace(simulated_items(1, 4, seed=1)[0], task=Task.LISTWISE)
    prior = LabelPrior(4, (0, 1, 2, 3), (0.4, 0.2, 0.2, 0.2), 40)
    pride = replace(parse_method("pride"), priors=(prior,))
    with (
        Judge(MODEL, method=pride, calls=tmp_path) as judge,
        pytest.raises(
            UsageError, match=r"needs label probabilities, and these answers have none\. Use aver"
        ),
    ):
        list(judge.verdicts([listwise]))
    reasoning = PromptSettings(prompt="reasoning")
    with (
        Judge(MODEL, method="average", prompt=reasoning) as judge,
        pytest.raises(UsageError, match="needs label probabilities"),
    ):
        judge.compare("q", "a", "b")
    with CallStore.open(tmp_path) as store:
        assert len(store) == 0


def test_a_file_for_another_model_prompt_or_label_set_is_refused(
    pairs: ItemSet, tmp_path: Path
) -> None:
    file = fitted(pairs, tmp_path / "pride.json")
    with pytest.raises(MethodError, match="run `unswayed calibrate`"):
        Judge("simulated/judge?slot=3", method=file)
    with pytest.raises(MethodError, match="labels A B, not for X Y"):
        Judge(MODEL, method=file, prompt=PromptSettings(label_set=("X", "Y")))
    with pytest.raises(MethodError, match="another prompt"):
        Judge(MODEL, method=file, prompt=PromptSettings(prompt="modified-direct"))


def test_fixed_items_get_the_verdict_of_the_single_call(pairs: ItemSet) -> None:
    fixed = [msgspec.structs.replace(item, permutable=False) for item in pairs]
    with Judge(MODEL, method="direct") as judge:
        single = [verdict.choice for verdict in judged(judge, fixed)]
    for method in ("vote", "average", "sequential"):
        with Judge(MODEL, method=method) as judge:
            verdicts = judged(judge, fixed)
        assert [verdict.choice for verdict in verdicts] == single
        assert {(verdict.method, verdict.n_calls) for verdict in verdicts} == {(method, 1)}


# --- failures ----------------------------------------------------------------------------------


class Broken(SimulatedBackend):
    """Fails every call about the named items; fatally on demand."""

    def __init__(self, model: str, broken: Iterable[str] = (), *, fatal: bool = False) -> None:
        self.broken, self.fatal = set(broken), fatal
        opened = open_backend(model)
        assert isinstance(opened, SimulatedBackend)
        super().__init__(opened.judge)

    async def answer(
        self, queries: Iterable[Query]
    ) -> AsyncIterator[tuple[Query, Response | Failure]]:
        for query in queries:
            if self.broken and query.item.id not in self.broken:
                yield query, self.respond(query)
                continue
            yield (
                query,
                Failure(
                    error="BackendError", message=f"{query.item.id}: no answer", fatal=self.fatal
                ),
            )


def test_a_failed_call_has_a_reason_and_no_verdict(pairs: ItemSet) -> None:
    bad = pairs[3].id
    with Judge(Broken(MODEL, [bad]), method="vote") as judge:
        outcomes = list(judge.verdicts(pairs))
    failures = [outcome for outcome in outcomes if isinstance(outcome, JudgeFailure)]
    assert failures == [JudgeFailure(bad, 2, "no answer")]
    assert str(failures[0]) == f"{bad}: no verdict, 2 calls failed: no answer"
    assert outcomes.index(failures[0]) == 3  # in its place


async def collected(judge: Judge, items: Iterable[Item]) -> list[Judged]:
    async with judge:
        return [own async for own in judge.ajudged(items)]


def test_ajudged_gives_decisions_behind_verdicts(pairs: ItemSet) -> None:
    many = asyncio.run(collected(Judge(MODEL, method="vote"), pairs))
    with Judge(MODEL, method="vote") as judge:
        assert [own.outcome for own in many] == list(judge.verdicts(pairs))
    vote = parse_method("vote")
    for item, own in zip(pairs, many, strict=True):
        assert own.failure is None
        assert own.verdict == vote.decide(item, own.decisions)
        assert {decision.order for decision in own.decisions} == {(0, 1), (1, 0)}


def test_ajudged_gives_failure_with_answered_calls(pairs: ItemSet) -> None:
    shown = [item.candidates for item in pairs]

    def fails_in_given_order(_: str, answers: tuple[str, ...]) -> int:
        if tuple(answers) == shown[3]:
            raise TimeoutError("too slow")
        return 0

    many = asyncio.run(collected(Judge(fails_in_given_order, method="vote"), pairs))
    assert [own.verdict is None for own in many] == [place == 3 for place in range(len(pairs))]
    failure = many[3].failure
    assert failure is not None
    assert (failure.item_id, failure.missing) == (pairs[3].id, 1)
    assert [decision.order for decision in many[3].decisions] == [(1, 0)]


def test_a_fatal_failure_is_marked(pairs: ItemSet) -> None:
    with Judge(Broken(MODEL, fatal=True), method="direct") as judge:
        outcome = next(iter(judge.verdicts(pairs)))
    assert isinstance(outcome, JudgeFailure)
    assert outcome.fatal


def test_the_single_faces_raise_on_failure() -> None:
    with Judge(Broken(MODEL), method="vote") as judge:
        with pytest.raises(BackendError, match="2 calls failed: no answer"):
            judge.compare("q", "a", "b")
        with pytest.raises(BackendError, match="3 calls failed: no answer"):
            judge.answer("q", ["a", "b", "c"])


# --- drift -------------------------------------------------------------------------------------


class Changed(SimulatedBackend):
    """Another judge under the name of the one that was calibrated."""

    def __init__(self, name: str, really: str) -> None:
        opened = open_backend(really)
        assert isinstance(opened, SimulatedBackend)
        super().__init__(opened.judge)
        self.model = open_backend(name).model


def test_a_changed_judge_is_reported_and_the_same_one_is_not(
    pairs: ItemSet, tmp_path: Path
) -> None:
    model = "simulated/judge?slot=0.6&noise=0.2"
    file = fitted(pairs, tmp_path / "pride.json", model=model)
    new = simulated_items(200, 2, seed=77)
    with Judge(model, method=file, shadow=0.5) as judge:
        judged(judge, new)
        (said,) = judge.drift_report()
    assert said.startswith("no drift found: 92")
    assert said.endswith("questions asked again, 2 numbers compared in one test at the 5% level.")
    for told in ("asked again, 2", "asked again (92 from recorded calls), 2"):
        with Judge(model, method=file, shadow=0.5, calls=tmp_path / "calls") as judge:
            judged(judge, new)
            assert told in judge.drift_report()[0]
    changed = Changed(model, "simulated/judge?slot=2&noise=0.2")
    with Judge(changed, method=file, shadow=0.5) as judge:
        judged(judge, new)
        said = judge.drift_report()
    assert "the judge has changed since it was calibrated: 92" in said[0]
    assert said[0].endswith(
        "at the 5% level, which about 5% of unchanged judges fail. Calibrate again."
    )
    assert {line.split(" moved: ")[0] for line in said[1:]} == {
        "prior of label A under A B",
        "prior of label B under A B",
    }
    assert all(float(line.rpartition("p = ")[2].rstrip(")")) < 0.05 for line in said[1:])


def test_the_shadow_asks_the_share_that_was_given(pairs: ItemSet, tmp_path: Path) -> None:
    file = fitted(pairs, tmp_path / "pride.json")
    new = simulated_items(200, 2, seed=78)
    asked = {}
    for share in (0.0, 0.25, 1.0):
        with Judge(MODEL, method=file, shadow=share, calls=tmp_path / str(share)) as judge:
            judged(judge, new)
        with CallStore.open(tmp_path / str(share)) as store:
            asked[share] = len(store)
    assert asked[0.0] == 200
    assert 225 < asked[0.25] < 275  # 50 of 200 items more, 6 sd wide
    assert asked[1.0] == 400


def test_few_shadowed_and_judged_estimation_items_are_reported(
    pairs: ItemSet, tmp_path: Path
) -> None:
    file = fitted(pairs, tmp_path / "pride.json")
    with Judge(MODEL, method=file, shadow=1) as judge:
        judged(judge, pairs.items[:5])
        overlap, few = judge.drift_report()
    assert overlap.startswith(f"5 judged items (such as {pairs[0].id}) were used to fit")
    assert few.startswith("drift not checked: 5 questions asked again, 20 needed")


def test_incomparable_drift_is_reported_after_verdicts(pairs: ItemSet, tmp_path: Path) -> None:
    file = fitted(pairs, tmp_path / "pride.json")
    mute = Changed(MODEL, "simulated/judge?unparsed=1")
    with Judge(mute, method=file, shadow=1) as judge:
        assert len(judged(judge, simulated_items(30, 2, seed=4))) == 30
        assert judge.drift_report()[0].startswith("drift not checked: pride: nothing to comp")


# --- windows and names -------------------------------------------------------------------------


def test_windows_are_bounded_lazy_and_never_hold_one_id_twice() -> None:
    a, b = simulated_items(2, 2, seed=0)
    assert [len(window) for window in windows([a, b] * 3)] == [2, 2, 2]
    assert list(windows([a, a])) == [[a], [a]]
    many = simulated_items(150, 2, seed=0)
    assert [len(window) for window in windows(many)] == [64, 64, 22]
    assert list(windows([])) == []

    def endless() -> Iterable[Item]:
        yield from many
        raise AssertionError("read too far")

    assert len(next(iter(windows(endless())))) == 64


def test_two_questions_under_one_id_do_not_mix(pairs: ItemSet) -> None:
    first, second = pairs[0], msgspec.structs.replace(pairs[1], id=pairs[0].id)
    with Judge(MODEL, method="average") as judge:
        apart = [judged(judge, [item])[0] for item in (first, second)]
        assert judged(judge, [first, second]) == apart


def test_a_name_depends_on_the_content_only() -> None:
    item = Item(id="", prompt="q", candidates=("a", "b"))
    assert named(item).id == named(item).id
    others = [
        msgspec.structs.replace(item, prompt="r"),
        msgspec.structs.replace(item, candidates=("b", "c")),
        msgspec.structs.replace(item, reference="r"),
    ]
    assert len({named(one).id for one in [item, *others]}) == 4
    turned = msgspec.structs.replace(item, candidates=("b", "a"), group="g")
    assert named(turned).id == named(item).id


def test_adaptive_methods_stop_early_in_streams(pairs: ItemSet) -> None:
    with Judge("simulated/judge?slot=0&label=0&noise=0", method="sequential") as judge:
        calls = [verdict.n_calls for verdict in judged(judge, pairs)]
    most = len(parse_method("sequential").asks(2))
    assert max(calls) <= most
    assert sum(calls) < most * len(calls)


def test_judging_emits_no_python_warning(pairs: ItemSet) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Judge(MODEL, method="average") as judge:
            judged(judge, pairs)


# --- the loop behind the synchronous faces -----------------------------------------------------


def test_work_runs_with_and_without_a_running_loop() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    async def inside() -> int:
        return run_sync(work())

    assert run_sync(work()) == 7
    assert asyncio.run(inside()) == 7


def test_an_interrupt_lets_cancelled_work_tidy_up() -> None:
    loop, tidied, waiting = LoopThread(), [], threading.get_ident()

    async def work() -> None:
        signal.pthread_kill(waiting, signal.SIGINT)  # one that this thread gets does not wake it
        try:
            await asyncio.sleep(60)
            tidied.append(False)  # nobody has cancelled it
        finally:
            await asyncio.sleep(0.01)
            tidied.append(True)

    with pytest.raises(KeyboardInterrupt):
        loop.run(work())
    loop.close()
    assert tidied == [True]


def test_what_work_raises_in_the_loop_is_raised_by_the_caller() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KeyError("of the work")

    loop = LoopThread()
    with pytest.raises(KeyError, match="of the work"):
        loop.run(work())
    loop.close()


def test_a_loop_that_is_closed_leaves_nobody_waiting() -> None:
    loop, ended = LoopThread(), []
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("tidied")

    def ask() -> None:
        try:
            loop.run(work())
        except BackendError as error:
            ended.append(str(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert begun.wait(30)
    loop.close()
    thread.join(30)
    ask()  # by a thread that was too late
    assert ended == ["tidied", *2 * ["the judge was closed while it was asked."]]


def test_settings_of_one_judge_are_values() -> None:
    prompts = PromptSettings(label_set=("X", "Y"))
    with Judge("simulated/judge", method="vote", prompt=prompts) as judge:
        assert judge.prompts == replace(prompts, prompt="direct")
