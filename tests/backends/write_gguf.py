"""Write a Llama folder as GGUF: `python write_gguf.py FOLDER OUT.gguf`.

Runs in the interpreter that has llama.cpp, so it imports nothing of unswayed. Weights stay in
float32; query and key rows are reordered, since GGUF's rotary embedding pairs neighbours where
transformers pairs halves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
CONTROL, ORDINARY = 3, 1


def write(folder: Path, out: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(str(out), "llama")
    width, heads = config["hidden_size"], config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(width)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(width // heads)
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(0)
    add_tokenizer(writer, folder, config)
    add_weights(writer, load_file(folder / "model.safetensors"), config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: gguf.GGUFWriter, folder: Path, config: dict[str, int]) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    control = {added["content"] for added in tokenizer["added_tokens"]}
    merges = tokenizer["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if token in control else ORDINARY for token in tokens])
    writer.add_token_merges(
        [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]
    )
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)  # the chat template writes it
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def add_weights(
    writer: gguf.GGUFWriter, weights: dict[str, np.ndarray], config: dict[str, int]
) -> None:
    heads = config["num_attention_heads"]

    def neighbours(rows: np.ndarray) -> np.ndarray:
        halves = rows.reshape(heads, 2, -1, rows.shape[1])
        return halves.swapaxes(1, 2).reshape(rows.shape)

    def tensor(name: str) -> np.ndarray:
        return weights[f"model.{name}.weight"].astype(np.float32)

    writer.add_tensor("token_embd.weight", tensor("embed_tokens"))
    writer.add_tensor("output.weight", tensor("embed_tokens"))  # tied
    writer.add_tensor("output_norm.weight", tensor("norm"))
    for layer in range(config["num_hidden_layers"]):
        for theirs, ours in LAYER_TENSORS.items():
            values = tensor(f"layers.{layer}.{theirs}")
            if ours in {"attn_q", "attn_k"}:
                values = np.ascontiguousarray(neighbours(values))
            writer.add_tensor(f"blk.{layer}.{ours}.weight", values)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
