"""Six responses of different lengths, and the loss of a recipe for them by its formula."""

from types import SimpleNamespace

import torch

LENGTHS = torch.tensor([1, 2, 9, 5, 3, 7])


def loss_example(loss, entropy_over):
    """Tensors of the responses, shape (6, 9), and `PolicyLoss` by hand.

    The entropy is a mean over all `tokens` (trl) or over `responses` first (verl).
    """
    draw = torch.Generator().manual_seed(0)
    mask = (torch.arange(9)[None] < LENGTHS[:, None]).float()
    old = -3 * torch.rand(6, 9, generator=draw)
    new, ref = (old + 0.4 * torch.randn(6, 9, generator=draw) for _ in range(2))
    entropy, advantages = torch.rand(6, 9, generator=draw), torch.randn(6, generator=draw)
    ratio, gain = (new - old).exp(), advantages[:, None]
    clipped = ratio.clamp(1 - loss.clip[0], 1 + loss.clip[1])
    tokens = -torch.minimum(ratio * gain, clipped * gain)
    tokens += loss.kl * ((ref - new).exp() - (ref - new) - 1)  # k3

    def over_responses(values):
        return ((values * mask).sum(1) / LENGTHS).mean()

    over_tokens = (entropy * mask).sum() / LENGTHS.sum()
    bonus = over_tokens if entropy_over == "tokens" else over_responses(entropy)
    wanted = over_responses(tokens) - loss.entropy * bonus
    fields = {"mask": mask, "old": old, "new": new, "ref": ref, "entropy": entropy}
    return SimpleNamespace(**fields, advantages=advantages, wanted=wanted)
