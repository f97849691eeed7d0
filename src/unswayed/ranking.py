"""Rank models by the verdicts of a judge on pairs of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

from msgspec import Meta

from unswayed.auditing.export import decisions_of_run
from unswayed.auditing.export_items import items_of_run
from unswayed.auditing.pairs_of_models import compared_models
from unswayed.auditing.recorded import one_model_one_prompt
from unswayed.auditing.records import CallsRecord, read_run
from unswayed.base.arguments import Settings, checked, takes
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import ItemError
from unswayed.data.importers import import_files
from unswayed.metrics.board import Ranking, rank_models
from unswayed.model.decisions import Decision, record
from unswayed.model.items import Item
from unswayed.result import AuditResult, drawn
from unswayed.sources import Source, load_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unswayed.keywords import RankKeywords


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions(Settings):
    """Options of a ranking, for its command and function."""

    baseline: Annotated[
        str | None,
        Meta(description="Use comparisons with this model only [default: a model that is in all]"),
    ] = None
    model: Annotated[
        str | None, Meta(description="Judge whose verdicts count, where there are several.")
    ] = None
    seed: Annotated[int, Meta(ge=0, description="Seed of the draws behind joint intervals.")] = 0


class RankResult(Ranking, frozen=True, kw_only=True):
    """Ranking of models; `print` shows its table."""

    def __str__(self) -> str:
        """Return the table that the terminal shows, without colours."""
        from unswayed.report.board import board_report

        return drawn(board_report(self))


@checked
@takes(RankOptions)
def rank(
    source: AuditResult | str | Path,
    items: Source | None = None,
    **options: Unpack[RankKeywords],
) -> RankResult:
    """Rank models by a judge's verdicts on pairs of their answers, free of the position effect.

    Args:
        source: An audit, its run directory, or a file of decisions or of another tool (`unswayed import auto`).
        items: The pairs, whose `candidates_by` names the models; None if the source holds them.

    Raises:
        ItemError: If items are missing or name no models, or their scores are not determined.
        UnknownNameError: If there is no such baseline.
    """
    given = RankOptions.of(options)
    decisions, pairs, told = _judged(source)
    pairs = list(pairs if items is None else load_data(items))
    if not pairs:
        raise ItemError(f"{source}: items are missing. Name their file: --items, in Python items=.")
    recording, more = one_model_one_prompt(record(decisions), given.model)
    compared, left = compared_models(recording, pairs)
    ranking = rank_models(compared, baseline=given.baseline, seed=given.seed)
    values = {name: getattr(ranking, name) for name in ranking.__struct_fields__}
    return RankResult(**{**values, "warnings": (*told, *more, *left, *ranking.warnings)})


def _judged(
    source: AuditResult | str | Path,
) -> tuple[Iterable[Decision], Iterable[Item], list[str]]:
    """Return decisions, the items that came with them, and what is missing."""
    if isinstance(source, AuditResult):
        return source.decisions, source.record.plan.items, _gaps(source.record.run.calls)
    if Path(source).is_dir():
        run = read_run(Path(source))
        items: Iterable[Item] = () if run.recorded else items_of_run(source)
        return decisions_of_run(source), items, _gaps(run.calls)
    imported = import_files("auto", [source])
    if not imported.decisions:
        raise ItemError(
            f"{source}: items without verdicts. Audit them first: unswayed audit {source}"
        )
    return imported.decisions, imported.items, []


def _gaps(calls: CallsRecord) -> list[str]:
    lost = calls.failed + calls.missing
    told = f"{plural(lost, 'call')} failed or {agrees(lost, 'was', 'were')} not made."
    return [told] if lost else []
