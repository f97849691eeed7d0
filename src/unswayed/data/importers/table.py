"""The table of importers: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.base.registry import Registry
from unswayed.data.importers.protocol import Importer

IMPORTERS: Registry[Importer[Any]] = Registry(  # Any: each has a schema of its own
    "importer",
    {
        "alpaca-eval": "unswayed.data.importers.unordered_pairs:ALPACA_EVAL",
        "autoj": "unswayed.data.importers.joined_pairs:AUTOJ",
        "fastchat": "unswayed.data.importers.pairs:FASTCHAT",
        "fastchat-table": "unswayed.data.importers.pairs:FASTCHAT_TABLE",
        "hanna": "unswayed.data.importers.rated:HANNA",
        "inspect": "unswayed.data.importers.inspect_log:INSPECT",
        "judgebench": "unswayed.data.importers.pairs:JUDGEBENCH",
        "jsonl": "unswayed.data.importers.jsonl:OWN_DECISIONS",
        "lm-eval": "unswayed.data.importers.lm_eval:LM_EVAL",
        "llmbar": "unswayed.data.importers.pairs:LLMBAR",
        "mt-bench": "unswayed.data.importers.joined_pairs:MT_BENCH",
        "pa-grpo": "unswayed.data.importers.pa_grpo:PA_GRPO",
        "pa-grpo-results": "unswayed.data.importers.pa_grpo:PA_GRPO_RESULTS",
        "pandalm": "unswayed.data.importers.joined_pairs:PANDALM",
        "pride": "unswayed.data.importers.pride:PRIDE_FILES",
        "prometheus": "unswayed.data.importers.rated:PROMETHEUS",
        "reward-bench": "unswayed.data.importers.unordered_pairs:REWARD_BENCH",
        "summeval": "unswayed.data.importers.rated:SUMMEVAL",
    },
    like="unswayed.data.importers.protocol:Importer",
)
