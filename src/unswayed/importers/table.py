"""The table of importers: one line registers one."""

from __future__ import annotations

from unswayed.importers.protocol import Importer
from unswayed.registry import Registry

__all__ = ["IMPORTERS"]

IMPORTERS: Registry[type[Importer]] = Registry(
    "importer",
    {
        "alpaca-eval": "unswayed.importers.alpaca_eval:AlpacaEval",
        "autoj": "unswayed.importers.autoj:AutoJ",
        "fastchat": "unswayed.importers.fastchat:FastChat",
        "judgebench": "unswayed.importers.judgebench:JudgeBench",
        "jsonl": "unswayed.importers.jsonl:OwnDecisions",
        "llmbar": "unswayed.importers.llmbar:LLMBar",
        "mt-bench": "unswayed.importers.mt_bench:MTBench",
    },
)
