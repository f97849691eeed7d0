"""The table of benchmarks: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.base.registry import Registry
from unswayed.data.benchmarks.benchmark import Benchmark

BENCHMARKS: Registry[Benchmark[Any]] = Registry(  # Any: each has a schema of its own
    "benchmark",
    {
        "arc-challenge": "unswayed.data.benchmarks.arc_challenge:ARC_CHALLENGE",
        "auto-j": "unswayed.data.benchmarks.auto_j:AUTO_J",
        "chatbot-arena": "unswayed.data.benchmarks.chatbot_arena:CHATBOT_ARENA",
        "gpqa": "unswayed.data.benchmarks.gpqa:GPQA",
        "hanna": "unswayed.data.benchmarks.hanna:HANNA",
        "judgebench": "unswayed.data.benchmarks.judgebench:JUDGEBENCH",
        "llmbar": "unswayed.data.benchmarks.llmbar:LLMBAR",
        "mmlu": "unswayed.data.benchmarks.mmlu:MMLU",
        "mt-bench": "unswayed.data.benchmarks.mt_bench:MT_BENCH",
        "preference-bench": "unswayed.data.benchmarks.preference_bench:PREFERENCE_BENCH",
        "reward-bench": "unswayed.data.benchmarks.reward_bench:REWARD_BENCH",
        "reward-bench-2": "unswayed.data.benchmarks.reward_bench_2:REWARD_BENCH_2",
        "summeval": "unswayed.data.benchmarks.summeval:SUMMEVAL",
        "tiny-mmlu": "unswayed.data.benchmarks.tiny_mmlu:TINY_MMLU",
        "vicuna-bench": "unswayed.data.benchmarks.vicuna_bench:VICUNA_BENCH",
    },
    like="unswayed.data.benchmarks.benchmark:Benchmark",
)
