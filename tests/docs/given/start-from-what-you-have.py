"""Files that the reader of the page has: two logs of Inspect, as it writes them today, and a batch of OpenAI."""

import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTANDARD = 93  # which zipfile cannot write before Python 3.14
OPTIONS = ("tin", "oak", "salt", "rain")
ORDERS = ((0, 1, 2, 3), (2, 0, 3, 1))
EVAL = {"task": "matter", "model": "openai/gpt-4.1-mini", "dataset": {"name": "matter"}}


def sample(number: int, order: tuple[int, ...]) -> dict[str, object]:
    """A question whose answer is its first option in half of all cases, else the right one."""
    choices = [f"{OPTIONS[candidate]} {number}" for candidate in order]
    right = order.index(number % 4)
    said = 0 if number % 2 else right
    return {
        "id": number,
        "epoch": 1,
        "input": f"Which of these fits question {number}?",
        "choices": choices,
        "target": "ABCD"[right],
        "scores": {"choice": {"value": "C" if said == right else "I", "answer": "ABCD"[said]}},
        "metadata": {},
    }


def write_log(path: Path, order: tuple[int, ...]) -> None:
    """Write an archive whose members are Zstandard: packed here, named as such in their entries."""
    members: dict[str, object] = {"header.json": {"version": 2, "eval": EVAL, "plan": {}}}
    for number in range(1, 41):
        members[f"samples/{number}_epoch_1.json"] = sample(number, order)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, zstd.compress(json.dumps(content).encode()))
    data = bytearray(path.read_bytes())
    entry = archive.start_dir
    for info in archive.infolist():
        text = json.dumps(members[info.filename]).encode()
        for method_at in (info.header_offset + 8, entry + 10):
            struct.pack_into("<H", data, method_at, ZSTANDARD)
            sizes = zlib.crc32(text), info.compress_size, len(text)
            struct.pack_into("<3L", data, method_at + 6, *sizes)
        entry += 46 + len(info.filename)
    path.write_bytes(data)


def write_batch(path: Path) -> None:
    """Write replies to 40 pairs in both orders: the letter A for half of the pairs, else the same answer."""
    lines = []
    for number in range(40):
        for place, order in enumerate(("AB", "BA")):
            said = "A" if number % 2 else "AB"[(number // 2 + place) % 2]
            message = {"role": "assistant", "content": said}
            body = {
                "model": "gpt-4.1-mini",
                "choices": [{"message": message, "finish_reason": "stop"}],
            }
            response = {"status_code": 200, "body": body}
            lines.append({"custom_id": f"q{number}-{order}", "response": response, "error": None})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    write_log(Path("plain.eval"), ORDERS[0])
    write_log(Path("shuffled.eval"), ORDERS[1])
    write_batch(Path("output.jsonl"))
