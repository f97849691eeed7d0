"""The single call on a list ranks all candidates by the scores it gave."""

from unswayed.methods.names import parse_method
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task

ITEM = Item(id="l", task=Task.LISTWISE, prompt="?", candidates=("x", "y", "z"))


def answer(**fields: object) -> Decision:
    return Decision(item_id="l", order=(0, 1, 2), labels=("A", "B", "C"), **{"choice": 1, **fields})  # type: ignore[arg-type]


def test_the_scores_of_a_single_call_rank_every_candidate() -> None:
    verdict = parse_method("direct").decide(ITEM, [answer(scores=(40.0, 70.0, 55.0))])
    assert (verdict.choice, verdict.scores) == (1, (40.0, 70.0, 55.0))
    assert verdict.ranking == ((1,), (2,), (0,))


def test_a_score_that_is_missing_is_not_made_up() -> None:
    verdict = parse_method("direct").decide(ITEM, [answer(scores=(None, 70.0, 55.0))])
    assert verdict.scores == (0.0, 1.0, 0.0)


def test_a_declared_tie_is_of_the_highest_scores_or_of_all() -> None:
    tied = answer(choice="tie", scores=(80.0, 10.0, 80.0))
    for method in ("direct", "pcf:runs=1"):
        verdict = parse_method(method).decide(ITEM, [tied])
        assert (verdict.choice, verdict.tie) == ("tie", (0, 2))
        assert verdict.ranking == ((0, 2), (1,))
    over_one = answer(choice="tie", scores=(80.0, 10.0, 70.0))
    assert parse_method("direct").decide(ITEM, [over_one]).tie == (0, 1, 2)
