"""Calls in a provider's batches: requests as files to upload, results from a folder.

The id of a request is the key of its call in hex, so a result needs no table beside it.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from unswayed.backends.client import HttpBackend
from unswayed.backends.faults import Fault, HttpReply, server_words, shown
from unswayed.backends.protocol import Outcome
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import ServerError, UsageError, WaitingError
from unswayed.base.files import LARGEST, whole_file
from unswayed.model.calls import Failure, Query, Response, key_of
from unswayed.store import Pool

HALF: Final = 0.5
"""Price of a call in a batch, as a share of the list price."""
MOST_REFUSED: Final = 2
"""Refusals of a call after which it has failed; other errors are always sent again."""
ENVELOPE: Final = 100
"""Bytes that an upload may add to the requests."""
NULL: Final = msgspec.Raw(b"null")


class RequestFormat(NamedTuple):
    """Request files of one provider."""

    most_lines: int
    most_bytes: int
    before_body: bytes
    steps: str


_CHAT: Final = b',"method":"POST","url":"/v1/chat/completions","body":'
_OPENAI: Final = """\
  curl {url}/files -H "Authorization: Bearer $OPENAI_API_KEY" -F purpose=batch -F file=@FILE
  curl {url}/batches -H "Authorization: Bearer $OPENAI_API_KEY" -H "Content-Type: application/json" \
-d '{{"input_file_id": "FILE_ID", "endpoint": "/v1/chat/completions", "completion_window": "24h"}}'
  curl {url}/files/OUTPUT_FILE_ID/content -H "Authorization: Bearer $OPENAI_API_KEY" > {folder}/NAME.jsonl
Download the error file in the same way."""
_VLLM: Final = "  vllm run-batch -i FILE -o {folder}/NAME.jsonl --model {model}"
_ANTHROPIC: Final = """\
  (printf '{{"requests":['; paste -sd, FILE; printf ']}}') | curl {url}/messages/batches \
-H "x-api-key: $ANTHROPIC_API_KEY" -H "anthropic-version: 2023-06-01" -H "content-type: application/json" --data-binary @-
  curl {url}/messages/batches/BATCH_ID/results -H "x-api-key: $ANTHROPIC_API_KEY" \
-H "anthropic-version: 2023-06-01" > {folder}/NAME.jsonl"""
FORMATS: Final = {
    "anthropic": RequestFormat(100_000, 256_000_000, b',"params":', _ANTHROPIC),
    "openai": RequestFormat(50_000, 200_000_000, _CHAT, _OPENAI),
    "openai-api": RequestFormat(50_000, 200_000_000, _CHAT, _VLLM),
}
"""Keys are the providers in names of models."""


class _Reply(msgspec.Struct):
    status_code: int | None = None
    body: msgspec.Raw = NULL


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


class _Line(msgspec.Struct):
    """A line of OpenAI and vLLM (`response`, `error`) or Anthropic (`result`); a request has none of these."""

    custom_id: str
    response: _Reply | None = None
    error: msgspec.Raw = NULL
    result: _Result | None = None

    @property
    def key(self) -> bytes:
        try:
            return bytes.fromhex(self.custom_id)
        except ValueError:  # it is not ours
            return self.custom_id.encode()

    @property
    def reply(self) -> HttpReply | None:
        """Reply of the server, with status 0 if it gave none; None for a request."""
        error, status = bytes(self.error), 0
        if self.result is not None:
            error = bytes(self.result.error)
            if self.result.type == "succeeded":
                return HttpReply(200, {}, bytes(self.result.message))
            status = 400 if b'"invalid_request' in error else 0
            return HttpReply(status, {}, self.result.type.encode() if error == b"null" else error)
        if self.response is not None:
            status = self.response.status_code or 0
        if error != b"null":
            return HttpReply(0 if status == 200 else status, {}, error)
        return HttpReply(status, {}, bytes(self.response.body)) if self.response else None


_LINE: Final = msgspec.json.Decoder(_Line)


class BatchFolder:
    """Result files of batches, those of subfolders too, and the requests that are still to be uploaded."""

    def __init__(self, model: HttpBackend, path: Path) -> None:
        self.path = path
        self._model = model
        self._format = FORMATS[model.model.partition("/")[0]]
        self._results = defaultdict[bytes, list[tuple[Path, int, int]]](list)  # offset and size
        self._asked: set[bytes] = set()
        self._failed: dict[bytes, Failure] = {}  # calls with errors only, and the last of them
        self._given_up: set[bytes] = set()
        self._remarks: list[str] = []
        for file in sorted(filter(Path.is_file, path.rglob("*.jsonl"))):
            self._find(file)

    def _find(self, path: Path) -> None:
        offset, number, bad = 0, 0, list[int]()
        with path.open("rb") as file:
            while raw := file.readline(LARGEST):
                number += 1
                try:
                    line = _LINE.decode(raw)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    bad += [number] if raw.strip() else []
                else:
                    if line.reply is not None:
                        self._results[line.key].append((path, offset, len(raw)))
                offset += len(raw)
        if bad:
            self._remarks.append(
                f"{path}: {plural(len(bad), 'line')} {agrees(len(bad), 'is not a result', 'are not results')} "
                f"of a batch, such as line {bad[0]}. Download the file again if it holds results."
            )

    def _read(self, key: bytes) -> Iterator[Response | Fault]:
        """Yield the answers to a call and its faults; a repeated line adds nothing."""
        lines = []
        for path, offset, size in self._results.get(key, ()):
            with path.open("rb") as file:
                file.seek(offset)
                lines.append(file.read(size).strip())
        for line in dict.fromkeys(lines):
            reply = _LINE.decode(line).reply
            if reply is not None and reply.status:
                yield self._model.read(reply)
            elif reply is not None:
                words = shown(server_words(reply.body), self._model.address)
                yield Fault(error=ServerError, message=f"batch: {words}", again=True)

    def outcome(self, key: bytes, query: Query) -> Outcome | None:
        """Return the answer to a call, its failure if it was refused twice, or None if it is to be sent.

        What a model's server refuses in a request is left out of the next ones.
        """
        self._asked.add(key)
        model, adapt, faults = self._model, self._model.dialect.adapt, list[Fault]()
        for read in self._read(key):
            if isinstance(read, Response):
                return model.finish(read, query.request, model.traits, took=0.0, attempts=1)
            if read.detail and adapt(model.dialect.traits, read.detail, query.request):
                model.learn(adapt(model.traits, read.detail, query.request) or model.traits)
            else:
                faults.append(read)
        refusals = [fault for fault in faults if not fault.again]
        for fault in (refusals or faults)[-1:]:
            self._failed[key] = Failure(
                error=fault.error.__name__,
                message=f"{query.item.id}: {fault.message}",
                status=fault.status,
                attempts=len(faults),
            )
        if len(refusals) < MOST_REFUSED:
            return None
        self._given_up.add(key)
        return self._failed.pop(key)

    def remarks(self, pool: Pool) -> tuple[str, ...]:
        """Return what the user should know about the files, once every call was looked up."""
        others = [key for key in self._results if key not in self._asked]
        if foreign := len(others) - len(pool.recorded(others)):
            belong = agrees(foreign, "belongs", "belong")
            self._remarks.append(
                f"{plural(foreign, 'result')} in {self.path} {belong} to no call of this audit. Check that --batch "
                f"names its folder."
            )
        return tuple(self._remarks)

    def write(self, queries: Iterable[Query], name: str) -> list[tuple[Path, int]]:
        """Write the requests of calls that are to be sent, in as many files as the provider takes.

        Return the files and their numbers of requests. Older request files of the same name are removed.
        """
        upload, files, form = self.path / "upload", dict[Path, int](), self._format
        lines = filter(None, map(self._request, queries))
        line = next(lines, b"")
        try:
            while line:
                upload.mkdir(parents=True, exist_ok=True)
                path, size, count = upload / f"{name}-{len(files) + 1}.jsonl", ENVELOPE, 0
                with whole_file(path) as file:
                    while line and count < form.most_lines:
                        if count and size + len(line) > form.most_bytes:
                            break
                        size, count = size + file.write(line), count + 1
                        line = next(lines, b"")
                files[path] = count
            for path in upload.glob("*.jsonl"):
                if path not in files and re.fullmatch(rf"{re.escape(name)}-\d+", path.stem):
                    path.unlink()
        except OSError as error:
            raise UsageError.cannot(
                f"write requests to {upload}", error, "Choose another --batch."
            ) from None
        return list(files.items())

    def _request(self, query: Query) -> bytes:
        """Return the line that asks a query; empty if its call has failed."""
        key = key_of(query.request)
        body = self._model.dialect.encode(query.request, self._model.traits)
        parts = key.hex().encode(), self._format.before_body, body
        return b"" if key in self._given_up else b'{"custom_id":"%s"%s%s}\n' % parts

    def waiting(self, files: Sequence[tuple[Path, int]], n_calls: int) -> WaitingError:
        """Return the message that says how to upload requests."""
        n = sum(count for _, count in files)
        lines = [
            f"{n:,} of {plural(n_calls, 'call')} {agrees(n, 'has', 'have')} no answer in {self.path} yet."
        ]
        for failure in [*self._failed.values()][:1]:
            again = len(self._failed)
            lines.append(
                f"{plural(again, 'call')} failed and {agrees(again, 'is', 'are')} sent again, such as "
                f"{failure.message.rstrip('.')}."
            )
        lines += [*self._remarks, "Upload each file once:"]
        lines += [f"  {path} ({plural(count, 'request')})" for path, count in files]
        lines += [
            self._format.steps.format(
                url=self._model.address.shown,
                folder=shlex.quote(str(self.path)),
                model=shlex.quote(self._model.model.split("/", 2)[-1]),
            ),
            f"Save all results as .jsonl files in {self.path}, then run the same command again.",
        ]
        return WaitingError("\n".join(lines))
