"""CPU of `unswayed serve` per decision, without the model: python benchmarks/serving.py

A stand-in for the model answers at once from one prepared body, in a process of its own. A client in this process
posts decisions to the server, which runs in a third process; only that one's CPU is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import aiohttp

UPSTREAM = """
import asyncio, json, sys
from aiohttp import web
async def answer(request):
    asked = (await request.json())["questions"]
    answers = {}
    for name, question in asked.items():
        options = list(question["criteria"])
        probs = {option: 1 / len(options) for option in options}
        answers[name] = {"type": "choice", "choice": options[0], "confidence": 0.0, "probabilities": probs}
    usage = {"input_tokens": 100, "output_tokens": 0}
    return web.json_response({"model": "m", "answers": answers, "usage": usage})
async def main():
    app = web.Application()
    app.router.add_post("/v1/systemone", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


def cpu_s(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def body(n: int, number: int) -> bytes:
    criteria = {f"option {place}": f"What option {place} means" for place in range(n)}
    question = {"type": "choice", "instructions": "Who helps?", "criteria": criteria}
    return json.dumps(
        {"model": "m", "state": f"Case {number}.", "questions": {"q": question}}
    ).encode()


async def decided(url: str, n: int, count: int, at_once: int) -> None:
    """Post so many decisions, `at_once` of them at a time."""
    numbers = iter(range(count))
    async with aiohttp.ClientSession() as http:

        async def ask() -> None:
            for number in numbers:
                async with http.post(url, data=body(n, number)) as reply:
                    assert reply.status == 200
                    await reply.read()

        await asyncio.gather(*(ask() for _ in range(at_once)))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--options", type=int, nargs="+", default=[2, 4, 8])
    given = parser.parse_args(arguments)
    upstream = subprocess.Popen([sys.executable, "-c", UPSTREAM], stdout=subprocess.PIPE, text=True)
    assert upstream.stdout is not None
    address = f"http://127.0.0.1:{upstream.stdout.readline().strip()}/v1"
    command = [sys.executable, "-m", "unswayed", "serve", "systemone/m", "--base-url", address]
    server = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = f"{server.stdout.readline().split()[-1]}/v1/systemone"
        print(f"median of {given.rounds} rounds of {given.decisions} decisions")
        for n in given.options:
            asyncio.run(decided(url, n, 20, 1))  # the probe, and what is loaded once
            cpu, wall = [], []
            for _ in range(given.rounds):
                begun, used = time.perf_counter(), cpu_s(server.pid)
                asyncio.run(decided(url, n, given.decisions, 8))
                cpu.append((cpu_s(server.pid) - used) / given.decisions * 1e3)
                wall.append((time.perf_counter() - begun) / given.decisions * 1e3)
            print(
                f"{n} options in {n} orders: {statistics.median(cpu):.2f} ms CPU per decision "
                f"({min(cpu):.2f} to {max(cpu):.2f}), {statistics.median(wall):.2f} ms wall"
            )
    finally:
        for process in (server, upstream):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
