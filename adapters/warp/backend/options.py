"""Defines the adapter's own keys of a Warp backend entry in settings.json."""

from typing import Literal

import msgspec


class WarpOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to encode requests and decode responses. By default the requests state the fact that the client is Dragoman.

    `encoding`: `flatten` sends the conversation as one text, `structured` as the wire's own task log.
    `path` is joined to the backend's base_url.
    `client_id` and `client_version` identify the gateway; facts about the operating system are sent only when set.
    `server_name` and `server_id` are the name and the id of the tool server that holds the client's tools.
    `reasoning`: whether the model's reasoning is requested.
    `native_tools`: `drop` skips a call of the wire's own tools (`grep`, `read_files`, ...) with a warning;
    `expose` forwards calls of `run_shell_command`, the only tool whose fields are decoded, to a client that declares
    it, with the arguments that it declares.
    `rollback`: `buffer` holds the events of a transaction until it is committed; `stream` emits text at once.
    `strict_frames`: an invalid frame fails the stream; otherwise it is skipped with a warning.
    `accept_hex`: frames in hexadecimal are decoded too.
    `prompted`: a client's demand (`tool_choice`, `response_format`) without a field on the wire is rejected unless it
    is listed here; then the prompt asks for it, and a response that does not meet it is an error.
    `empty_answer`: a finished response without any output is a `stop` with a warning, or an error.
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
    prompted: tuple[Literal["tool_choice", "response_format"], ...] = ()
    empty_answer: Literal["stop", "error"] = "stop"
