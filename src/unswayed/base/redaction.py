"""Remove keys, tokens, passwords and headers from messages, records and reports.

One table for all of them. Texts (a server's words, a line of a report) lose what looks like a secret;
the arguments of a command lose also what stands behind a name such as `--api-key` or `TOKEN=`, and the
queries of addresses. What is redacted stays redacted: doing it twice changes nothing.

>>> without_keys("HTTP 401: no such key sk-abcdefgh12345678")
'HTTP 401: no such key [key hidden]'
>>> without_secrets(["--api-key", "abc", "--base-url", "https://me:abc@example.org/v1?sig=abc"])
['--api-key', '[key hidden]', '--base-url', 'https://example.org/v1']
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

HIDDEN: Final = "[key hidden]"

_VALUE: Final = rf"(?:{re.escape(HIDDEN)}|\S+)"

_TABLE: Final = (
    # user name and password of an address
    (re.compile(r"(?<=://)(?:[^/@\s]+@)+"), ""),
    # a parameter of an address; looking for its "=" first keeps the time linear
    (
        re.compile(
            r"(?<![^\s=&])((?:[^\s=&?]*\?|(?<=&))(?=[^\s=&]*=)"
            rf"[^\s=&]*(?:key|token|secret|sig)[^\s=&]*=)(?:{re.escape(HIDDEN)}|[^&\s]+)",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    # headers and fields, as `name: value`, `name=value` or in JSON; a scheme may come first
    (
        re.compile(
            r"""\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*[:=]\s*["']?)[^\s"',}][^\n"',}]*""",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
    (
        re.compile(
            r"""\b((?:x-)?(?:api|auth|access)[-_]?(?:key|token))(["']?\s*[:=]\s*["']?)"""
            rf"""(?:{re.escape(HIDDEN)}|[^\s"',}}]+)""",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
    # variables
    (re.compile(rf"\b([A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=){_VALUE}"), rf"\1{HIDDEN}"),
    (re.compile(rf"bearer\s+{_VALUE}", re.IGNORECASE), HIDDEN),
    # keys by their shape: OpenAI and those alike, Groq, xAI, Hugging Face, GitHub, GitLab, Slack, ...
    (
        re.compile(
            r"\b(?:sk|pk|rk|csk|gsk|xai|hf|gh[pousr]|github_pat|glpat|nvapi|xox[abeprs]|AIza)"
            r"[-_][A-Za-z0-9_\-*.]{8,}"
        ),
        HIDDEN,
    ),
    # ... of Google and Amazon, and JSON web tokens
    (re.compile(r"\bAIza[A-Za-z0-9_-]{20,}|\bA[KS]IA[A-Z0-9]{12,}"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+"), HIDDEN),
)

_SECRET_NAME: Final = re.compile(
    r"key|token|secret|password|passwd|credential|authori[sz]ation|header", re.IGNORECASE
)
_NOT_SECRET: Final = frozenset({"--max-tokens", "--tokens", "--keyed"})
_ASSIGNMENT: Final = re.compile(r"^(-{0,2}[A-Za-z][\w.-]*)([=:])(.+)$", re.DOTALL)
_ADDRESS: Final = re.compile(r"(https?://)(?:[^/@\s]*@)?([^?#\s]*)\S*")


def without_keys(text: str) -> str:
    """Return a text without anything that looks like a key; in time linear in its length."""
    for pattern, replacement in _TABLE:
        text = pattern.sub(replacement, text)
    return text


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command without keys, tokens, passwords, headers and queries."""
    shown: list[str] = []
    is_value = False  # of the secret option before it
    for argument in arguments:
        name = argument if (named := _ASSIGNMENT.match(argument)) is None else named[1]
        secret = _SECRET_NAME.search(name) is not None and name not in _NOT_SECRET
        if is_value:
            shown.append(HIDDEN)
        elif named and secret:
            shown.append(f"{named[1]}{named[2]}{HIDDEN}")
        elif secret and argument.startswith("-"):
            shown.append(argument)
        else:
            shown.append(without_keys(_ADDRESS.sub(r"\1\2", argument)))
        is_value = not is_value and secret and named is None and argument.startswith("-")
    return shown
