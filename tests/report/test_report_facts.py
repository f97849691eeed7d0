"""Settings: no secret reaches the page, and what is left out is said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import unswayed as us
from judges import plain_run, with_metrics
from page_text import printed
from unswayed.auditing.records import PromptRecord, RunRecord
from unswayed.base.redaction import HIDDEN
from unswayed.report.facts import command_text, date_text, facts
from unswayed.report.findings import Finding
from unswayed.report.page import render_report
from unswayed.report.words import plain, say
from unswayed.tiny.items import judge_items

SECRET = "sk-proj-abcdefgh12345678"


@pytest.mark.parametrize(
    "command",
    [
        f"unswayed audit pairs.jsonl --api-key {SECRET}",
        f"unswayed audit pairs.jsonl --api-key={SECRET}",
        f"OPENAI_API_KEY={SECRET} unswayed audit pairs.jsonl",
        f"unswayed audit pairs.jsonl --header 'Authorization: Bearer {SECRET}'",
        f"unswayed audit --model vllm/x --base-url https://me:{SECRET}@example.org/v1",
        f"unswayed audit --base-url 'https://example.org/v1?api_key={SECRET}&v=2'",
        f"unswayed audit --note {SECRET}",
        f"unswayed audit --token {SECRET}",
        f"unswayed audit 'unclosed {SECRET}",
    ],
)
def test_commands_are_shown_without_secrets(command: str) -> None:
    shown = command_text(command)
    assert "unswayed" in shown
    assert SECRET not in shown


def test_harmless_text_stays() -> None:
    command = "unswayed audit a.jsonl --model openai/m --max-tokens 16 --methods pride:prior=group"
    shown = command_text(command).replace(" \\\n    ", " ")
    assert shown == command
    assert HIDDEN not in shown


def test_long_commands_break_before_options() -> None:
    options = " ".join(f"--option-{i} v" for i in range(8))
    lines = command_text(f"unswayed audit pairs.jsonl {options}").split(" \\\n")
    assert len(lines) > 1
    assert all(line.startswith("    --option-") for line in lines[1:])
    assert all(len(line) <= 80 for line in lines)


def test_arguments_with_spaces_are_quoted() -> None:
    assert command_text("unswayed audit 'my pairs.jsonl'").endswith("'my pairs.jsonl'")


def test_call_of_python_is_shown_as_it_is(tmp_path: Path) -> None:
    judge = us.FunctionJudge(lambda prompt, answers: 0, name="first-1")
    out = tmp_path / "run"
    us.audit(judge, judge_items(20, 1), methods=["direct"], out=out, resamples=100)
    told = json.loads((out / "run.json").read_text())["command"]
    assert told == f"us.audit(..., ..., out={str(out)!r}, methods=['direct'], resamples=100)"
    assert command_text(told) == told
    page = (out / "report.html").read_text()
    assert "The function sees no labels" in page or "No position bias" in page
    assert "protocol all" not in page
    assert "first, A" not in page
    assert "carries the label" not in page


@pytest.mark.parametrize(
    ("created", "shown"),
    [
        ("2026-11-20T09:30:00Z", "20 November 2026"),
        ("2026-01-02", "2 January 2026"),
        ("soon", ""),
        ("", ""),
    ],
)
def test_dates_are_written_out(created: str, shown: str) -> None:
    assert date_text(created) == shown


def shown_of(finding: Finding) -> dict[str, str]:
    return {fact.term: fact.text for fact in facts(finding)}


def test_facts_list_calls_prices_and_versions() -> None:
    calls = {
        "planned": 2000, "made": 1900, "cached": 100, "failed": 0, "unparsed": 7,
        "input_tokens": 5000, "output_tokens": 2000, "cost_usd": 1.5, "label_mass": 0.998,
    }  # fmt: skip
    shown = shown_of(Finding(with_metrics(plain_run(), calls=calls)))
    assert shown["Calls"] == "2,000 planned, 1,900 made, 100 reused, 0 failed"
    assert shown["Unparsed"] == "7 of 2,000, mean label mass 0.998"
    assert shown["Tokens and cost"] == "5,000 in, 2,000 out, $1.50"
    assert shown["Version"] == "unswayed 0.1.0, python 3.11.7, numpy 2.2.0"


def with_calls(**calls: object) -> Finding:
    asked = {"planned": 2000, "made": 2000, "replies": 2000, **calls}
    return Finding(with_metrics(plain_run(), calls=asked))


def replies(finding: Finding, *, brief: bool = False) -> list[str]:
    return [plain(told) for told in say("facts.replies", finding, brief)]


def test_broken_endings_are_reported_with_words() -> None:
    finding = with_calls(unparsed=7, refused=1, broken={"OTHER": 2, "<b>abort\n": 3})
    shown = shown_of(finding)
    assert shown["Unparsed"] == ("7 of 2,000, 1 refused, 2 ended with OTHER, 3 ended with <b>abort")
    assert "<b>abort" not in render_report([finding.run])


@pytest.mark.parametrize(
    ("unparsed", "headline"),
    [
        (60, "None of 60 answers could be read, so there is nothing to describe."),
        (
            15,
            "15 of 60 answers could not be read. They count as wrong and as inconsistent; shares by position describe "
            "only the other 45.",
        ),
    ],
)
def test_second_calls_are_not_counted_as_replies(unparsed: int, headline: str) -> None:
    finding = with_calls(planned=120, made=120, replies=60, unparsed=unparsed, reasked=60)
    assert list(map(plain, say("lead.headline", finding))) == [headline]
    shown = shown_of(finding)
    assert shown["Unparsed"] == f"{unparsed} of 60"
    assert shown["Calls"] == "120 planned, 120 made, 0 reused, 0 failed"


def unread(finding: Finding) -> str:
    return plain(say("bias.unread", finding)[1])


def test_advice_on_unread_answers_follows_their_finish_reasons() -> None:
    label_alone = "Look at them first. A prompt that asks for the label alone"
    assert label_alone in unread(with_calls(unparsed=900))
    all_ended = unread(with_calls(unparsed=900, refused=100, broken={"tool_calls": 800}))
    assert all_ended == (
        "45.0% of the answers could not be read. 900 of these 900 are unparsed because of the "
        "finish reason, whatever the text. Check tools and filters at the server."
    )
    some = unread(with_calls(unparsed=900, broken={"tool_calls": 800}))
    assert "800 of these 900 are unparsed because of the finish reason" in some
    assert label_alone.replace("them", "the others") in some


def test_unread_note_counts_replies() -> None:
    finding = with_calls(planned=80, made=80, replies=60, unparsed=6)
    told = list(map(plain, say("facts.caveats", finding, True)))
    assert "6 of 60 answers could not be read. They count as wrong and as inconsistent." in told


def test_reasked_replies_are_reported_with_outcome() -> None:
    some = with_calls(reasked=82, reasked_read=76)
    assert replies(some) == [
        "4.1% of replies led to a second call, and 93% of these calls could be read."
    ]
    assert replies(some, brief=True) == []
    read = "5.5% of replies led to a second call, and 100% of these calls could be read."
    assert replies(with_calls(reasked=110, reasked_read=110)) == [read]
    many = with_calls(reasked=110, reasked_read=55)
    assert replies(many) == replies(many, brief=True)
    half = "5.5% of replies led to a second call, and 50% of these calls could be read. "
    advice = (
        "Require a stricter form of reply (--prompt structured), or word the prompt more clearly."
    )
    assert replies(many) == [half + advice]
    run = replace(many.run, run=RunRecord(prompt=PromptRecord(name="structured-reasoning")))
    assert replies(Finding(run)) == [f"{half}Word the prompt more clearly."]


def test_figures_without_reasked_items_are_reported() -> None:
    row = {"accuracy": {"value": 0.7, "n": 900}, "consistency": {"value": 0.82, "n": 900}}
    calls = {"planned": 2000, "made": 2000, "replies": 2000, "reasked": 82, "reasked_read": 76}
    run = with_metrics(plain_run(), calls=calls, without_reasked={"direct": row})
    assert replies(Finding(run))[1] == (
        "Without these replies, direct has an accuracy of 70.0% on 900 items and a consistency of 82.0% on 900 items."
    )
    assert len(replies(Finding(run), brief=True)) == 0


@pytest.mark.parametrize("brief", [False, True])
def test_disagreement_is_reported_above_one_in_thousand(brief: bool) -> None:
    assert replies(with_calls(disagree=2, disagree_positions=[1, 1]), brief=brief) == []
    assert replies(with_calls(disagree=12, disagree_positions=[8, 4]), brief=brief) == [
        "In 0.6% of replies, the text states a label other than the likeliest. The likeliest "
        "label decides (first position: 8 verdicts, second: 4)."
    ]


def test_changes_by_newer_rules_are_reported() -> None:
    reread = {"now_unread": 28, "now_read": 3, "to_another": 0, "of": 4800}
    assert replies(with_calls(reread=reread)) == [
        "Newer reading rules changed 31 of 4,800 verdicts (28 now unparsed, 3 now read, "
        "0 to another label)."
    ]


def test_page_and_terminal_report_replies() -> None:
    run = with_calls(disagree=12, disagree_positions=[8, 4], reasked=82, reasked_read=76).run
    assert "states a label other than the likeliest" in render_report([run])
    assert "led to a second call" in render_report([run])
    shown = printed(run, 200)
    assert "states a label other than the likeliest" in shown
    assert "led to a second call" not in shown


def test_facts_hide_secrets_too() -> None:
    run = replace(
        plain_run(),
        run=RunRecord(prompt=PromptRecord(name=f"direct, bearer {SECRET}"), model="openai/m"),
    )
    assert all(SECRET not in fact.text for fact in facts(Finding(run)))


def test_unknown_settings_leave_no_empty_lines() -> None:
    assert all(fact.text for fact in facts(Finding(replace(plain_run(), run=RunRecord()))))


def test_left_out_items_are_caveats() -> None:
    data = {"name": "d", "n_items": 1000, "not_permutable": 12, "gold_ties": 3, "no_gold": 1}
    told = say("facts.caveats", Finding(with_metrics(plain_run(), data=data)), True)
    assert [words.split()[0] for words in told][:3] == ["12", "3", "1"]
    run = replace(
        with_metrics(plain_run(), data=data), run=RunRecord(settings={"gold_ties": "class"})
    )
    assert "tie as gold" not in " ".join(map(str, say("facts.caveats", Finding(run), True)))


def test_warnings_of_the_run_are_caveats() -> None:
    run = replace(plain_run(), run=RunRecord(warnings=("the prompt was cut.", "prices are old.")))
    told = say("facts.caveats", Finding(run), True)
    assert list(map(plain, told[:2])) == ["the prompt was cut.", "prices are old."]
    assert '<li dir="auto">prices are old.</li>' in render_report([run])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("tiny/judge@sha256:a0cea6092847bb1d", "tiny/judge"),
        ("hf/org/model@0123456789abcdef0123", "hf/org/model"),
        ("openai/gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("hf/org/model@main", "hf/org/model@main"),
    ],
)
def test_long_revisions_are_left_to_the_facts(model: str, name: str) -> None:
    assert Finding(plain_run(model=model)).model == name


def test_recorded_decisions_have_no_price() -> None:
    run = replace(plain_run(), run=RunRecord(recorded=True))
    shown = shown_of(Finding(run))
    assert shown["Calls"] == "2,000 recorded decisions, no call made"
    assert "Tokens and cost" not in shown
