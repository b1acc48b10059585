"""What a backend entry of settings.json may say about the Warp wire."""

from typing import Literal

import msgspec


class WarpOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to speak the wire. Every default tells the truth: the client that calls is Dragoman.

    `encoding`: `flatten` sends the conversation as one text, `structured` as the task log the wire has for it.
    `path` is joined to the backend's base_url.
    `client_id` and `client_version` name us; the facts about the operating system are sent only when given.
    `server_name` and `server_id` are the name and the id of the tool server that holds the client's tools.
    `reasoning`: whether the model's reasoning is asked for.
    `native_tools`: `drop` passes over a call of the wire's own tools (`grep`, `read_files`, ...) with a warning;
    `expose` lets a client that declares `run_shell_command` have its calls, the only ones whose fields are read here.
    `rollback`: `buffer` holds the events of a transaction until it is committed; `stream` emits text at once.
    `strict_frames`: a frame that cannot be read fails the stream; otherwise it is skipped with a warning.
    `accept_hex`: frames in hexadecimal are read too.
    `empty_answer`: a finished answer without any output is a `stop` with a warning, or an error.
    """

    encoding: Literal["flatten", "structured"] = "flatten"
    path: str = "/ai/multi-agent"
    client_id: str = "dragoman"
    client_version: str = "0.1.0"
    os_category: str | None = None
    os_name: str | None = None
    os_version: str | None = None
    server_name: str = "custom_tools"
    server_id: str = "8a0d4f5e-3c52-5d0b-9c5e-6a1f7f2b9e11"
    reasoning: bool = True
    native_tools: Literal["drop", "expose"] = "drop"
    rollback: Literal["buffer", "stream"] = "buffer"
    strict_frames: bool = True
    accept_hex: bool = False
    empty_answer: Literal["stop", "error"] = "stop"
