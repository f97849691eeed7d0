"""Messages while a model trains: nothing is learned, why, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

RECENT: Final = 5
"""Logged steps with responses in a row before an alarm is raised."""

GROUPS: Final = 40
"""Groups in them at least: by chance a small batch is empty now and then."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A figure that means that nothing is learned, if it stays what it is for some steps."""

    metric: str  # its name in the log
    text: str  # what it means and what to do; `{recent}` stands for the number of steps
    # whether a value means it; for a share, all of them
    holds: Callable[[float], bool] = lambda share: share >= 1.0


ALARMS: Final = (
    Alarm(
        "group/unparsed",
        "no response of the last {recent} logged steps could be read, so no answer is rewarded and "
        "nothing is learned. If responses are cut off (completions/clipped_ratio in train.jsonl is "
        "1), raise prompt.max_response_tokens, or switch thinking off (chat.enable_thinking = false). Otherwise, "
        "look at the prompt with --dry-run: it does not ask this model for an answer in the form that is read.",
    ),
    Alarm(
        "group/zero_advantage",
        "all responses to an item earned the same reward, for every item of the last {recent} "
        "logged steps, so nothing is learned. If group/agreement and group/accuracy in train.jsonl "
        "are 1, the model is done with these items; else give it items on which it wavers "
        "(unswayed filter), or raise rollout.samples or rollout.temperature.",
    ),
    Alarm(
        "grad_norm",
        "no weight had a gradient in the last {recent} logged steps, so nothing is learned: in every "
        "prompt the model gives its labels no probability, or all of it to one. Look at its answers with unswayed "
        "train advise, fix the prompt, or set target.distill above 0.",
        holds=lambda norm: norm == 0.0,
    ),
)
"""The first that holds is raised: where nothing is read all rewards are equal, too, and where they
are equal there may be no gradient."""


def steps_before_alarm(items_per_step: int) -> int:
    """Return the number of steps in a row that show no learning, with so many groups in each."""
    return max(RECENT, -(-GROUPS // items_per_step))


@dataclass(slots=True)
class Alarms:
    """Raises each alarm once in a run."""

    recent: int = RECENT  # logged steps in a row before an alarm
    # logged steps with responses in a row, by metric, in which its alarm held
    streaks: dict[str, int] = field(default_factory=dict)
    raised: set[str] = field(default_factory=set)  # the metrics whose alarm has been raised

    def of(self, metrics: Mapping[str, float]) -> str | None:
        """Return the message after this line of the log, if any.

        A line without a figure says nothing about it: a check of the held-out items, or a further
        update with the same responses.
        """
        for alarm in ALARMS:
            if (share := metrics.get(alarm.metric)) is not None:
                streak = self.streaks.get(alarm.metric, 0)
                self.streaks[alarm.metric] = streak + 1 if alarm.holds(share) else 0
        for alarm in ALARMS:
            if self.streaks.get(alarm.metric, 0) >= self.recent:
                if alarm.metric in self.raised:
                    return None
                self.raised.add(alarm.metric)
                return alarm.text.format(recent=self.recent)
        return None
