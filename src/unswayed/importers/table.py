"""The table of importers: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.importers.protocol import Importer
from unswayed.registry import Registry

IMPORTERS: Registry[Importer[Any]] = Registry(  # Any: each has a schema of its own
    "importer",
    {
        "alpaca-eval": "unswayed.importers.unordered_pairs:ALPACA_EVAL",
        "autoj": "unswayed.importers.joined_pairs:AUTOJ",
        "fastchat": "unswayed.importers.pairs:FASTCHAT",
        "fastchat-table": "unswayed.importers.pairs:FASTCHAT_TABLE",
        "hanna": "unswayed.importers.rated:HANNA",
        "inspect": "unswayed.importers.inspect_log:INSPECT",
        "judgebench": "unswayed.importers.pairs:JUDGEBENCH",
        "jsonl": "unswayed.importers.jsonl:OWN_DECISIONS",
        "lm-eval": "unswayed.importers.lm_eval:LM_EVAL",
        "llmbar": "unswayed.importers.pairs:LLMBAR",
        "mt-bench": "unswayed.importers.mt_bench:MT_BENCH",
        "pa-grpo": "unswayed.importers.pa_grpo:PA_GRPO",
        "pa-grpo-results": "unswayed.importers.pa_grpo_results:PA_GRPO_RESULTS",
        "pandalm": "unswayed.importers.joined_pairs:PANDALM",
        "pride": "unswayed.importers.pride:PRIDE_FILES",
        "prometheus": "unswayed.importers.rated:PROMETHEUS",
        "reward-bench": "unswayed.importers.unordered_pairs:REWARD_BENCH",
        "summeval": "unswayed.importers.rated:SUMMEVAL",
    },
    like="unswayed.importers.protocol:Importer",
)
