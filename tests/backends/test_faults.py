"""Statuses, bodies and headers -> what happened, and whether to try again."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from chat_cases import KEY
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends.addresses import Address, Secret
from unswayed.backends.faults import (
    HttpReply,
    TimedOutError,
    UnreachableError,
    fault_of,
    lost,
    retry_after_s,
    server_words,
)
from unswayed.base.errors import ServerError

WALL = 1_700_000_000.0
ADDRESS = Address(url="https://host/v1", key=Secret(KEY), is_loopback=False, is_own=False)


@given(seconds=st.floats(min_value=0, max_value=1e9, allow_nan=False))
def test_retry_after_reads_seconds(seconds: float) -> None:
    assert retry_after_s({"retry-after": repr(seconds)}, wall=WALL) == seconds


@given(seconds=st.integers(-(10**7), 10**7))
def test_retry_after_reads_http_dates_and_past_ones_as_now(seconds: int) -> None:
    date = format_datetime(datetime.fromtimestamp(WALL + seconds, UTC), usegmt=True)
    assert retry_after_s({"retry-after": date}, wall=WALL) == pytest.approx(max(0, seconds))


@given(value=st.text(max_size=40))
def test_retry_after_takes_anything_and_is_never_negative(value: str) -> None:
    wait = retry_after_s({"retry-after": value}, wall=WALL)
    assert wait is None or 0.0 <= wait < float("inf")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tuesday, 14-Nov-23 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 99 Nov 2023 22:13:50 GMT"}, None),
        ({"retry-after": "2", "retry-after-ms": "250"}, 0.25),
    ],
)
def test_retry_after_by_hand(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, wall=WALL) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": {"message": "no", "code": "bad"}}', "no (bad)"),
        (b'{"error": {"message": "no", "code": null}}', "no"),
        (b'{"error": "no"}', "no"),
        (b'{"message": "no"}', "no"),
        (b'{"detail": "no"}', "no"),
        (b'{"type": "error", "error": {"type": "x", "message": "no"}}', "no"),
        (
            b'{"detail": [{"loc": ["body"], "msg": "no"}]}',
            '{"detail": [{"loc": ["body"], "msg": "no"}]}',
        ),
        (b"no\n\nway", "no way"),
        (b"", ""),
        (b"\xff\xfe", "��"),
    ],
)
def test_the_servers_words_are_found_in_every_form_of_error(body: bytes, expected: str) -> None:
    assert server_words(body) == expected


@given(status=st.integers(100, 599).filter(lambda status: status != 200), body=st.binary())
def test_every_status_is_a_fault_with_a_message(status: int, body: bytes) -> None:
    fault = fault_of(HttpReply(status, {}, body), ADDRESS, model="openai/m", wall=WALL)
    assert fault is not None
    assert str(status) in fault.message
    assert not (fault.again and fault.fatal)


@given(before=st.integers(0, 500), after=st.integers(0, 50))
def test_no_part_of_the_key_survives_shortening(before: int, after: int) -> None:
    body = b"x" * before + b" " + KEY.encode() + b" " + b"y" * after
    fault = fault_of(HttpReply(500, {}, body), ADDRESS, model="openai/m", wall=WALL)
    assert fault is not None
    assert "0123456789" not in fault.message
    assert KEY[:9] not in fault.message


def test_a_key_of_someone_else_is_hidden_too() -> None:
    body = b"Incorrect API key provided: sk-proj-abcdefgh12345678. See Bearer abc.def"
    address = Address(url="https://host/v1", key=Secret(), is_loopback=False, is_own=False)
    fault = fault_of(HttpReply(401, {}, body), address, model="openai/m", wall=WALL)
    assert fault is not None
    assert "abcdefgh" not in fault.message
    assert "abc.def" not in fault.message


def test_a_time_out_lowers_concurrency_and_a_lost_line_does_not() -> None:
    assert lost(TimedOutError("slow"), ADDRESS).busy
    assert not lost(ServerError("reset"), ADDRESS).busy
    assert lost(UnreachableError("refused"), ADDRESS).unreachable
