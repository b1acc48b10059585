"""Lists the faults of a backend that ignores a field of a request, without a word."""

from collections.abc import Mapping
from typing import Final

from gateway.core.conversation import JsonObject
from gateway.demo.faults.fault import API_WIRES, CHAT, Fault


def _ignoring(field: str, wires: tuple[str, ...], *paths: str) -> Fault[object]:
    """Returns a fault that does not read the fields at these paths, which are those of all its wires."""

    def reads(body: JsonObject) -> JsonObject:
        for path in paths:
            body = _without(body, path.split("."))
        return body

    return Fault(f"it ignores {field}", wires=wires, reads=reads)


def _without(body: JsonObject, path: list[str]) -> JsonObject:
    first, *rest = path
    inner = body.get(first)
    if rest and isinstance(inner, dict):
        return {**body, first: dict(_without(inner, rest))}
    return body if rest else {name: value for name, value in body.items() if name != first}


IGNORED_FIELDS: Final[Mapping[str, Fault[object]]] = {
    "ignores_stop": _ignoring(
        "stop sequences",
        ("chat", "messages", "gemini", "text"),
        "stop",
        "stop_sequences",
        "generationConfig.stopSequences",
    ),
    "ignores_max_tokens": _ignoring(
        "the limit of tokens",
        ("chat", "responses", "gemini", "text"),
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "generationConfig.maxOutputTokens",
        "n_predict",
    ),
    "ignores_response_format": _ignoring(
        "the format of the answer",
        API_WIRES,
        "response_format",
        "output_config",
        "text",
        "generationConfig.responseMimeType",
    ),
    "ignores_n": _ignoring("n: it gives one choice", CHAT, "n"),
    "ignores_logprobs": _ignoring("logprobs: it gives none", CHAT, "logprobs", "top_logprobs"),
    "ignores_tools": _ignoring("the tools", API_WIRES, "tools", "tool_choice", "toolConfig"),
    "ignores_stream": _ignoring(
        "`stream`: it answers with one object", ("chat", "messages", "responses", "text"), "stream"
    ),
}
