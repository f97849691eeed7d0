"""One measured rate and the bound it must keep: what every module in this folder returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Share of trials with an event, where the truth is known.

    Attributes:
        statement: What the program says, such as "a remedy is recommended".
        setting: The judge, the data and their size.
        count, trials: How often of how often; or a sum over trials of shares, such as of the
            accuracy that is lost in each.
        at_most, at_least: The bound on `count / trials` that was promised; None for no bound.
    """

    statement: str
    setting: str
    count: float
    trials: int
    at_most: float | None = None
    at_least: float | None = None

    @property
    def share(self) -> float:
        """`count / trials`, in [0, 1]."""
        return self.count / self.trials

    @property
    def kept(self) -> bool:
        """True if the bounds hold as measured."""
        above = self.at_least is None or self.share >= self.at_least
        return above and (self.at_most is None or self.share <= self.at_most)
