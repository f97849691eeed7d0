"""Check what sampling responses needs: enough of them, and a vLLM that the installed trl can use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final
from urllib.parse import urlsplit

from unswayed.base.errors import MissingExtraError, UsageError
from unswayed.base.registry import install_command
from unswayed.training.recipe_parts import Recipe, Rollout

LEAST_SAMPLES: Final = 2
"""trl compares the samples of one prompt, and refuses to sample one."""

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "transformers": (),
    "vllm-colocate": ("vllm",),
    "vllm-server": ("vllm", "requests"),
}
"""Packages of trl's extra `vllm` that each way to sample uses in the training processes. A server's
client is also built on vLLM, for the transfer of weights."""


def check_rollout(recipe: Recipe) -> None:
    """Check how trl samples responses."""
    rollout = recipe.rollout
    if rollout.samples < LEAST_SAMPLES:
        raise UsageError(
            f"rollout.samples is {rollout.samples}: a sample's advantage is its distance from the "
            f"others, and trl refuses fewer than {LEAST_SAMPLES} of a prompt. Set rollout.samples "
            f"to {LEAST_SAMPLES} or more (the paper's is 8), or train pif, which samples nothing."
        )
    check_vllm(rollout.engine)
    address = urlsplit(rollout.server_url or "")
    reachable = address.scheme in ("http", "https") and address.hostname
    if rollout.engine == "vllm-server" and not reachable:
        raise UsageError(
            f"rollout.server_url {rollout.server_url!r} is not the address of a vLLM server. "
            'Write it as "http://HOST:PORT".'
        )


def check_vllm(engine: str) -> None:
    """Check that what a rollout engine uses is installed, in the range that trl's own metadata states."""
    from packaging.requirements import Requirement
    from packaging.version import Version

    wanted = {
        requirement.name: requirement
        for requirement in map(Requirement, requires("trl") or ())
        if requirement.marker is not None and requirement.marker.evaluate({"extra": "vllm"})
    }
    for package in NEEDED[engine]:
        requirement = wanted.get(package, Requirement(package))
        asked = f"{package} {requirement.specifier}".strip()
        remedy = (
            f'Install it with: {install_command("vllm")}, or set rollout.engine = "transformers".'
        )
        try:
            installed = version(package)
        except PackageNotFoundError:
            raise MissingExtraError(
                f"rollout.engine {engine} needs {asked} (trl {version('trl')}), which is not "
                f"installed. {remedy}"
            ) from None
        # A local build such as 0.24.0+cu129 sorts above 0.24.0, the highest that is allowed.
        release = Version(installed).base_version
        if not requirement.specifier.contains(release, prereleases=True):
            raise UsageError(
                f"rollout.engine {engine} needs {asked} (trl {version('trl')}), and {installed} is "
                f"installed. {remedy}"
            )


def check_heads(rollout: Rollout, heads: int) -> None:
    """Check that the GPUs of one vLLM in the training processes share a model's attention heads."""
    if rollout.engine == "vllm-colocate" and heads % rollout.tensor_parallel:
        raise UsageError(
            f"rollout.tensor_parallel {rollout.tensor_parallel} does not divide the model's {heads} attention "
            f"heads. Set it to a divisor."
        )


def check_parallel(rollout: Rollout, processes: int) -> None:
    """Check that the processes of accelerate are whole vLLM models."""
    parallel = rollout.tensor_parallel
    if rollout.engine == "vllm-colocate" and processes % parallel:
        raise UsageError(
            f"rollout.tensor_parallel {parallel} does not divide the {processes} processes of this "
            "run, which share the model that samples. Start it with accelerate launch "
            f"--num_processes {parallel * 2}, say (a dry run reads WORLD_SIZE), or set "
            "rollout.tensor_parallel to 1."
        )
