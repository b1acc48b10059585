"""A backend of three APIs whose model calls one tool a fixed number of times, and which keeps what it received."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOOL = "Bash"


class ScriptedBackend(ThreadingHTTPServer):
    """Answers each request that offers the tool with a call of it, until there have been `rounds`. `received` are the
    bodies of those requests."""

    def __init__(self, rounds: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rounds = rounds
        self.received: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def scripted_backend(rounds: int) -> Iterator[ScriptedBackend]:
    """A started backend, ended after."""
    backend = ScriptedBackend(rounds)
    thread = Thread(target=backend.serve_forever, daemon=True)
    thread.start()
    try:
        yield backend
    finally:
        backend.shutdown()
        thread.join()
        backend.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedBackend
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        offered = f'"{TOOL}"' in json.dumps(body.get("tools"))
        number = None
        if offered:
            self.server.received.append(body)
            if len(self.server.received) <= self.server.rounds:
                number = len(self.server.received)
        path = self.path.partition("?")[0]
        write = _messages if path.endswith("/messages") else _chat if path.endswith("/completions") else _gemini
        data = b"".join(write(number))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Writes no log."""


def _input(number: int) -> dict[str, Any]:
    return {"command": f"echo round {number}", "description": "Prints the number of the round"}


def _events(events: Sequence[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        named = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{named}data: {json.dumps(event)}\n\n".encode()


def _messages(number: int | None) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "Done."}
    if number is not None:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": TOOL, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(_input(number))}
    reason = "end_turn" if number is None else "tool_use"
    yield from _events(
        [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 9},
            },
            {"type": "message_stop"},
        ]
    )


def _chat(number: int | None) -> Iterator[bytes]:
    delta: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if number is not None:
        function = {"name": TOOL, "arguments": json.dumps(_input(number))}
        call = {"index": 0, "id": f"call_{number:04}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    reason = "stop" if number is None else "tool_calls"
    yield from _events(
        [
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        ]
    )
    yield b"data: [DONE]\n\n"


def _gemini(number: int | None) -> Iterator[bytes]:
    part: dict[str, Any] = {"text": "Done."}
    if number is not None:
        part = {"functionCall": {"name": TOOL, "args": _input(number)}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    yield from _events([{"candidates": [candidate], "modelVersion": "m"}])
