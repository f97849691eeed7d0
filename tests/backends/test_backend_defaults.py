"""What a backend is that says nothing but its name, and what the built-in ones say."""

from pathlib import Path

import pytest

import unswayed as us
from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.base.errors import UsageError
from unswayed.model.calls import Query, Response


class Silent(Backend):
    """Nothing but a name."""

    model = "silent/one"


class Echo(Backend):
    """A name and an answer."""

    model = "echo/one"

    def respond(self, query: Query) -> Response:
        return Response(text=query.request.labels[0])


def test_a_backend_is_a_plain_remote_model_by_default() -> None:
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
