"""A backend of somebody else's: one file and one line, and every command knows it."""

import json
from pathlib import Path

import pytest

import unswayed as us
from outside_package import OutsidePackage
from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.calls import Query, Response
from unswayed.errors import UsageError

SOURCE = '''
    from pathlib import Path

    from unswayed.backends import Backend, BackendSettings
    from unswayed.calls import Query, Response


    class First(Backend):
        remarks = ("first always picks what is shown first",)
        server = "https://first.example/v1"
        planted = True

        def __init__(self, model: str) -> None:
            self.model = f"first/{model}"

        def respond(self, query: Query) -> Response:
            with Path("asked.txt").open("a") as file:
                file.write(query.item.id + "\\n")
            label = query.ask.presentation.symbols(query.request.labels)[0]
            return Response(text=label, input_tokens=10, output_tokens=1, cost_usd=0.01)

        def price(self, input_tokens: int, output_tokens: int) -> float:
            return 0.01


    def open_first(model: str, settings: BackendSettings) -> First:
        """Always what is shown first: `first/<anything>`."""
        return First(model)
'''


@pytest.fixture
def package(tmp_path: Path) -> OutsidePackage:
    rows = [
        {"id": f"q{k}", "prompt": f"Which {k}?", "candidates": [f"a{k}", f"b{k}"], "gold": k % 2}
        for k in range(10)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return OutsidePackage(
        tmp_path, group="unswayed.backends", line="first = mine:open_first", source=SOURCE
    )


def test_a_backend_from_outside_is_listed_priced_asked_resumed_and_reported(
    package: OutsidePackage,
) -> None:
    assert "Always what is shown first" in package.run("list", "models")
    audit = ("audit", "pairs.jsonl", "--model", "first/one", "--out", "run", "--resamples", "100")

    priced = package.run(*audit, "--dry-run")
    assert "$0.2" in priced  # 10 items, two orders, a cent each
    assert not (package.folder / "asked.txt").exists()

    package.run(*audit, "--budget", "0.105", code=3)
    assert len((package.folder / "asked.txt").read_text().split()) == 10

    shown = package.run(*audit)  # the rest, and nothing twice
    assert "first always picks what is shown first" in shown
    assert len((package.folder / "asked.txt").read_text().split()) == 20
    run = json.loads((package.folder / "run" / "run.json").read_text())
    assert "first always picks what is shown first" in run["warnings"]
    assert run["server"] == "https://first.example/v1"
    assert run["planted"] is True
    metrics = json.loads((package.folder / "run" / "metrics.json").read_text())
    assert metrics["model"] == "first/one"
    assert metrics["methods"]["direct"]["consistency"]["value"] == 0.0
    assert metrics["calls"]["cost_usd"] == pytest.approx(0.1)

    assert "was planted" in (package.folder / "run" / "report.html").read_text()


class Silent(Backend):
    """Nothing but a name."""

    model = "silent/one"


class Echo(Backend):
    """A name and an answer."""

    model = "echo/one"

    def respond(self, query: Query) -> Response:
        return Response(text=query.request.labels[0])


def test_a_backend_says_by_default_that_it_is_a_plain_model_elsewhere() -> None:
    backend = Silent()
    facts = (backend.gives_logprobs, backend.offline, backend.keyed_by_item, backend.planted)
    assert not any(facts)
    assert (backend.own_prompt.template, backend.server, backend.waiting) == (None, None, None)
    assert backend.remarks == ()
    assert backend.price(1, 1) is None
    with pytest.raises(NotImplementedError, match="Silent"):
        backend.respond(None)  # type: ignore[arg-type]


def test_what_costs_nothing_has_the_price_zero() -> None:
    assert open_backend("simulated/judge").price(10**6, 10**6) == 0.0
    assert open_backend("tiny/judge", BackendSettings()).price(10**6, 10**6) == 0.0


def test_an_object_judges_in_python_if_it_is_a_backend() -> None:
    item = us.Item(id="q1", prompt="?", candidates=("a", "b"))
    with us.Judge(Echo(), method="direct") as judge:
        (verdict,) = judge.verdicts([item])
        assert isinstance(verdict, us.Verdict)
        assert verdict.choice == 0
    with pytest.raises(UsageError, match="Backend"):
        us.Judge(object())  # type: ignore[arg-type]


def test_a_replay_knows_what_its_model_told_of_itself(tmp_path: Path) -> None:
    us.audit("simulated/judge?logprobs=0", "tiny-judge", limit=5, out=tmp_path / "run")
    replay = open_backend(f"replay/{tmp_path / 'run'}")
    assert replay.planted
    assert replay.keyed_by_item
    assert replay.offline
