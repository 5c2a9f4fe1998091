"""A provider of our own on the loopback: speaks OpenAI's two APIs, answers from a script."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

EMPTY_LINKING = {"reasoning": "nothing", "links": [], "pruned": [], "confidence": 1.0}
INPUT_TOKENS, OUTPUT_TOKENS = 1000, 100


@dataclass(frozen=True)
class Reply:
    """What the provider answers to one request.

    Attributes:
        arguments: Of the call of the output tool, as it stands in the answer.
        cut_off: Whether the answer ended at the limit of its length.
        refusal: What it says instead of answering.
        status: HTTP status; past 399 the answer is an error.
        headers: Of the response.
        hollow: Whether the answer has nothing where the model's words belong.
        hangs: Whether it never answers.
    """

    arguments: str = ""
    cut_off: bool = False
    refusal: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hollow: bool = False
    hangs: bool = False


def answering(answer: object) -> Reply:
    """The answer as a well-formed tool call."""
    return Reply(arguments=json.dumps(answer))


def failing(status: int, **headers: str) -> Reply:
    """An HTTP error, with headers given as ``retry_after="2"``."""
    return Reply(status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


@dataclass
class Asked:
    """One request that the provider received."""

    at: float
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Everything that was sent, as text."""
        return json.dumps(self.body)

    @property
    def links(self) -> bool:
        """Whether it asks for links."""
        return r"\"task\":\"link\"" in self.text


@dataclass
class Provider:
    """The running server.

    Attributes:
        url: For ``OPENAI_BASE_URL``.
        extractions: Replies to come for requests to extract, in order; then the last again.
        linkings: The same for requests to link; with none, there is nothing to link.
        asked: What was received.
    """

    url: str
    extractions: list[Reply] = field(default_factory=list)
    linkings: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def script(self, *replies: Reply) -> None:
        """These replies come next, to requests to extract."""
        self.extractions[:] = replies
        self.asked.clear()

    @property
    def read(self) -> list[Asked]:
        """Requests to extract."""
        return [one for one in self.asked if not one.links]

    def reply(self, asked: Asked) -> Reply:
        """The next reply."""
        if asked.links:
            return self.linkings.pop(0) if self.linkings else answering(EMPTY_LINKING)
        return self.extractions.pop(0) if len(self.extractions) > 1 else self.extractions[0]


@asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    """A provider on a free port of the loopback."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            asked = await _read(reader)
            running.asked.append(asked)
            reply = running.reply(asked)
            if reply.hangs:
                # Until the client gives up.
                await reader.read()
            else:
                writer.write(_response(asked, reply))
                await writer.drain()
        finally:
            serving.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    running = Provider(f"http://127.0.0.1:{port}/v1")
    try:
        yield running
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = json.loads(await reader.readexactly(int(headers["content-length"])))
    return Asked(time.monotonic(), first.split(" ")[1], headers, body)


def _response(asked: Asked, reply: Reply) -> bytes:
    if reply.status >= 400:
        content: object = {"error": {"message": "no", "type": "test", "code": None}}
    elif asked.path.endswith("/responses"):
        content = _as_response(asked, reply) | ({"output": None} if reply.hollow else {})
    else:
        content = _as_completion(asked, reply) | ({"choices": []} if reply.hollow else {})
    body = json.dumps(content).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **reply.headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {reply.status} Scripted\r\n{head}\r\n".encode() + body


def _as_completion(asked: Asked, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": reply.refusal}
    if reply.refusal is None:
        name = asked.body["tools"][0]["function"]["name"]
        function = {"name": name, "arguments": reply.arguments}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    finish = "length" if reply.cut_off else "stop" if reply.refusal else "tool_calls"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": asked.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _as_response(asked: Asked, reply: Reply) -> dict[str, Any]:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": asked.body["tools"][0]["name"],
        "arguments": reply.arguments,
        "status": "incomplete" if reply.cut_off else "completed",
    }
    refusal = {"type": "refusal", "refusal": reply.refusal}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [refusal],
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1767225600,
        "status": "incomplete" if reply.cut_off else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if reply.cut_off else None,
        "error": None,
        "model": asked.body["model"],
        "output": [call if reply.refusal is None else message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }
