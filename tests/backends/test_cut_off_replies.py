"""Judges that explain instead of answering, behind a server with a cap on tokens: whole audits."""

import hashlib
from dataclasses import replace

import msgspec
import pytest
from chat_cases import audited
from fake_server import ASKED, FakeServer

from unswayed.auditing.settings import AuditSettings
from unswayed.backends.simulated import simulated_items
from unswayed.prompts import PromptSettings

SETTINGS = AuditSettings(resamples=200)
ITEMS = simulated_items(60, 2, seed=3)
PREAMBLE = "**Answer A:**\nClear and to the point, with a reason for each step it takes.\n\n"
HEADINGS = PREAMBLE + "**Answer B:**\nShort, but right.\n\nThe better answer is {label}."


def label_of(messages: bytes) -> str:
    """The first one two times in three, whatever stands there."""
    return "AAB"[hashlib.sha256(messages).digest()[0] % 3]


def caps_of(server: FakeServer) -> list[int]:
    return [msgspec.json.decode(body)["max_tokens"] for body in server.bodies]


async def test_a_judge_with_headings_gets_its_true_position_rate() -> None:
    server = FakeServer(say=lambda messages: HEADINGS.format(label=label_of(messages)))
    record = await audited(server, ITEMS, SETTINGS)
    said = {bytes(ASKED.decode(body).messages): "" for body in server.bodies}
    labels = [label_of(messages) for messages in said]
    assert len(labels) == 120
    assert 0.5 < labels.count("A") / 120 < 0.8
    assert sorted(caps_of(server)) == [16] * 120 + [64] * 120
    row = record.metrics["methods"]["direct"]
    assert row["position_rate"][0]["value"] == pytest.approx(labels.count("A") / 120)
    assert record.metrics["calls"]["unparsed"] == 0
    assert row["unparsed_rate"]["value"] == 0.0


async def test_headings_cut_off_are_unparsed() -> None:
    server = FakeServer(say=lambda _: PREAMBLE * 20)
    record = await audited(server, ITEMS, SETTINGS)
    assert sorted(caps_of(server)) == [16] * 120 + [64] * 120
    assert record.metrics["calls"]["unparsed"] == 120
    assert record.metrics["methods"]["direct"]["unparsed_rate"]["value"] == 1.0


@pytest.mark.parametrize("cap", [1, 16])
async def test_a_label_alone_is_asked_for_once_whatever_the_cap(cap: int) -> None:
    server = FakeServer(say=label_of)
    settings = replace(SETTINGS, prompts=PromptSettings(max_tokens=cap))
    record = await audited(server, ITEMS, settings)
    assert caps_of(server) == [cap] * 120
    assert record.metrics["calls"]["unparsed"] == 0
