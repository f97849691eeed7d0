"""The pinned, the hashed and the lowest versions agree with pyproject.toml and each other."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(*extras: str) -> list[Requirement]:
    named = [text for extra in extras for text in EXTRAS[extra]]
    found = [Requirement(text) for text in (*PROJECT["dependencies"], *named)]
    return [requirement for requirement in found if requirement.name != "unswayed"]


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    found = (re.match(r"([\w.-]+)==([^\s;]+)", line) for line in lines if not line.startswith("#"))
    return {canonicalize_name(match[1]): match[2] for match in found if match}


@pytest.mark.parametrize(
    "requirement",
    requirements(
        "local", "structured", "train", "figures", "parquet", "benchmarks", "pandas", "dev"
    ),
    ids=str,
)
def test_the_tested_version_is_admitted(requirement: Requirement) -> None:
    assert requirement.specifier.contains(
        pins("constraints.txt")[canonicalize_name(requirement.name)]
    )


@pytest.mark.parametrize(
    "requirement", requirements("figures", "parquet", "benchmarks", "pandas"), ids=str
)
def test_the_lowest_version_is_the_bound(requirement: Requirement) -> None:
    (bound,) = (one for one in requirement.specifier if one.operator == ">=")
    name = canonicalize_name(requirement.name)
    assert Version(pins("constraints-lowest.txt")[name]) == Version(bound.version)


def test_page_names_the_tested_clients_of_decision_models() -> None:
    page = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"`(\w+) ([\d.]+)`", re.search(r"^Tested: .*", page, re.MULTILINE)[0]))
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    tested = {
        name: re.search(rf"{name}\S*==([\d.]+)", script)[1]
        for name in ("openai", "typesafe-sdk", "litellm")
    }
    assert told == {name.replace("-", "_"): version for name, version in tested.items()}


def test_the_lock_holds_every_constraint_but_torch_with_its_hash() -> None:
    locked, pinned = pins("requirements.lock"), pins("constraints.txt")
    assert not {name for name in locked if locked[name] != pinned.get(name, locked[name])}
    for requirement in requirements(
        "local", "structured", "train", "figures", "parquet", "benchmarks", "dev"
    ):
        name = canonicalize_name(requirement.name)
        assert (name in locked) is (name != "torch"), name
    lines = (ROOT / "requirements.lock").read_text().splitlines()[1:]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_peers_are_installed_by_extras_alone_and_without_a_pin() -> None:
    assert EXTRAS["inspect"] == ["inspect-ai"]
    assert not [text for text in PROJECT["dependencies"] if "inspect" in text]
