"""The table of importers: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.importers.protocol import Importer
from unswayed.registry import Registry

__all__ = ["IMPORTERS"]

IMPORTERS: Registry[Importer[Any]] = Registry(  # Any: each has a schema of its own
    "importer",
    {
        "alpaca-eval": "unswayed.importers.alpaca_eval:ALPACA_EVAL",
        "autoj": "unswayed.importers.autoj:AUTOJ",
        "fastchat": "unswayed.importers.fastchat:FASTCHAT",
        "judgebench": "unswayed.importers.judgebench:JUDGEBENCH",
        "jsonl": "unswayed.importers.jsonl:OWN_DECISIONS",
        "llmbar": "unswayed.importers.llmbar:LLMBAR",
        "mt-bench": "unswayed.importers.mt_bench:MT_BENCH",
        "pa-grpo": "unswayed.importers.pa_grpo:PA_GRPO",
        "prometheus": "unswayed.importers.prometheus:PROMETHEUS",
    },
    like="unswayed.importers.protocol:Importer",
)
