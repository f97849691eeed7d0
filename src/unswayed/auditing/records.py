"""`run.json` and `metrics.json`: the one schema that writes them and reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from unswayed.auditing.recommendation import Recommendation
from unswayed.auditing.rows import as_json, converted
from unswayed.auditing.run_directory import keep_files, read_json
from unswayed.base.errors import RunDirectoryError
from unswayed.methods.threshold import ThresholdView
from unswayed.metrics.abstention import RiskPoint
from unswayed.metrics.improvements import Improvements
from unswayed.metrics.repeats import Repeats
from unswayed.metrics.rows import Row
from unswayed.model.decisions.estimate import Count, Estimate
from unswayed.model.tasks import TASKS, TaskSpec, task_of

T = TypeVar("T")

SECTIONS: Final = ("data", "protocol", "calls", "protocols", "methods", "recommendation")
"""What every `metrics.json` has."""


class DataRecord(Struct, frozen=True, kw_only=True):
    """Audited data, with counts of unusual items."""

    name: str = "unnamed data"
    n_items: Count = 0
    n_units: Count = 0  # distinct questions; 0 in a file that does not count them
    task: str | None = None
    bad_lines: Count = 0
    not_permutable: Count = 0
    no_gold: Count = 0
    gold_ties: Count = 0
    # items by criterion, where several are asked at once: `n_items` counts each
    criteria: dict[str, Count] | UnsetType = UNSET

    @property
    def noun(self) -> str:
        """Word for a candidate in the task's terms, if that is known here."""
        return "candidate" if self._spec is None else self._spec.noun

    @property
    def scaled(self) -> bool:
        """True if candidates are the levels of a scale."""
        return self._spec is not None and self._spec.scaled

    @property
    def _spec(self) -> TaskSpec | None:
        return task_of(self.task) if self.task is not None and self.task in TASKS else None


class LevelChoices(Struct, frozen=True, kw_only=True):
    """Counts of level choices by position in single calls; rows are levels, the lowest value first."""

    values: tuple[float, ...] | None  # of the levels; None where they differ between items
    chosen: tuple[tuple[Count, ...], ...]  # choices of each level at each position
    shown: tuple[tuple[Count, ...], ...]  # answers that were read in which it stood there


class Protocol(Struct, frozen=True, kw_only=True):
    """Presentations of the items."""

    name: str = ""
    protocols: tuple[str, ...] = ()
    n_presentations: Count = 0
    n_candidates: tuple[Count, ...] = ()


class Reread(Struct, frozen=True, kw_only=True):
    """Counts of verdicts that newer rules changed, among `of` recorded replies read again."""

    now_unread: Count = 0
    now_read: Count = 0
    to_another: Count = 0
    of: Count = 0


class CallsRecord(Struct, frozen=True, kw_only=True):
    """Calls and their outcome; counts as in `RunCounts`."""

    planned: Count = 0
    made: Count = 0
    cached: Count = 0
    failed: Count = 0
    # replies about the candidates; all other counts of replies are parts of it
    replies: Count | None = None
    awaiting: Count = 0  # unread replies whose second call is still to come; not part of `replies`
    unparsed: Count = 0
    refused: Count = 0
    broken: dict[str, Count] = {}  # unread replies with an unknown finish reason, by that reason
    disagree: Count = 0  # replies whose text states a label other than the likeliest
    # disagree_positions, reasked_positions: verdicts of these replies, by displayed position
    disagree_positions: tuple[Count, ...] = ()
    # reasked, reasked_read: replies that were asked again, and how many could then be read
    reasked: Count = 0
    reasked_read: Count = 0
    reasked_positions: tuple[Count, ...] = ()
    reread: Reread | UnsetType = UNSET
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: float | None = None
    unknown_usage: Count = 0
    label_mass: float | None = None  # mean probability on the labels before it was renormalised

    @property
    def answered(self) -> int:
        """Calls that came back, made or from cache."""
        return self.made + self.cached

    @property
    def heard(self) -> int:
        """Replies, or the calls that came back in an older file, which does not count replies."""
        return self.answered if self.replies is None else self.replies

    @property
    def missing(self) -> int:
        """Planned calls without an answer."""
        return max(0, self.planned - self.answered)


class Metrics(Struct, frozen=True, kw_only=True):
    """`metrics.json`: what is absent in an older file is unknown, what is unknown is left out."""

    unswayed: str = ""  # the version that wrote it
    model: str = "recorded decisions"
    data: DataRecord = DataRecord()
    protocol: Protocol = Protocol()
    calls: CallsRecord = CallsRecord()
    protocols: dict[str, Row] = {}  # any of coupled, order, label
    methods: dict[str, Row] = {}
    # "a-b" to metric to the paired difference a minus b
    differences: dict[str, dict[str, Estimate]] = {}
    recommendation: Recommendation | None = None
    groups: dict[str, dict[str, Row]] = {}  # group to method to row
    macro: dict[str, Row] = {}  # method to averages over groups
    skipped: dict[str, str] = {}  # methods that were asked for and left out, with the reason
    # method to what fitting warned about, or orders that are not even
    cautions: dict[str, tuple[str, ...]] = {}
    # items without the same verdict in every presentation, and what became of them
    flips: dict[str, Count] = {}
    thresholds: ThresholdView | UnsetType = UNSET
    # method to a row for every number of estimation items
    estimation_curve: dict[str, tuple[Row, ...]] | UnsetType = UNSET
    # method to a row for every number of its orders
    order_curve: dict[str, tuple[Row, ...]] | UnsetType = UNSET
    # method to a row for every one of its settings, fewer calls first
    call_curve: dict[str, tuple[Row, ...]] | UnsetType = UNSET
    # method that abstains to the errors among its surest answers
    risk_curve: dict[str, tuple[RiskPoint, ...]] | UnsetType = UNSET
    # "a-b" to the items that a gets right and b wrong, and the reverse, where candidates are scored
    improvements: dict[str, Improvements] | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET  # what changes where the same presentation was asked again
    # by number of levels, where candidates are the levels of a scale
    level_choices: dict[int, LevelChoices] | UnsetType = UNSET
    # accuracy and consistency by method, without items of which a reply was asked again; given only
    # if such replies are many
    without_reasked: dict[str, Row] | UnsetType = UNSET


class RunItems(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data as `run.json` names them; counts of unusual items where there are any."""

    name: str = ""
    n_items: Count = 0
    fingerprint: str = ""
    bad_lines: Count = msgspec.field(default=0, name="bad lines")
    not_permutable: Count = msgspec.field(default=0, name="not permutable")
    no_gold: Count = msgspec.field(default=0, name="no gold")
    gold_ties: Count = msgspec.field(default=0, name="gold ties")
    # of a benchmark: address, revision and commit, licence, paper, seed of its own order
    origin: dict[str, str | int] = {}
    read_as: str = ""  # what of other people's columns was taken for what


class PromptRecord(Struct, frozen=True, kw_only=True):
    """Prompt of the items."""

    name: str = ""
    fingerprint: str = ""
    temperature: float = 0.0


class RunRecord(Struct, frozen=True, kw_only=True):
    """`run.json`: what a reader needs to repeat an audit."""

    version: str = ""
    command: str = ""  # as it was typed, without keys
    model: str = ""
    data: RunItems = RunItems()
    task: str = ""
    protocol: Protocol = Protocol()
    intervals: str = ""
    settings: dict[str, Any] = {}  # those that determine the figures
    seed: Count = 0
    packages: dict[str, str] = {}
    recorded: bool = False  # true if recorded decisions were audited and no call was made
    prompt: PromptRecord | None = None
    prompt_settings: dict[str, Any] = {}
    # the methods that were to be measured, also those that no answer allowed
    planned: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()  # the label set, in label order
    created: str = ""  # when it began, ISO 8601
    time_s: float | None = None  # how long it took, in seconds
    calls: CallsRecord = CallsRecord()
    # questions in one request, and what a probe measured
    packing: dict[str, float] | UnsetType = UNSET
    server: str | None = None  # the address calls went to; None for local models
    reader: int = 1  # version number of the reading rules; 1 in files without it
    planted: bool = False  # whether the model told that its bias was planted
    finished: bool = True
    fatal: str | None = None  # why no further call could succeed
    interrupted: bool = False
    budget_spent: bool = False
    failures: tuple[str, ...] = ()  # why calls are missing, in sentences
    budget_to_finish: float | None = None  # USD that reach for all calls, after a spent budget
    warnings: tuple[str, ...] = ()  # what the user should know, in sentences
    # model, data, directory, prompt options and those of local models as they were given
    asked: dict[str, str | int | float | bool] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the content of `run.json`; what only calls have is left out where none was made."""
        left_out = OF_CALLS if self.recorded else ("recorded",)
        return {name: v for name, v in as_json(self).items() if name not in left_out}


OF_CALLS: Final = (
    "prompt", "prompt_settings", "time_s", "packing", "server", "reader", "planted", "fatal",
    "interrupted", "budget_spent", "failures", "budget_to_finish", "asked",
)  # fmt: skip


def read_metrics(directory: Path) -> Metrics:
    """`metrics.json` of a finished run."""
    path = directory / "metrics.json"
    record = read_json(path)
    missing = [name for name in SECTIONS if not isinstance(record.get(name), dict)]
    if missing:
        raise RunDirectoryError(
            f"{path} has no section {missing[0]!r}: an audit did not write it. Run the audit again."
        )
    return _of_directory(directory, record, Metrics)


def read_run(directory: Path) -> RunRecord:
    """`run.json` of a run."""
    return _of_directory(directory, read_json(directory / "run.json"), RunRecord)


def _of_directory(directory: Path, record: object, kind: type[T]) -> T:
    try:
        return converted(record, kind)
    except msgspec.ValidationError as error:
        raise RunDirectoryError(f"{directory} is damaged: {error}. Run the audit again.") from None


def check_kind(
    path: Path, *, recorded: bool, model: str, data: str, prompt: str | None = None
) -> None:
    """Check that a run directory, if it exists, is not that of another kind of run, by the prompt's
    fingerprint too; `calls.sqlite` checks calls.
    """
    before = run_before(path)
    if before == RunRecord() and not (path / "calls.sqlite").exists():
        return
    if before.recorded != recorded:
        held, asked = ("a model's calls", "recorded decisions")[:: 1 if recorded else -1]
        raise RunDirectoryError(
            f"{path} holds an audit of {held}, this one is of {asked}. Choose another --out."
        )
    if recorded and (before.model, before.data.name) != (model, data):
        raise RunDirectoryError(
            f"{path} holds recorded decisions of {before.model} on {before.data.name}, not of "
            f"{model} on {data}. Choose another --out."
        )
    if before.prompt is not None and before.prompt.fingerprint != prompt:
        raise RunDirectoryError(
            f"{path} holds an audit with a different prompt, template, label set, extra_body or examples, and "
            "this one would overwrite it. Choose another --out."
        )


def keep_finished(path: Path, run: RunRecord) -> Path | None:
    """Keep the finished audit of a run directory before `run` is written over it; return its place.

    Return None if `run` has its figures, too: the same settings and data, with no fewer answers.
    """
    before = run_before(path)
    if not (before.finished and before.calls.answered):
        return None
    figures = [
        (own.settings, own.seed, own.data, own.planned, own.protocol, own.version, own.reader)
        for own in (before, converted(run.to_json(), RunRecord))
    ]
    more = run.calls.answered >= before.calls.answered
    if figures[0] == figures[1] and run.finished and more:
        return None
    return keep_files(path, before.created)


def run_before(path: Path) -> RunRecord:
    """Return the run of a directory without checking sums; an empty one if there is none."""
    try:
        run = converted(json.loads((path / "run.json").read_text(encoding="utf-8")), RunRecord)
    except (OSError, ValueError, RecursionError):
        return RunRecord()
    return run if run.recorded or run.prompt is not None else RunRecord()
