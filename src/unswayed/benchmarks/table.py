"""The table of benchmarks: one line registers one."""

from __future__ import annotations

from typing import Any

from unswayed.benchmarks.benchmark import Benchmark
from unswayed.registry import Registry

BENCHMARKS: Registry[Benchmark[Any]] = Registry(  # Any: each has a schema of its own
    "benchmark",
    {
        "arc-challenge": "unswayed.benchmarks.arc_challenge:ARC_CHALLENGE",
        "auto-j": "unswayed.benchmarks.auto_j:AUTO_J",
        "chatbot-arena": "unswayed.benchmarks.chatbot_arena:CHATBOT_ARENA",
        "gpqa": "unswayed.benchmarks.gpqa:GPQA",
        "hanna": "unswayed.benchmarks.hanna:HANNA",
        "judgebench": "unswayed.benchmarks.judgebench:JUDGEBENCH",
        "llmbar": "unswayed.benchmarks.llmbar:LLMBAR",
        "mmlu": "unswayed.benchmarks.mmlu:MMLU",
        "mt-bench": "unswayed.benchmarks.mt_bench:MT_BENCH",
        "preference-bench": "unswayed.benchmarks.preference_bench:PREFERENCE_BENCH",
        "reward-bench": "unswayed.benchmarks.reward_bench:REWARD_BENCH",
        "reward-bench-2": "unswayed.benchmarks.reward_bench_2:REWARD_BENCH_2",
        "summeval": "unswayed.benchmarks.summeval:SUMMEVAL",
        "tiny-mmlu": "unswayed.benchmarks.tiny_mmlu:TINY_MMLU",
        "vicuna-bench": "unswayed.benchmarks.vicuna_bench:VICUNA_BENCH",
    },
    like="unswayed.benchmarks.benchmark:Benchmark",
)
