"""Every error the package raises on purpose.

UnswayedError                 exit code 2 unless it says otherwise
├── UsageError                the command or the call is wrong
│   ├── UnknownNameError      no such model, method, metric, ... (did you mean ...?)
│   ├── RegistrationError     what another package registers cannot be used
│   ├── MissingExtraError     an optional dependency is not installed
│   ├── MissingKeyError       an API key or address is not set
│   └── RunDirectoryError     the run directory is unreadable, read-only or of another run
├── ItemError                 an item or a decision is malformed
├── TemplateError             a prompt template misses a field, or labels occur in the content
├── ShapeError                an array or a permutation has the wrong shape
├── MethodError               a method cannot work on these items or decisions
│   └── NeedsLogprobs         it needs label probabilities and there are none
├── BackendError              one call failed; never a verdict
│   ├── AuthError             401, 403: stop at once
│   ├── RateLimitedError      429
│   ├── ServerError           5xx, connection refused or lost, time-out
│   └── BadResponseError      an answer that is not what the protocol promises
├── WaitingError              a batch has no results yet (exit code 4)
├── StoreError                the store cannot be read or written (disk full, damaged)
└── GateError                 a gate failed (exit code 1)
"""

from __future__ import annotations

from typing import Self


class UnswayedError(Exception):
    """Base of all errors of this package; the message says what happened and what to do."""

    exit_code: int = 2

    @classmethod
    def cannot(cls, doing: str, error: OSError, remedy: str = "Choose another --out.") -> Self:
        """Build the error of what the operating system refused, such as "write FILE"."""
        return cls(f"cannot {doing}: {error.strerror or error}. {remedy}")


class UsageError(UnswayedError):
    """The command line or the call cannot be carried out as given."""


class UnknownNameError(UsageError):
    """A name that no registry knows."""


class RegistrationError(UsageError):
    """An entry of another package cannot be loaded or has the wrong type."""


class MissingExtraError(UsageError):
    """An optional dependency is missing; the message names the install command."""


class MissingKeyError(UsageError):
    """An API key or address is not set in the environment."""


class RunDirectoryError(UsageError):
    """The run directory cannot be used."""


class ItemError(UnswayedError):
    """An item or decision is malformed; the message names file, line, field and reason."""


class TemplateError(UnswayedError):
    """A prompt cannot be rendered without changing its meaning."""


class ShapeError(UnswayedError, ValueError):
    """An array, order or label list has the wrong shape."""


class MethodError(UnswayedError):
    """A method cannot work on what it was given; the message names the item and an alternative."""


class NeedsLogprobs(MethodError):  # noqa: N818 - the name the specification gives it
    """The method needs label probabilities and the decisions carry none."""


class BackendError(UnswayedError):
    """One call failed. Recorded in the error table, never turned into a verdict."""

    exit_code = 3


class AuthError(BackendError):
    """The provider refused the key."""


class RateLimitedError(BackendError):
    """The provider asked to slow down."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerError(BackendError):
    """The server is down, overloaded or too slow."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BadResponseError(BackendError):
    """The server answered with something that is not a completion."""


class WaitingError(UnswayedError):
    """Results of a provider's batch are awaited; the message says how to upload the requests."""

    exit_code = 4


class StoreError(UnswayedError):
    """The pool of recorded calls cannot be read or written."""


class GateError(UnswayedError):
    """A gate such as --max-flip-rate failed."""

    exit_code = 1


def field_and_reason(error: Exception) -> tuple[str, str]:
    """Return the field that a validation error of msgspec is about, empty for the whole, and the reason."""
    reason, _, place = str(error).partition(" - at `$")
    return place.strip("`."), reason.replace("`str | null`", "text")


def first_line(error: BaseException) -> str:
    """Return the first line of another package's error; some print pages."""
    return (str(error).splitlines() or [""])[0]
