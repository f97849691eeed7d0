"""Measure a judged call over HTTP next to the usual clients, each in an environment of its own.

    python benchmarks/peers.py [--calls 2000] [--rounds 5] [--connections 32]
        [--openai VENV/bin/python] [--litellm VENV/bin/python] [--inspect VENV/bin/python]

Starts a server process that answers at once with a canned completion (that of `http_calls.py`), and
has every client ask it as many calls, one process after the other in every round:

    aiohttp        posts of ready bodies by bare aiohttp
    audit          `us.audit`, both orders of pairs: prompts, calls, database, figures, `metrics.json`
    judge          `Judge.averdicts` of single calls: prompts, calls, parsing, verdicts
    openai         `AsyncOpenAI().chat.completions.create`
    litellm        `litellm.acompletion`
    inspect        `Model.generate` of Inspect (inspect_ai), its cache and logs off

Peers send the judge's prompts (system and user message, temperature, logprobs), and read the answer's
text. CPU time is that of the whole process, its start and imports included, and *the calls alone* what it
used from its first call on; medians of the rounds. Everybody's modules (and our templates) were compiled
by a round of four calls before. A peer that is not given is skipped.

    python -m venv openai && openai/bin/pip install openai         # litellm; inspect_ai openai
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import http_calls
from evidence_table import Table, add_write

PROMPTS = "prompts.json"
COMPILING = 4
"""Calls of the first round, which is not measured: it compiles what an installed package has compiled."""
OURS = {
    "aiohttp": """
import aiohttp
async def work():
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Content-Type": "application/json"},
    ) as session:
        async def call(messages):
            body = json.dumps({"model": "benchmark", "messages": messages, **OPTIONS})
            async with session.post(URL + "/chat/completions", data=body) as response:
                reply = json.loads(await response.read())
                return reply["choices"][0]["message"]["content"]
        await all_of(call)
""",
    "audit": """
import tempfile
import unswayed as us
from unswayed.model.items import ItemSet
async def work():
    pairs = [us.Item(id=str(i), prompt=p, candidates=(a, b), gold=i % 2)
             for i, (p, a, b) in enumerate(PAIRS[: len(PROMPTS) // 2])]
    with tempfile.TemporaryDirectory() as out:
        result = us.audit("openai/benchmark", ItemSet.of(pairs, name="peers"), out=out,
                          base_url=URL, max_connections=CONNECTIONS)
    assert result.run["calls"]["made"] == 2 * len(pairs), result.run["calls"]
""",
    "judge": """
import unswayed as us
async def work():
    items = [us.Item(id=str(i), prompt=p, candidates=(a, b)) for i, (p, a, b) in enumerate(PAIRS)]
    judge = us.Judge("openai/benchmark", method="direct", base_url=URL, max_connections=CONNECTIONS)
    verdicts = [verdict.choice async for verdict in judge.averdicts(items)]
    await judge.aclose()
    assert len(verdicts) == len(PROMPTS) and None not in verdicts
""",
}
PEERS = {
    "openai": """
import openai
async def work():
    client = openai.AsyncOpenAI(api_key="none", base_url=URL, max_retries=0)
    async def call(messages):
        reply = await client.chat.completions.create(
            model="benchmark", messages=messages, **OPTIONS)
        return reply.choices[0].message.content
    await all_of(call)
""",
    "litellm": """
import litellm
async def work():
    async def call(messages):
        reply = await litellm.acompletion(
            model="openai/benchmark", messages=messages, api_key="none", api_base=URL, **OPTIONS)
        return reply.choices[0].message.content
    await all_of(call)
""",
    "inspect": """
from inspect_ai.model import (
    ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model)
async def work():
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    config = GenerateConfig(max_connections=CONNECTIONS, **OPTIONS)
    model = get_model("openai/benchmark", base_url=URL, api_key="none", config=config,
                      responses_api=False)
    async def call(messages):
        reply = await model.generate([kinds[m["role"]](content=m["content"]) for m in messages])
        return reply.completion
    await all_of(call)
""",
}
FRAME = """
import asyncio, json, sys, time
URL, CONNECTIONS = sys.argv[1], int(sys.argv[2])
with open(sys.argv[3]) as file:
    asked = json.load(file)
PROMPTS, PAIRS, OPTIONS = asked["prompts"], asked["pairs"], asked["options"]
async def all_of(call):
    waiting = iter(PROMPTS)
    async def worker():
        return [await call(messages) for messages in waiting]
    texts = sum(await asyncio.gather(*(worker() for _ in range(CONNECTIONS))), [])
    assert len(texts) == len(PROMPTS) and set(texts) <= {"A", "B"}
"""
END = """
before = time.process_time()
asyncio.run(work())
print(time.process_time() - before)
"""
VERSION_OF = {"openai": "openai", "litellm": "litellm", "inspect": "inspect_ai"}


class Measured(NamedTuple):
    """CPU milliseconds per call: the whole process, and from the first call on."""

    whole: float
    calls: float


def write_prompts(n: int, path: Path) -> None:
    """Write the prompts that every client sends, in the words of the judge."""
    from unswayed.prompts import PromptSettings, render

    prompts = [
        [
            {"role": message.role, "content": message.content}
            for message in render(item, ask, PromptSettings()).messages
        ]
        for item, ask in http_calls.questions(n, 0)
    ]
    pairs = [(item.prompt, *item.candidates) for item in http_calls.items(n, 0)]
    options = {"temperature": 0.0, "max_tokens": 16, "logprobs": True, "top_logprobs": 20}
    path.write_text(json.dumps({"prompts": prompts, "pairs": pairs, "options": options}))


def measured(python: str, code: str, url: str, connections: int, prompts: Path) -> Measured:
    """One process that makes all calls."""
    n = len(json.loads(prompts.read_text())["prompts"])
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [python, "-c", FRAME + code + END, url, str(connections), str(prompts)],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PYTHONPYCACHEPREFIX": str(prompts.parent / "bytecode")},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{python} failed:\n{done.stderr[-2000:]}")
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(whole / n * 1e3, float(done.stdout.split()[-1]) / n * 1e3)


def version_of(python: str, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def show(
    names: Sequence[str], rounds: Sequence[dict[str, Measured]], shown: dict[str, str]
) -> Table:
    table = Table(
        (
            "client",
            "whole process, CPU-ms per call",
            "multiple of aiohttp",
            "calls alone, CPU-ms per call",
            "calls alone, multiple of aiohttp",
        )
    )
    for name in names:
        row = [measured[name] for measured in rounds]
        floors = [measured["aiohttp"] for measured in rounds]
        pairs = list(zip(row, floors, strict=True))
        table.add(
            shown[name],
            f"{statistics.median(one.whole for one in row):.3f}",
            f"{statistics.median(one.whole / floor.whole for one, floor in pairs):.1f}",
            f"{statistics.median(one.calls for one in row):.3f}",
            f"{statistics.median(one.calls / floor.calls for one, floor in pairs):.1f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of a call, ours and others'")
    parser.add_argument("--calls", type=int, default=2000, help="an even number")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=32)
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"that of {name}'s environment")
    add_write(parser, "performance")
    arguments = parser.parse_args()
    pythons = {name: getattr(arguments, name) for name in PEERS}
    for name, python in pythons.items():
        if python is None:
            print(f"{name} is skipped: give --{name} PYTHON of an environment that has it")
    code = {**OURS, **{name: PEERS[name] for name, python in pythons.items() if python}}
    shown = {
        name: f"{name} {version_of(pythons[name], VERSION_OF[name])}" if name in PEERS else name
        for name in code
    }
    os.environ.pop("OPENAI_API_KEY", None)
    server = subprocess.Popen(
        [sys.executable, http_calls.__file__, "--serve", "--latency-ms", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    began = time.strftime("%Y-%m-%d")
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        with tempfile.TemporaryDirectory() as folder:
            few, prompts = Path(folder) / "few.json", Path(folder) / PROMPTS
            write_prompts(COMPILING, few)
            write_prompts(arguments.calls, prompts)
            _, *rounds = [
                {
                    name: measured(
                        pythons.get(name) or sys.executable,
                        work,
                        url,
                        arguments.connections,
                        asked,
                    )
                    for name, work in code.items()
                }
                for asked in (few, *[prompts] * arguments.rounds)
            ]
    finally:
        server.kill()
        server.wait()
    print(
        f"{began}: {arguments.rounds} rounds of {arguments.calls} calls, "
        f"{arguments.connections} connections, CPU-ms per call"
    )
    table = show(list(code), rounds, shown)
    if arguments.write:
        table.keep("performance", "clients")


if __name__ == "__main__":
    main()
