"""Arms of the study, each as the terms that it minimises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from unswayed.training.reward_settings import Advantage

Target = Literal["gold", "weighed", "own"]
"""What every presentation is trained towards: the gold, the gold weighed against the base's own
average by how noisy it seems, or that average alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """An objective: the sum of the terms that it has.

    Attributes:
        reward: Consistency reward of the package, "none" for the answer's own; None: no reward.
        advantage: What a sampled answer is compared with; None: nothing is sampled, the
            expectation of the reward is climbed.
        paid: Whether right answers are paid for; False leaves the consistency reward alone.
        lam: Weight of the consistency reward; None: the setting's.
        target: What every presentation is trained towards, if anything.
        weight: Of that term.
        tau: Temperature of the base's own average.
        pairs: Whether a batch is random pairs of item and presentation instead of whole groups.
        divergence: Weight of the Jensen-Shannon divergence between the presentations.
        pif: Changes (`--set`) of `train pif --recipe tiny-judge`; None: not that loss.
    """

    reward: str | None = None
    advantage: Advantage | None = None
    paid: bool = True
    lam: float | None = None
    target: Target | None = None
    weight: float = 1.0
    tau: float = 1.0
    pairs: bool = False
    divergence: float = 0.0
    pif: Mapping[str, str] | None = None

    @property
    def reads_gold(self) -> bool:
        """True if another gold would make another model of it."""
        paid = self.reward is not None and self.paid
        return paid or self.target in ("gold", "weighed") or self.pif is not None


_GOLD_ALONE: Final = {"pif.negatives": "0", "pif.content_weight": "0"}
"""Without negatives and content what is left of PIF is the cross-entropy on the gold label."""

ARMS: Final[Mapping[str, Arm]] = {
    "GRPO": Arm(reward="none", advantage="prompt"),
    "+r_con": Arm(reward="con", advantage="prompt"),
    "+A_PA (EIS-GRPO)": Arm(reward="none", advantage="group"),
    "PA-GRPO": Arm(reward="con", advantage="group"),
    "inv": Arm(reward="inv", advantage="group"),
    "joint": Arm(reward="joint", advantage="group"),
    "probability-weighted": Arm(reward="probability-weighted", advantage="group"),
    "mode": Arm(reward="mode", advantage="group"),
    "exact none": Arm(reward="none"),
    "exact pair": Arm(reward="pair"),
    "exact inv": Arm(reward="inv"),
    "exact inv, lambda 3": Arm(reward="inv", lam=3.0),
    "exact inv + distill": Arm(reward="inv", target="own", weight=0.5),
    "exact inv + distill 1": Arm(reward="inv", target="own"),
    "permuted SFT": Arm(pif=_GOLD_ALONE),
    "SFT + inv": Arm(reward="inv", paid=False, target="gold"),
    "weighed gold": Arm(target="weighed"),
    "PIF": Arm(pif={}),
    "distill": Arm(target="own"),
    "distill, random pairs": Arm(target="own", pairs=True),
    "distill, tau 0.5": Arm(target="own", tau=0.5),
    "JS": Arm(divergence=1.0),
    "pair only": Arm(reward="pair", paid=False),
    "inv only": Arm(reward="inv", paid=False),
}

PAPER: Final = ("GRPO", "+r_con", "+A_PA (EIS-GRPO)", "PA-GRPO")
"""The four arms of the paper's Table 2."""

RIVALS: Final = (*PAPER, "permuted SFT", "PIF")
"""What training has done so far."""

FINALISTS: Final = (
    "GRPO",
    "PA-GRPO",
    "inv",
    "exact inv",
    "exact inv + distill",
    "permuted SFT",
    "distill",
)
"""The arms that are tried again, on what is held out and on another base; chosen beforehand."""

STEPPED: Final = (*RIVALS, "inv", "exact pair", "exact inv", "exact inv + distill", "distill")
"""Arms that are also measured on the way."""
