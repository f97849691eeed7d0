"""One line that says how far a training is, and how it goes."""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from unswayed.calls.progress import duration
from unswayed.training.held_out import figures_of
from unswayed.training.rewards.score import PARTS
from unswayed.training.run_folder import SETTLED

WINDOW: Final = 21
"""Recent steps whose median is the time of a step: a save or a check now and then does not count."""

SHARES: Final[Mapping[str, str]] = {
    "group/agreement": "agree",
    "group/accuracy": "right",
    "group/unparsed": "unparsed",
    "completions/clipped_ratio": "cut off",
    "group/zero_advantage": "no advantage",
    "clip_ratio/region_mean": "clipped",
}
"""Shares of responses, groups and tokens in the log, and what the line calls them."""

NUMBERS: Final[Mapping[str, str]] = {
    "distillation": "distillation",
    "cross_entropy": "cross-entropy",
    "variance": "variance",
    "kl": "KL",
    "entropy": "entropy",
    "loss": "loss",
}
"""The rest of the line: as in the log."""

CHOICES: Final[Mapping[str, str]] = {
    f"{SETTLED}temperature": "the average's temperature {:g}",
    f"{SETTLED}wrong_gold": "{:.0%} of the gold taken for wrong",
}
"""What was settled before training: said once."""


class StepLines:
    """A live line on a terminal, a line for every logged step elsewhere; checks stay in both.

    What was settled before training is said once, above the first step.
    """

    def __init__(
        self, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._live = self._stream.isatty()
        self._width = 0
        self._settled = ""
        self._last: tuple[float, float] | None = None
        self._steps_s: deque[float] = deque(maxlen=WINDOW)

    def __call__(self, line: Mapping[str, float]) -> None:
        """Show a log line."""
        text = describe(line, step_s=self._step_time(line) if "loss" in line else None)
        stays = bool(figures_of(line))
        settled = ", ".join(
            words.format(line[key]) for key, words in CHOICES.items() if key in line
        )
        if settled and settled != self._settled:
            self._write(f"{f'settled: {settled}'.ljust(self._width)}\n")
            self._settled = settled
        if not self._live or stays:
            self._write(f"{text.ljust(self._width)}\n")
            self._width = 0
            return
        text = text[: shutil.get_terminal_size().columns - 1]
        self._write(f"{text.ljust(self._width)}\r")  # what is said next begins at the left
        self._width = len(text)

    def close(self) -> None:
        """Leave the live line as it stands."""
        if self._width:
            self._write("\n")
            self._width = 0

    def _step_time(self, line: Mapping[str, float]) -> float | None:
        """Seconds a step takes; None before there are two lines to tell from."""
        now, step = self._clock(), line["step"]
        if self._last is not None and step > self._last[1]:
            self._steps_s.append((now - self._last[0]) / (step - self._last[1]))
        self._last = now, step
        return statistics.median(self._steps_s) if self._steps_s else None

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def describe(line: Mapping[str, float], *, step_s: float | None) -> str:
    """Return the line: step, time left, reward with its parts, shares of the responses, parts of the loss.

    What the log line of a step or of a held-out check does not have is left out.
    """
    place = f"{line['step']:>6.0f}/{line['steps']:.0f}"
    figures = figures_of(line)
    if figures:
        named = ", ".join(f"{figure.name} {figure}" for figure in figures)
        return f"{place} · {line['held_out/items']:.0f} held-out items: {named}"
    parts = [place]
    if step_s is not None:
        if line["step"] < line["steps"]:
            parts.append(f"{duration((line['steps'] - line['step']) * step_s)} left")
        parts.append(f"{step_s:.2g} s/step" if step_s < 10 else f"{step_s:.0f} s/step")
    if "reward" in line:
        means = {name: line.get(f"rewards/{name}/mean") for name in PARTS}
        made_of = ", ".join(
            f"{name} {round(mean, 2) + 0.0:.2f}" for name, mean in means.items() if mean is not None
        )
        parts.append(f"reward {line['reward']:.3f}{f' ({made_of})' if made_of else ''}")
    parts += [f"{name} {line[key]:.0%}" for key, name in SHARES.items() if key in line]
    parts += [f"{name} {line[key]:.4g}" for key, name in NUMBERS.items() if key in line]
    return " · ".join(parts)
