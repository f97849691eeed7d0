"""A trainer that writes down what it trained with, and the check against the plain oracle."""

from pathlib import Path

import plain_pa_grpo
from small_models import small_plan

from unswayed.training import pa_grpo
from unswayed.training.table import OBJECTIVES


def traced_class(original):
    """A trainer whose `trace` gets one record per generated batch of this process."""

    class Traced(original):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.trace = []

        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            ids, mask = out["completion_ids"], out["completion_mask"].bool()
            self.trace.append(
                {
                    "rows": [example["row"] for example in inputs],
                    "ids": [row[kept].tolist() for row, kept in zip(ids, mask, strict=True)],
                    "texts": self.processing_class.batch_decode(ids, skip_special_tokens=True),
                    "advantages": out["advantages"].tolist(),
                    "logged": list(self._logs["advantages"]),
                }
            )
            return out

    return Traced


def traced_trainer(model, out, n, *, kind="pa-grpo", items=6, **changes):
    """A traced trainer, its data and its reward."""
    plan = small_plan(model, kind, items, n, **changes)
    original = pa_grpo.trainer_class()
    pa_grpo.trainer_class = lambda: traced_class(original)
    try:
        trainer = OBJECTIVES.load(kind).build(plan, Path(out))
    finally:
        pa_grpo.trainer_class = lambda: original
    return trainer, plan.groups, plan.settings


def largest_error(batch, groups, settings, n_samples):
    """Largest difference between what was trained with and Eq. 6-12, over one whole batch.

    Labels are read here by their letter alone, and mapped by the order shown.
    """
    n_presentations = groups.n_presentations
    unit = n_presentations * n_samples
    worst, different = 0.0, set()
    for start in range(0, len(batch["rows"]), unit):
        rows = [groups.rows[row] for row in batch["rows"][start : start + unit]]
        assert len({row.item_id for row in rows}) == 1
        choices = []
        for row, text in zip(rows, batch["texts"][start : start + unit], strict=True):
            letter = text.strip()
            shown = letter in "ABCD"[: rows[0].n] and len(letter) == 1
            choices.append(row.shown.order["ABCD".index(letter)] if shown else -1)
        table = [choices[t * n_samples : (t + 1) * n_samples] for t in range(n_presentations)]
        case = {
            "choices": table,
            "gold": list(rows[0].gold),
            "well_formed": [[True] * n_samples] * n_presentations,
            "settings": {
                "consistency": settings.consistency,
                "advantage": settings.advantage,
                "lam": settings.lam,
                "epsilon": settings.epsilon,
                "delta": settings.delta,
                "ddof": settings.ddof,
            },
        }
        total = plain_pa_grpo.plain_total(case)
        expected = plain_pa_grpo.plain_advantages(total, case["settings"])
        flat = [value for row in expected for value in row]
        found = batch["advantages"][start : start + unit]
        worst = max(worst, *(abs(a - b) for a, b in zip(flat, found, strict=True)))
        different.update(round(value, 6) for value in found)
    return worst, len(different)
