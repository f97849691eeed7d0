"""Nothing secret is shown: in texts, in commands, in any disguise; what is no secret stays."""

import doctest
import re
from collections.abc import Sequence

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends.addresses import Secret
from unswayed.base import redaction
from unswayed.base.redaction import HIDDEN, without_keys, without_secrets
from unswayed.cli import COMMANDS, command_of

KEYS = (
    "sk-abcdefgh12345678",
    "sk-proj-abcDEF_123-456789",
    "sk-ant-api03-abcdefghijkl",
    "sk-abcd****************efgh",
    "sk_live_abcdefgh1234",
    "pk-abcdefgh12345678",
    "rk_live_abcdefgh1234",
    "csk-abcdefgh12345678",
    "gsk_abcdefgh12345678",
    "xai-abcdefgh12345678",
    "hf_abcdefghABCDEFGH12",
    "ghp_abcdefghABCDEFGH12",
    "gho_abcdefghABCDEFGH12",
    "ghu_abcdefghABCDEFGH12",
    "ghs_abcdefghABCDEFGH12",
    "github_pat_11ABCDEFG_abcdefgh",
    "glpat-abcdefghABCDEFGH",
    "nvapi-abcdefgh12345678",
    "xoxb-123456789012-abcdefgh",
    "xoxp-123456789012-abcdefgh",
    "AIza-abcdefgh12345678",
    "AIzaSyD0abcdefghijklmnopqrstuvw",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
)
"""Shapes that tell a key wherever it stands."""

PLAIN = "Zr4tq9Wm2x"
"""A secret without a shape: only its place tells it."""

PLACES = (
    "Authorization: Bearer {}",
    "authorization: bearer {}",
    "Authorization: Basic {}",
    "Authorization=Token {}",
    "Proxy-Authorization: Basic {}",
    '{{"Authorization": "Bearer {}"}}',
    "Bearer {}",
    "xBearer\t{}",
    "x-api-key: {}",
    "X-API-KEY={}",
    '{{"api_key": "{}"}}',
    "{{'apikey': '{}'}}",
    "access_token={}",
    "Cookie: session={}; other=1",
    "Set-Cookie: a=b; session={}",
    "OPENAI_API_KEY={}",
    "HF_TOKEN={} python x.py",
    "DB_PASSWORD={}",
    "PASSWORD={}",
    "https://me:{}@example.org/v1",
    "https://{}@example.org/v1",
    "ftp://me:{}@example.org",
    "https://a@b:{}@example.org",
    "https://example.org/v1?api-key={}",
    "https://example.org/v1?a=1&x_token_2={}&b=2",
    "https://example.org/v1?x-SIG-y={}#end",
    "https://example.org/v1?client_secret={}",
    "https://example.org/v1?a=1?key={}",
    "https://example.org/v1?a?key={}",
    "/v1&key?b={}",
)
"""Places that tell a secret whatever it looks like."""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("place", ["{}", "no such key: {}.", "'{}'", '["{}"]', "a={}", "({})"])
def test_a_key_is_told_by_its_shape_wherever_it_stands(key: str, place: str) -> None:
    shown = without_keys(place.format(key))
    assert key.rstrip(".") not in shown
    assert key[-8:] not in shown
    assert HIDDEN in shown
    assert key[-8:] not in " ".join(without_secrets(["unswayed", place.format(key)]))


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_told_by_its_place_whatever_it_looks_like(place: str) -> None:
    for secret in (PLAIN, *KEYS):
        text = place.format(secret)
        assert secret not in without_keys(text)
        assert secret not in without_keys(f"HTTP 400: bad request ({text}) try again")
        assert secret not in Secret().scrub(text)
        assert secret not in " ".join(without_secrets(["unswayed", "audit", text]))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-key", PLAIN],
        [f"--api-key={PLAIN}"],
        ["--token", PLAIN],
        ["--password", PLAIN],
        ["-passwd", PLAIN],
        ["--client-secret", PLAIN],
        ["--credentials", PLAIN],
        ["--header", f"X-Anything: {PLAIN}"],
        ["--authorisation", PLAIN],
        [f"my.token:{PLAIN}"],
        [f"KEY={PLAIN}"],
        [f"key={PLAIN}\n{PLAIN}"],
        [f"X-Auth-Header: {PLAIN}"],
        ["--api-key", f"--{PLAIN}"],
        ["--base-url", f"https://example.org/v1?anything={PLAIN}"],
        ["--base-url", f"http://{PLAIN}:{PLAIN}@example.org/v1#{PLAIN}"],
        [f"--base-url=https://example.org/v1?{PLAIN}"],
    ],
)
def test_what_stands_behind_the_name_of_a_secret_is_left_out(arguments: Sequence[str]) -> None:
    shown = without_secrets(["unswayed", "audit", *arguments, "--seed", "7"])
    assert PLAIN not in " ".join(shown)
    assert shown[:2] == ["unswayed", "audit"]
    assert shown[-2:] == ["--seed", "7"]


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 400 from https://api.openai.com/v1: Unsupported parameter: 'max_tokens' is not "
        "supported with this model. Use 'max_completion_tokens' instead. (unsupported_parameter)",
        "max_tokens: 5 is not allowed, top_logprobs=20 <= 5",
        "OPENAI_API_KEY is not set. Set it (empty if the server wants none).",
        "No key was sent: the key in OPENAI_API_KEY goes only to its own provider's address.",
        "see https://example.org/v1/models?limit=5&order=asc for what there is",
        "q7: the prompt and its answer take 5000 tokens",
        "simulated/judge?slot=0.6&label=0.4&noise=0.4",
        "someone@example.org wrote a monkey=banana keyboard",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert without_keys(text) == text
    assert Secret("Zr4tq9Wm2x").scrub(text) == text


def test_no_option_of_the_command_line_is_taken_for_a_secret() -> None:
    app = typer.Typer()
    for name in COMMANDS:
        app.command(name)(command_of(name))
    options = {
        name
        for command in typer.main.get_group(app).commands.values()
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("-")
    }
    assert len(options) > 20
    for option in sorted(options):
        assert without_secrets([option, "value"]) == [option, "value"]
        assert without_secrets([f"{option}=value"]) == [f"{option}=value"]


PIECES = st.lists(
    st.sampled_from(
        [
            *KEYS[:4],
            *(place.format(PLAIN) for place in PLACES),
            " ", "?", "&", "=", "://", "@", ":", "key", "Bearer ", "a", "\n", '"', HIDDEN,
        ]
    ),
    max_size=8,
)  # fmt: skip


@given(PIECES)
def test_redacting_twice_changes_nothing(pieces: list[str]) -> None:
    text = without_keys("".join(pieces))
    assert without_keys(text) == text


OLD_TABLES = (
    re.compile(r"\b(sk|pk|xai|gsk|hf|AIza)[-_][A-Za-z0-9_\-*.]{8,}|Bearer\s+\S+"),
    re.compile(r"\b(?:sk|pk|rk|ghp|gho|hf|xox[abp])[-_][A-Za-z0-9_-]{8,}"),
    re.compile(r"(?i)\bbearer\s+(?!\[key hidden\])\S+"),
    re.compile(r"(?<=://)[^/@\s]+@"),
    re.compile(r"(?i)([?&][^=&\s]*(?:key|token|secret|sig)[^=&\s]*=)(?!\[key hidden\])[^&\s]+"),
)
"""What was hidden before there was one table."""


@given(PIECES)
def test_nothing_that_was_ever_hidden_is_shown(pieces: list[str]) -> None:
    text = without_keys("".join(pieces))
    for pattern in OLD_TABLES:
        assert not pattern.search(text), pattern.pattern


@pytest.mark.parametrize(
    "piece",
    ["?", "&", "?key", "&key", "key", "key=", "://a", "://", "a@", "A_", "KEY", "sk-", "eyJ"],
)
def test_a_long_hostile_text_is_done_with(piece: str) -> None:
    # in quadratic time this would take minutes
    assert without_keys(f"{piece * 100_000} end").endswith(" end")


def test_the_examples_of_the_module_hold() -> None:
    failed, tried = doctest.testmod(redaction)
    assert tried >= 2
    assert not failed
