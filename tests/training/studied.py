"""The modules of the study, imported as its script does, and what its tests make with them."""

import functools
import importlib
import sys
from dataclasses import replace
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from unswayed.tiny.backend import WEIGHTS

STUDY = Path(__file__).parents[2] / "examples" / "study"
NAMES = (
    "arms",
    "held_out",
    "inference",
    "loop",
    "objective",
    "outcome",
    "page_tables",
    "run",
    "settings",
    "supervised",
    "tables",
    "world",
)


@functools.cache
def modules():
    """By name."""
    sys.path.insert(0, str(STUDY))
    try:
        return {name: importlib.import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(STUDY))


@functools.cache
def untrained():
    """The built-in judge."""
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    return model.requires_grad_(False)


def setting_of(study, name, **changes):
    """A setting of the study by name, changed."""
    named = {setting.name: setting for setting in study["settings"].SETTINGS}
    return replace(named[name], **changes)


def pool_of(study, base, setting, wanted=50, seed=0):
    items, kept = study["world"].inconsistent_items(base, setting, seed, wanted=wanted)
    return study["world"].make_pool(items, kept, setting, seed)


def loss_of(study, base, pool, setting, arm):
    """The arm's loss of a batch, at the base itself; the same samples in every call."""
    torch.manual_seed(0)
    job = study["settings"].Job(setting, arm, 0)
    return study["objective"].objective(base, base, pool, job, torch.device("cpu"))
