"""Costs by hand, and which table counts where."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.prices import Price, load_prices
from unswayed.base.errors import UsageError


def test_cost_by_hand() -> None:
    price = Price(input=2.0, cached_input=0.5, output=8.0)
    # 600 fresh x 2 + 400 cached x 0.5 + 100 generated x 8 = 2200 micro-dollars
    assert price.of(1000, 100, cached_tokens=400) == pytest.approx(0.0022)
    assert price.of(1000, 100) == pytest.approx(0.0028)
    # without a price of their own, cached tokens cost as fresh ones
    assert Price(input=2.0, output=8.0).of(1000, 0, 400) == pytest.approx(0.002)


def test_a_long_prompt_changes_the_rates_of_all_tokens() -> None:
    price = load_prices().find("anthropic/claude-haiku-5-5", own_address=True)
    assert price is not None
    assert price.of(100_000, 1000) == pytest.approx(0.1 * 0.1 + 0.001 * 0.5)
    assert price.of(100_001, 1000) == pytest.approx(0.100001 * 0.5 + 0.001 * 2.5)


@given(tokens=st.integers(0, 10**6), cached=st.integers(0, 2 * 10**6), output=st.integers(0, 10**5))
def test_no_cost_is_negative_and_caching_never_adds_to_it(
    tokens: int, cached: int, output: int
) -> None:
    price = Price(input=2.0, cached_input=0.5, output=8.0)
    assert 0.0 <= price.of(tokens, output, cached) <= price.of(tokens, output)


def test_every_shipped_price_is_plausible() -> None:
    table = load_prices()
    assert all(date.fromisoformat(day) for day in table.checked.values())
    for name, price in table.shipped.items():
        assert name.startswith(("openai/", "anthropic/"))
        assert 0 < price.input < price.output
        assert price.cached_input is None or 0 < price.cached_input < price.input


@pytest.mark.parametrize(
    ("snapshot", "name"),
    [
        ("openai/gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini"),
        ("anthropic/claude-sonnet-4-20250514", "anthropic/claude-sonnet-4"),
        ("anthropic/claude-3-5-haiku-latest", "anthropic/claude-3-5-haiku"),
    ],
)
def test_a_dated_snapshot_costs_what_its_model_does(snapshot: str, name: str) -> None:
    price, same = (load_prices().find(one, own_address=True) for one in (snapshot, name))
    assert price is not None
    assert price == same


@pytest.mark.parametrize(
    ("model", "own_address", "rate"),
    [
        ("openai/gpt-4o-2024-05-13", True, 5.0),  # a snapshot with a price of its own
        ("openai/gpt-4o", False, None),  # shipped prices hold at the provider's address only
        ("openai/gpt-99", True, None),
        ("openai/ft:gpt-4o-mini-2024-07-18:me", True, None),
    ],
)
def test_a_price_belongs_to_a_model_at_its_own_address(
    model: str, own_address: bool, rate: float | None
) -> None:
    price = load_prices().find(model, own_address=own_address)
    assert (None if price is None else price.input) == rate


def test_a_table_of_ones_own_wins_and_holds_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    for day in ('"2027-01-01"', "2027-01-01"):  # a date of TOML is a date, too
        path.write_text(f'as_of = {day}\n[models."openai/gpt-4o"]\ninput = 1.0\noutput = 2.0\n')
        table = load_prices(path)
        for own_address in (True, False):
            price = table.find("openai/gpt-4o", own_address=own_address)
            assert price is not None
            assert price.output == 2.0
    assert table.find("openai/gpt-4o-mini", own_address=True) is not None
    path = tmp_path / "prices.json"
    path.write_text('{"as_of": "x", "models": {"openai-api/a/b": {"input": 1, "output": 2}}}')
    assert load_prices(path).find("openai-api/a/b", own_address=False) is not None


@pytest.mark.parametrize(
    "text",
    ["not toml", "as_of = 3", 'as_of = "x"\n[models."a"]\ninput = -1.0\noutput = 1.0', "[models]"],
)
def test_a_bad_table_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"mine\.toml"):
        load_prices(path)
    with pytest.raises(UsageError, match="cannot read"):
        load_prices(tmp_path / "absent.toml")


def test_backends_are_priced_by_name_and_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    known = open_backend("openai/gpt-4.1-mini")
    assert known.price(1_000_000, 1_000_000) == pytest.approx(2.0)
    assert open_backend("openai/unheard-of").price(1000, 1000) is None
    local = BackendSettings(base_url="http://127.0.0.1:1/v1")
    assert open_backend("openai/gpt-4.1-mini", local).price(1000, 1000) == 0.0
    elsewhere = BackendSettings(base_url="https://gate.example/v1")
    assert open_backend("openai/gpt-4.1-mini", elsewhere).price(1000, 1000) is None


def test_the_price_of_a_model_that_thinks_includes_its_thinking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    # 1000 x 0.25 + (10 + 2048) x 2 micro-dollars
    price = open_backend("openai/gpt-5-mini").price(1000, 10)
    assert price == pytest.approx(0.00025 + 2058 * 2e-6)
