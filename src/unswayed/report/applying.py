"""Commands for the recommended method: two shell commands, and the same in Python."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unswayed.backends import LOCAL
from unswayed.methods import METHODS
from unswayed.methods.names import parse_method
from unswayed.model.decisions import Evidence
from unswayed.report.findings import Finding

Asked = Mapping[str, str | int | float | bool | None]

PROMPTS: Final = ("prompt", "template", "labels", "shots", "base_url", "extra_body")
"""Options that change an answer to the same item by the same model."""

WHICH: Final = ("task", "data_dir", "columns")
"""Options that select and read items, with the name of their set."""

CALLS: Final = {
    "pairwise": 'compare("question", "answer one", "answer two")',
    "mcq": 'answer("question", [OPTIONS])',
    "listwise": 'rank("question", ["answer one", "answer two", "answer three"])',
    "rubric": 'score("question", "a response", {1: "poor", 2: "fair", 3: "good"})',
}
TINY_CALLS: Final = {
    "pairwise": 'compare("movies", "dull complete simple", "broken sound kind")',
    "mcq": 'answer("largest", ["wolf", "giraffe", "whale", "mouse"])',
    "rubric": 'score("science", "rude stale unsafe confused", '
    '{1: "terrible", 2: "weak", 3: "middling", 4: "good", 5: "excellent"})',
}
"""The same in the words of the built-in sets: the tiny judge knows no others."""


@dataclass(frozen=True, slots=True)
class Application:
    """Commands that use a method."""

    title: str  # its heading
    # command lines to run one after the other; empty where the data have no name
    shell: tuple[str, ...]
    python: tuple[str, ...]  # the same as lines of Python, for one comparison

    @property
    def command(self) -> str:
        """One command line, broken after `&&`."""
        return " &&\n".join(self.shell)


def applications_of(finding: Finding) -> list[Application]:
    """Return the commands for the recommended method, or for both that an open state leaves to choose from; none
    where none but a single call is recommended.
    """
    asked: Asked = finding.run.run.asked
    if not asked.get("model") or asked.get("shots") == "" or asked.get("data") == "-":
        return []
    given, name = finding.advised, finding.recommended
    if given.state == "open":
        named = {given.most_accurate: "most accurate", given.cheapest: "cheapest"}
    else:
        named = {} if name == finding.base else {name: ""}
    sampled = str(finding.run.run.settings.get("probs")).startswith("sampled")  # audits only
    return [
        _application(asked, name, word, finding)
        for name, word in named.items()
        if name is not None and name.partition(":")[0] in METHODS  # of a package that is here
        if not (sampled and Evidence.PROBS in parse_method(name).reads)
    ]


def _application(asked: Asked, name: str, word: str, finding: Finding) -> Application:
    folder = Path(str(asked.get("directory") or ""))
    own = str(folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.json")
    fitted = own if parse_method(name).fitted_from else None
    verdicts = str(folder / f"{'-'.join(['verdicts', *word.split()])}.jsonl")
    return Application(
        title=f"Apply the method: {word}" if word else "Apply the method",
        shell=() if finding.run.is_function else _shell(asked, name, fitted, verdicts),
        python=_python(asked, name, fitted, finding),
    )


def _shell(asked: Asked, method: str, fitted: str | None, verdicts: str) -> tuple[str, ...]:
    if "data" not in asked:
        return ()
    options = _flags(asked, "model", *PROMPTS, *WHICH, *LOCAL)
    pool = ["--calls", str(asked["directory"])] if "directory" in asked else []
    data = str(asked["data"])
    first = ["unswayed", "calibrate", method, data, *options, *_flags(asked, "limit")]
    second = ["unswayed", "judge", data, *options, "--method", fitted or method]
    commands = [[*first, "--out", fitted, *pool]] if fitted is not None else []
    return tuple(
        shlex.join(command) for command in [*commands, [*second, "--out", verdicts, *pool]]
    )


def _flags(asked: Asked, *names: str) -> list[str]:
    flags = []
    for name in names:
        if name in asked:
            flag = f"--{name.replace('_', '-')}"
            flags += [flag] if asked[name] is True else [flag, str(asked[name])]
    return flags


def _python(asked: Asked, method: str, fitted: str | None, finding: Finding) -> tuple[str, ...]:
    options = [f"{name}={asked[name]!r}" for name in PROMPTS if name in asked]
    pool = [f"calls={asked['directory']!r}"] if "directory" in asked else []
    model = repr(asked["model"])
    if finding.run.is_function:
        name = str(asked["model"]).removeprefix("function/")
        gives = ", probabilities=True" if Evidence.PROBS in parse_method(method).reads else ""
        model = f"us.FunctionJudge(function, name={name!r}{gives})"
    lines = ["import unswayed as us", ""]
    if fitted is not None:
        which = [f"{name}={asked[name]!r}" for name in (*WHICH, "limit") if name in asked]
        data = repr(asked["data"]) if "data" in asked else "items"
        given = [repr(method), data, model, f"out={fitted!r}", *options, *which, *pool]
        lines.append(f"us.calibrate({', '.join(given)})")
    chosen = repr(method) if fitted is None else f"us.load_method({fitted!r})"
    opened = ", ".join([model, f"method={chosen}", *options, *pool])
    lines.append(f"with us.Judge({opened}) as judge:")
    calls = {**CALLS, **TINY_CALLS} if str(asked["model"]).startswith("tiny/") else CALLS
    texts = ", ".join(f'"option {number}"' for number in range(1, finding.n + 1))
    task = finding.run.run.task
    if task in calls and "=group" not in method:  # each item names its group
        lines.append(f"    verdict = judge.{calls[task].replace('OPTIONS', texts)}")
    else:  # items that no call of a few arguments describes
        given = [f"{name}={asked[name]!r}" for name in WHICH if name in asked]
        source = ", ".join([repr(asked.get("data")), *given])
        items = f"us.load_data({source})" if "data" in asked else "items"
        lines.append(f"    verdicts = list(judge.verdicts({items}))")
    return tuple(lines)
