"""The table of benchmarks: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.base.registry import Registry
from unswayed.data.benchmarks.benchmark import Benchmark

BENCHMARKS: Registry[Benchmark[Any]] = Registry(  # Any: each has a schema of its own
    "benchmark",
    {
        "arc-challenge": "unswayed.data.benchmarks.mcq:ARC_CHALLENGE",
        "auto-j": "unswayed.data.benchmarks.judged:AUTO_J",
        "chatbot-arena": "unswayed.data.benchmarks.preferences:CHATBOT_ARENA",
        "gpqa": "unswayed.data.benchmarks.mcq:GPQA",
        "hanna": "unswayed.data.benchmarks.scored:HANNA",
        "judgebench": "unswayed.data.benchmarks.judged:JUDGEBENCH",
        "llmbar": "unswayed.data.benchmarks.judged:LLMBAR",
        "mmlu": "unswayed.data.benchmarks.mcq:MMLU",
        "mt-bench": "unswayed.data.benchmarks.preferences:MT_BENCH",
        "preference-bench": "unswayed.data.benchmarks.preferences:PREFERENCE_BENCH",
        "reward-bench": "unswayed.data.benchmarks.reward_bench:REWARD_BENCH",
        "reward-bench-2": "unswayed.data.benchmarks.reward_bench:REWARD_BENCH_2",
        "summeval": "unswayed.data.benchmarks.scored:SUMMEVAL",
        "tiny-mmlu": "unswayed.data.benchmarks.mcq:TINY_MMLU",
        "vicuna-bench": "unswayed.data.benchmarks.judged:VICUNA_BENCH",
    },
    like="unswayed.data.benchmarks.benchmark:Benchmark",
)
