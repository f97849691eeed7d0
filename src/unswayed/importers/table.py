"""The table of importers: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.importers.protocol import Importer
from unswayed.registry import Registry

IMPORTERS: Registry[Importer[Any]] = Registry(  # Any: each has a schema of its own
    "importer",
    {
        "alpaca-eval": "unswayed.importers.alpaca_eval:ALPACA_EVAL",
        "autoj": "unswayed.importers.autoj:AUTOJ",
        "fastchat": "unswayed.importers.fastchat:FASTCHAT",
        "fastchat-table": "unswayed.importers.fastchat_table:FASTCHAT_TABLE",
        "hanna": "unswayed.importers.hanna:HANNA",
        "inspect": "unswayed.importers.inspect_log:INSPECT",
        "judgebench": "unswayed.importers.judgebench:JUDGEBENCH",
        "jsonl": "unswayed.importers.jsonl:OWN_DECISIONS",
        "lm-eval": "unswayed.importers.lm_eval:LM_EVAL",
        "llmbar": "unswayed.importers.llmbar:LLMBAR",
        "mt-bench": "unswayed.importers.mt_bench:MT_BENCH",
        "pa-grpo": "unswayed.importers.pa_grpo:PA_GRPO",
        "pa-grpo-results": "unswayed.importers.pa_grpo_results:PA_GRPO_RESULTS",
        "pandalm": "unswayed.importers.pandalm:PANDALM",
        "pride": "unswayed.importers.pride:PRIDE_FILES",
        "prometheus": "unswayed.importers.prometheus:PROMETHEUS",
        "reward-bench": "unswayed.importers.reward_bench:REWARD_BENCH",
        "summeval": "unswayed.importers.summeval:SUMMEVAL",
    },
    like="unswayed.importers.protocol:Importer",
)
