"""Gates: conditions, rules, what CI reads, and how often they are wrong."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

import unswayed as us
from claim_rates.gates import metrics_of_flips
from unswayed.auditing.gates import Condition, GateCheck, check, check_baseline
from unswayed.auditing.records import CallsRecord, Metrics
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import BackendError, UsageError
from unswayed.cli import main
from unswayed.cli.gate import junit_xml, summary_table, workflow_commands
from unswayed.metrics.rows import Row
from unswayed.model.decisions import Estimate

EVIL = GateCheck(
    "a<b\x00%\n::error::x|y", "fail", "50%\n::warning::\x01 <b>", Estimate(value=1.0, n=3)
)


def metrics_with(low: float, value: float, high: float, **others: Any) -> Metrics:
    estimate = Estimate(value=1 - value, low=1 - high, high=1 - low, n=100)
    rates = tuple(Estimate(value=v, low=v - 0.1, high=v + 0.1, n=100) for v in (0.7, 0.3))
    unknown = Estimate(value=None, n=0, reason="no gold")
    row = Row({"consistency": (estimate,), "position_rate": rates, "accuracy": (unknown,)})
    return Metrics(
        calls=CallsRecord(planned=200, made=200, replies=200, **others),
        methods={"direct": row},
        groups={"law": {"direct": row}},
    )


@pytest.mark.parametrize(
    ("low", "value", "high", "outcomes"),
    [
        (0.02, 0.05, 0.08, ("pass", "pass", "pass")),
        (0.05, 0.08, 0.12, ("unclear", "unclear", "pass")),
        (0.09, 0.12, 0.15, ("unclear", "unclear", "fail")),
        (0.11, 0.15, 0.20, ("fail", "fail", "fail")),
    ],
)
def test_rules_read_the_interval(
    low: float, value: float, high: float, outcomes: tuple[str, ...]
) -> None:
    metrics, condition = metrics_with(low, value, high), Condition.of("flip_rate>0.1")
    rules = ("shown", "strict", "point")
    checks = {rule: check(metrics, condition, rule) for rule in rules}
    assert tuple(checks[rule].outcome for rule in rules) == outcomes
    assert [checks[rule].fails(rule) for rule in rules] == [
        outcomes[0] == "fail",
        outcomes[1] != "pass",
        outcomes[2] == "fail",
    ]


def test_sentence_names_the_items_that_would_decide() -> None:
    metrics = metrics_with(
        0.05, 0.08, 0.11
    )  # half-width 0.03, distance 0.02: 100 * 2.25 * (2.8 / 1.96)^2
    told = "flip_rate>0.1: 0.080 (0.050 to 0.110, 100 items); about 460 items in all may decide it."
    assert check(metrics, Condition.of("flip_rate>0.1")).said == told


def test_sentence_names_no_number_for_a_limit_at_the_value() -> None:
    said = check(metrics_with(0.07, 0.10001, 0.13), Condition.of("flip_rate>0.1")).said
    assert said.endswith("so close to the limit that even 1,000,000 items may not decide it.")


def test_sentence_counts_distinct_questions_of_fewer_units() -> None:
    estimate = Estimate(value=0.92, low=0.89, high=0.95, n=100, n_units=20)
    metrics = Metrics(
        methods={"direct": Row({"consistency": (estimate,)})}, calls=CallsRecord(replies=200)
    )
    told = "about 460 items (92 distinct questions) in all may decide it."
    assert check(metrics, Condition.of("flip_rate>0.1")).said.endswith(told)


def test_few_questions_without_interval_are_unclear() -> None:
    estimate = Estimate(value=0.4, n=7, reason="1 question")
    metrics = Metrics(
        methods={"direct": Row({"accuracy": (estimate,)})}, calls=CallsRecord(replies=200)
    )
    condition = Condition.of("accuracy<0.5")
    gate = check(metrics, condition)
    assert (gate.outcome, gate.fails("shown"), gate.fails("strict")) == ("unclear", False, True)
    assert gate.said == "accuracy<0.5: 0.4, without an interval (1 question)."
    assert check(metrics, condition, "point").outcome == "fail"


def test_gate_tells_what_holds_by_construction() -> None:
    estimate = Estimate(value=1.0, low=1.0, high=1.0, n=100, by_construction=True)
    metrics = Metrics(
        methods={"vote": Row({"consistency": (estimate,)})}, calls=CallsRecord(replies=200)
    )
    gate = check(metrics, Condition.of("flip_rate@vote>0.1"))
    assert gate.said == "flip_rate@vote>0.1: 0 by construction, whatever the judge does."
    assert gate.outcome == "pass"


@pytest.mark.parametrize(("low", "value", "high"), [(0.005, 0.08, 0.101), (0.099, 0.12, 0.121)])
def test_more_items_than_measured_decide(low: float, value: float, high: float) -> None:
    said = check(metrics_with(low, value, high), Condition.of("flip_rate>0.1")).said
    assert int(re.findall(r"about (\d+) items", said)[0]) > 100


def test_condition_names_place_method_and_group() -> None:
    metrics = metrics_with(0, 0.1, 0.2)
    assert check(metrics, Condition.of("position_rate[0]>0.55")).outcome == "fail"
    assert check(metrics, Condition.of("position_rate[1]@direct#law<0.45")).outcome == "fail"
    assert check(metrics, Condition.of("calls.failed>0")).outcome == "pass"
    unknown = check(metrics, Condition.of("accuracy<0.5"))
    assert unknown.outcome == "unknown"
    assert unknown.fails("shown")
    assert "no gold" in unknown.said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("flip_rate", "write METRIC<NUMBER"),
        ("flip_rate>much", "write METRIC<NUMBER"),
        ("flip_rate>nan", "write METRIC<NUMBER"),
        ("flip_rate>1e999", "write METRIC<NUMBER"),
        ("flip_rates>0.1", "unknown metric 'flip_rates'. Did you mean 'flip_rate'"),
        ("flip_rate>20", "20 is not a share. Write 0.1 for a limit of 10%"),
        ("tie_rate@vote>5", "5 is not a share"),
        ("calls.fail>0", "Did you mean 'calls.failed'"),
        ("accuracy@average<0.5", "no method 'average'"),
        ("accuracy#low<0.5", "no group 'low'. Did you mean 'law'"),
        ("position_rate[2]<0.5", "places count from 0 to 1"),
    ],
)
def test_wrong_condition_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        check(metrics_with(0, 0.1, 0.2), Condition.of(text))


def test_flip_rate_at_its_limit_is_not_above_it() -> None:
    flips = metrics_with(0.2, 0.3, 0.4)  # 1 - 0.7 is above 0.3 in binary
    assert check(flips, Condition.of("flip_rate>0.3"), "point").outcome == "pass"
    assert check(flips, Condition.of("flip_rate>=0.3"), "point").outcome == "fail"


def test_unread_answers_do_not_count_as_flips() -> None:
    metrics = msgspec.structs.replace(metrics_with(0, 0, 0.02, unparsed=200))
    assert check(metrics, Condition.of("flip_rate>0.1")).outcome == "unknown"


@pytest.mark.parametrize(
    ("rate", "shown", "strict", "point"),
    [
        (0.05, (0, 0.02), (0.03, 0.12), (0, 0.02)),
        (0.10, (0, 0.05), (0.93, 1), (0.38, 0.56)),
        (0.15, (0.5, 0.75), (0.98, 1), (0.97, 1)),
    ],
)
def test_share_of_failing_builds(rate: float, shown: Any, strict: Any, point: Any) -> None:
    """The specification's table: 300 items, limit 0.10, intervals of the program itself."""
    draws = np.random.default_rng(0)
    failing = dict.fromkeys(("shown", "strict", "point"), 0)
    for _ in range(100):
        flips = draws.random(300) < rate
        metrics = metrics_of_flips(flips)
        for rule in failing:
            failing[rule] += check(metrics, Condition.of("flip_rate>0.1"), rule).fails(rule)  # type: ignore[arg-type]
    for rule, (least, most) in zip(failing, (shown, strict, point), strict=True):
        assert least <= failing[rule] / 100 <= most, rule


def test_names_cannot_leave_their_line_or_element() -> None:
    parsed = ElementTree.fromstring(junit_xml({"a\x00<run>": [EVIL]}, "shown"))
    assert parsed[0].attrib["failures"] == "1"
    (line,) = workflow_commands([EVIL], "shown")
    assert "\n" not in line
    assert line.startswith("::error title=unswayed%3A a<b\x00%25%0A%3A%3Aerror%3A%3Ax|y::50%25%0A")
    assert summary_table([EVIL], "shown").splitlines()[2].count("|") - 1 == 4  # one is escaped


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    judges = {"before": "slot=0.3", "again": "slot=0.3&seed=1", "worse": "slot=1.2"}
    options = {"methods": "direct", "resamples": 100}
    for name, own in judges.items():
        us.audit(f"simulated/judge?{own}", simulated_items(400), out=folder / name, **options)  # type: ignore[arg-type]
    return {name: folder / name for name in judges}


def test_baseline_tells_noise_from_a_loss(runs: dict[str, Path]) -> None:
    assert check_baseline(runs["before"], runs["worse"], 0.02).outcome == "fail"
    assert check_baseline(runs["before"], runs["again"], 0.2, "point").outcome == "pass"
    assert check_baseline(runs["again"], runs["worse"], 0.02, "point").outcome == "fail"
    again = check_baseline(runs["before"], runs["again"], 0.05)
    assert again.outcome in ("pass", "unclear")
    assert "shared items)" in again.said


def test_gate_command_has_exit_codes(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, summary = str(runs["worse"]), tmp_path / "summary.md"
    assert main(["gate", run, "--fail-if", "flip_rate>0.9"]) == 0
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    junit = tmp_path / "gates.xml"
    capsys.readouterr()
    assert main(["gate", run, "--fail-if", "flip_rate>0.05", "--junit", str(junit)]) == 1
    told = capsys.readouterr()
    assert "FAIL  flip_rate>0.05: 0." in told.out
    assert "::error title=unswayed%3A flip_rate>0.05::" in told.out
    assert "1 of 1 gate failed" in told.err
    assert "**fail**" in summary.read_text()
    assert ElementTree.parse(junit).getroot()[0].attrib["failures"] == "1"
    assert main(["gate", run]) == 2
    assert main(["gate", run, "--baseline", str(runs["before"])]) == 1
    assert main(["gate", str(tmp_path), "--fail-if", "flip_rate>0.1"]) == 2


def test_failed_calls_go_before_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def judge(prompt: str, answers: list[str]) -> int:
        if prompt.endswith("7"):
            raise TimeoutError
        return 0

    named = us.FunctionJudge(judge, name="v1")
    us.audit(named, simulated_items(20), out=tmp_path / "run", methods="direct", resamples=100)
    assert main(["gate", str(tmp_path / "run"), "--fail-if", "flip_rate>0.1"]) == 3
    assert "--max-failed-share" in capsys.readouterr().err
    gate = ["gate", str(tmp_path / "run"), "--fail-if", "flip_rate>0.1"]
    assert main([*gate, "--max-failed-share", "0.5"]) == 1


def test_audit_fails_by_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["audit", "tiny-judge", "--limit", "60", "--resamples", "100"]
    base += ["--out", str(tmp_path / "run")]
    assert main([*base, "--fail-if", "flip_rate>0.1"]) == 1
    assert main([*base, "--fail-if", "flip_rate>0.9"]) == 0
    capsys.readouterr()
    assert main([*base, "--json", "--fail-if", "flip_rate>0.9"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"]["direct"]
    assert main([*base, "--fail-if", "flips>0.9"]) == 2


def test_assert_unswayed_tells_a_swayed_judge_from_failed_calls() -> None:
    items = simulated_items(60)
    fair = us.assert_unswayed(lambda p, a: int(a[1] > a[0]), items, resamples=100)
    assert fair["methods"]["direct"]["consistency"]["value"] == 1
    with pytest.raises(AssertionError, match=r"the judge fails flip_rate>0.1: 1.000 \(0.9"):
        us.assert_unswayed(lambda p, a: 0, items, resamples=100)
    with pytest.raises(BackendError):
        us.assert_unswayed(lambda p, a: 1 // 0, items, resamples=100)
    with pytest.raises(AssertionError, match="no answer could be read"):
        us.assert_unswayed(lambda p, a: None, items, resamples=100)
    judge = us.FunctionJudge(lambda p, a: [0.9, 0.1], probabilities=True)
    us.assert_unswayed(judge, items, max_flip=None, fail_if="tie_rate@average>0.9", resamples=100)
    with pytest.raises(UsageError, match="'flip_rate>20': 20 is not a share"):
        us.assert_unswayed(judge, items, max_flip=20)


PLUGIN = """
from unswayed.backends.simulated import simulated_items
ITEMS = list(simulated_items(60))
def test_fair(unswayed):
    metrics = unswayed(lambda p, a: int(a[1] > a[0]), ITEMS, resamples=100)
    assert metrics["methods"]["direct"]["consistency"]["value"] == 1
def test_swayed(unswayed):
    unswayed(lambda p, a: 0, ITEMS, resamples=100)
def test_dead(unswayed):
    unswayed(lambda p, a: 1 // 0, ITEMS[:5], resamples=100)
"""


def test_plugin_fails_tests_with_figures_and_stays_light(tmp_path: Path) -> None:
    (tmp_path / "test_judges.py").write_text(PLUGIN)
    light = "import sys\nLIGHT = 'numpy' not in sys.modules\ndef test_light():\n    assert LIGHT\n"
    (tmp_path / "test_other.py").write_text(light)
    base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    if "unswayed" not in plugins():
        base += ["-p", "unswayed.integrations.pytest_plugin"]
    done = subprocess.run(
        [*base, "test_other.py", "test_judges.py", "--junit-xml=j.xml"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "test_fair: flip_rate>0.1: 0.000 (0.000 to 0.0" in done.stdout
    assert "the judge fails flip_rate>0.1: 1.000" in done.stdout
    assert "BackendError" in done.stdout
    assert "api.py" not in done.stdout  # a message, not frames of the package
    assert 'name="unswayed flip_rate&gt;0.1" value="0.0"' in (tmp_path / "j.xml").read_text()


def plugins() -> set[str]:
    from importlib.metadata import entry_points

    return {entry.name for entry in entry_points(group="pytest11")}
