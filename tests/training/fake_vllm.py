"""A server that speaks to trl's client as `vllm serve` does, and samples with transformers.

The endpoints and fields are those that `trl.generation.vllm_client` uses. Weights arrive in a file
(see `stub_of_vllm`); they must be the tensors that were announced, and are what is sampled from.
"""

import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class FakeVllm:
    """One model on 127.0.0.1; a context manager.

    Attributes:
        url: Where it listens.
        transfer: The file that weights arrive in.
        asked: Every request for completions, with the completions it got.
        updates: Names of the tensors of each update.
    """

    def __init__(self, folder, transfer):
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(folder)
        self.transfer, self.asked, self.updates, self.calls = Path(transfer), [], [], []
        self.draw = torch.Generator().manual_seed(0)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.reply(server.get(self.path))

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                server.calls.append(self.path)
                self.reply(server.post(self.path, body))

            def reply(self, answer):
                text = json.dumps(answer).encode()
                self.send_response(404 if answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def get(self, path):
        return {
            "/health": {},
            "/v1/models": {"data": [{"id": "served"}]},
            "/server_info": {"vllm_config": {"weight_transfer_config": {"backend": "nccl"}}},
            "/get_world_size": {"world_size": 1},
        }.get(path.partition("?")[0])

    def post(self, path, body):
        if path == "/v1/completions":
            return self.complete(body)
        if path == "/update_weights":
            return self.load(body["update_info"])
        return {"success": True}

    def load(self, info):
        import torch

        while not self.transfer.exists():
            time.sleep(0.01)
        tensors = torch.load(self.transfer, weights_only=True)
        self.transfer.unlink()
        arrived = [(str(t.dtype).removeprefix("torch."), list(t.shape)) for t in tensors]
        assert arrived == list(zip(info["dtype_names"], info["shapes"], strict=True))
        self.model.load_state_dict(dict(zip(info["names"], tensors, strict=True)), strict=True)
        self.updates.append(info["names"])
        return {}

    def complete(self, body):
        choices = [
            {
                "prompt_token_ids": prompt,
                "token_ids": ids,
                "logprobs": {
                    "tokens": [f"token_id:{token}" for token in ids],
                    "token_logprobs": log_probs,
                    "top_logprobs": [None] * len(ids),
                },
            }
            for prompt in body["prompt"]
            for ids, log_probs in (self.sample(prompt, body) for _ in range(body["n"]))
        ]
        self.asked.append({**body, "completions": [choice["token_ids"] for choice in choices]})
        return {"choices": choices}

    def sample(self, prompt, body):
        import torch

        ids, log_probs = [], []
        while len(ids) < body["max_tokens"]:
            with torch.no_grad():
                logits = self.model(torch.tensor([[*prompt, *ids]])).logits[0, -1].float()
            probs = torch.softmax(logits / body["temperature"], -1)
            token = int(torch.multinomial(probs, 1, generator=self.draw))
            ids.append(token)
            log_probs.append(math.log(probs[token]))
            if token == self.model.generation_config.eos_token_id:
                break
        return ids, log_probs
