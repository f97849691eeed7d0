"""Rows that share a prompt, computed once: different rows, and trees of responses under a prompt.

For the log-probabilities of N responses to one prompt trl computes N rows [prompt, response]. Two
forms need less and give the same numbers:

- `Rows`: equal rows are computed once. Exact for every architecture; where the answer is a letter
  alone, 8 samples are 2 or 3 different rows.
- `Trees`: a prompt is computed once, and its different responses follow it in one sequence. Each
  branch sees the prompt and itself, at the positions it would have in a row of its own. The
  prompt's last token opens every branch, because it predicts the first token of the response.

`SharedForward` stands where the model does and chooses by counting tokens, never by timing, so the
same batch always takes the same path. Whatever it chooses, it calls the model once: processes that
share sharded weights stay in step.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch import Tensor

UNSCORED: Final = -100
"""Label of a token that is not scored, as torch has it."""

GAIN: Final = 0.9
"""A form is taken if it computes at most this share of the tokens of the one before it."""

MASK_CELLS: Final = 2**26
"""Largest attention mask of trees, in cells: 64 MiB as booleans."""

CALL: Final = {"input_ids", "attention_mask", "labels", "fused_lm_head"}
"""What trl calls the model with for log-probabilities; any other call goes through unchanged."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The different rows of a batch, sorted by prompt."""

    # ids, mask, labels: of the U different rows, shape (U, L)
    ids: Tensor
    mask: Tensor
    labels: Tensor
    row_of: Tensor  # which of them each row of the batch is, shape (B,)
    prompt_of: Tensor  # which prompt each of them has, shape (U,), rising from 0
    start: int  # column of the first response token

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor, labels: Tensor) -> Rows | None:
        """Return the different rows of a batch; None if nothing in it is scored.

        Tokens have prompts on the left and responses on the right, shape (B, L); `labels` are the tokens
        that are scored and `UNSCORED` elsewhere.
        """
        import torch

        scored = (labels != UNSCORED).any(dim=0).nonzero()
        if len(scored) == 0 or int(scored[0]) == 0:
            return None
        start, length = int(scored[0]), ids.shape[1]
        whole = torch.stack([ids, mask.to(ids.dtype), labels], dim=2).flatten(1)  # prompts first
        whole, row_of = torch.unique(whole, dim=0, return_inverse=True)
        opens = (whole[1:, : 3 * start] != whole[:-1, : 3 * start]).any(dim=1)
        prompt_of = torch.cat([opens.new_zeros(1), opens]).cumsum(0)
        ids, mask, labels = whole.view(-1, length, 3).unbind(2)
        return cls(ids, mask, labels, row_of, prompt_of, start)

    @property
    def tokens(self) -> int:
        """Tokens that are computed."""
        return self.ids.numel()

    def inputs(self) -> dict[str, Tensor]:
        """Return the model's arguments."""
        return {"input_ids": self.ids, "attention_mask": self.mask, "labels": self.labels}

    def spread(self, values: Tensor) -> Tensor:
        """Values of every row of the batch, shape (B, L - 1), from the model's, (U, L - 1)."""
        return values[self.row_of]


@dataclass(frozen=True, slots=True)
class Trees:
    """One sequence per prompt: the prompt, then its different responses side by side.

    A response of T tokens is T columns: the prompt's last token and all but its own last, each
    labelled with the token that follows it. G prompts with up to K responses make sequences of
    W = start - 1 + K * T + 1 columns; the last one only carries a label.
    """

    rows: Rows  # what is computed
    branch_of: Tensor  # which of its prompt's responses each different row is, shape (U,)
    branches: int  # K

    @classmethod
    def of(cls, rows: Rows) -> Trees:
        """Return the trees of different rows."""
        import torch

        sizes = torch.bincount(rows.prompt_of)
        first = sizes.cumsum(0) - sizes
        at = torch.arange(len(rows.prompt_of), device=rows.ids.device)
        return cls(rows, at - first[rows.prompt_of], int(sizes.max()))

    @property
    def shape(self) -> tuple[int, int]:
        """Sequences and their columns: (G, W)."""
        rows = self.rows
        length = rows.ids.shape[1] - rows.start
        return int(rows.prompt_of[-1]) + 1, rows.start + self.branches * length

    @property
    def tokens(self) -> int:
        """Tokens that are computed."""
        count, width = self.shape
        return count * width

    def inputs(self) -> dict[str, Tensor]:
        """Return the model's arguments; the attention mask has shape (G, 1, W, W)."""
        import torch

        rows, (count, width) = self.rows, self.shape
        ids, mask = rows.ids.new_zeros(count, width), rows.mask.new_zeros(count, width)
        labels = rows.labels.new_full((count, width), UNSCORED)
        prompt, before = slice(0, rows.start - 1), slice(rows.start - 1, -1)
        sequence, column = rows.prompt_of[:, None], self._columns()
        ids[sequence, column], mask[sequence, column] = rows.ids[:, before], rows.mask[:, before]
        ids[rows.prompt_of, prompt] = rows.ids[:, prompt]
        mask[rows.prompt_of, prompt] = rows.mask[:, prompt]
        labels[sequence, column + 1] = rows.labels[:, rows.start :]
        position, branch = self._places()
        sees = (branch[:, None] == branch) | (branch == -1)
        sees = sees.tril()
        sees = sees & mask.bool()[:, None, :]
        # A padded column sees itself: without anything to attend to, attention would be NaN.
        sees |= torch.eye(width, dtype=torch.bool, device=ids.device)
        return {
            "input_ids": ids,
            "attention_mask": sees[:, None],
            "position_ids": position.expand(count, -1),
            "labels": labels,
        }

    def spread(self, values: Tensor) -> Tensor:
        """Values of every row of the batch, shape (B, L - 1), from the model's, (G, W - 1)."""
        rows = self.rows
        responses = values[rows.prompt_of[:, None], self._columns()][rows.row_of]
        whole = values.new_zeros(len(responses), rows.ids.shape[1] - 1)
        whole[:, rows.start - 1 :] = responses
        return whole

    def _columns(self) -> Tensor:
        """Return the columns of each different row's response in its sequence, shape (U, T)."""
        import torch

        rows = self.rows
        length = rows.ids.shape[1] - rows.start
        token = torch.arange(length, device=rows.ids.device)
        return rows.start - 1 + self.branch_of[:, None] * length + token

    def _places(self) -> tuple[Tensor, Tensor]:
        """Position and branch of each column, shapes (W,); the prompt is branch -1."""
        import torch

        start, length = self.rows.start, self.rows.ids.shape[1] - self.rows.start
        column = torch.arange(self.shape[1], device=self.rows.ids.device)
        after = column - (start - 1)
        branch = torch.where(after < 0, -1, after // length)
        return torch.where(after < 0, column, start - 1 + after % length), branch


@dataclass(frozen=True, slots=True)
class SharedForward:
    """A model that computes equal rows once, and prompts once where trees are less work."""

    model: Any  # called as trl calls it, once per call
    trees: bool  # whether the model takes trees; see `trees_hold`

    def __call__(self, **inputs: Any) -> Any:
        """Log-probabilities (and entropies) of every row, shape (B, L - 1).

        B rows of L tokens are computed as U different rows if U * L is at most 0.9 of B * L, and
        as G trees of W tokens if G * W is at most 0.9 of what is left and their mask is small.
        """
        form = self._form(inputs) if set(inputs) == CALL else None
        if form is None:
            return self.model(**inputs)
        outputs = self.model(**form.inputs(), fused_lm_head=True)
        entropy = None if outputs.entropy is None else form.spread(outputs.entropy)
        return SimpleNamespace(log_probs=form.spread(outputs.log_probs), entropy=entropy)

    def __getattr__(self, name: str) -> Any:
        """Anything else that is asked of the model."""
        return getattr(self.model, name)

    def _form(self, inputs: dict[str, Any]) -> Rows | Trees | None:
        tokens = inputs["input_ids"].numel()
        rows = Rows.of(inputs["input_ids"], inputs["attention_mask"], inputs["labels"])
        if rows is None:
            return None
        best: Rows | Trees | None = rows if rows.tokens <= GAIN * tokens else None
        trees = Trees.of(rows)
        fits = self.trees and trees.tokens * trees.shape[1] <= MASK_CELLS
        if fits and trees.tokens <= GAIN * (tokens if best is None else best.tokens):
            best = trees
        return best


def trees_hold(model: Any, vocabulary: int) -> bool:
    """Return True if trees give a model's own numbers, tried on six short rows of arbitrary tokens."""
    import torch

    device = next(model.parameters()).device
    ids = (torch.arange(6 * 9, device=device).view(6, 9) * 7919 + 13) % vocabulary
    ids[:, :6] = ids[:1, :6]  # two prompts: whole, and padded on the left
    mask = torch.ones_like(ids)
    mask[3:, :2] = 0
    mask[5, 8:] = 0
    labels = ids.masked_fill(mask == 0, UNSCORED)
    labels[:, :6] = UNSCORED
    rows = Rows.of(ids, mask, labels)
    assert rows is not None
    with torch.no_grad():
        plain = model(**rows.inputs(), fused_lm_head=True).log_probs
        trees = Trees.of(rows)
        branched = trees.spread(model(**trees.inputs(), fused_lm_head=True).log_probs)
    difference = float((plain[rows.row_of] - branched).abs().max())
    exact = plain.dtype == torch.float32 and not torch.is_autocast_enabled(device.type)
    return difference <= (1e-3 if exact else 0.1)
