"""Exchanges with the backends of the presets, as a gateway that has the preset would record them: five kinds, in the
words of one series. The responses are messages of the published schemas."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
from google.protobuf.json_format import ParseDict

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.proto.backend.schema import Method, Schema, message_class
from adapters.proto.learn import KnownAnswer, KnownError, RecordedExchange
from gateway.core.answer import read_answer
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.diagnostics.trial import try_response
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from gateway.settings import check_options
from tests.adapters.proto.backend.mappings import DELTAS, LISTS, PARTS, SET, SINGLE, TALK, Entry
from tests.adapters.proto.backend.services import WRITERS, grpc

Message = dict[str, Any]
_WEATHER: Final[Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
_TRAIN: Final[Json] = {"type": "object", "properties": {"to": {"type": "string"}}}
TOOLS: Final[list[Json]] = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "Tells the weather of a place.", "parameters": _WEATHER},
    },
    {"type": "function", "function": {"name": "find_train", "description": "Finds trains.", "parameters": _TRAIN}},
]


class Said(msgspec.Struct, frozen=True):
    """What a backend answers: pieces of reasoning and of text, calls, the end, and the counts of tokens."""

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, dict[str, Json]], ...] = ()
    finish: str = "stop"
    prompt: int = 0
    completion: int = 0
    thought: int = 0
    id: str = ""
    model: str = ""
    error: str = ""
    stop: str = ""


def call(call_id: str, name: str, **arguments: Json) -> Json:
    written = json.dumps(arguments, separators=(",", ":"))
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


def requests(word: str, *, forced: bool) -> dict[str, dict[str, Json]]:
    """One request of each kind; `word` is in all of its texts. `forced`: the backend can be made to call a tool."""
    model: Json = f"model-{word}"
    tools: dict[str, Json] = {"tools": TOOLS}
    required: dict[str, Json] = {"tool_choice": "required"} if forced else {}
    named: dict[str, Json] = {"tool_choice": {"type": "function", "function": {"name": "find_train"}}} if forced else {}
    size = len(word)
    return {
        "plain": {
            "model": model,
            "messages": [
                {"role": "system", "content": f"Be brief about {word}."},
                {"role": "user", "content": f"What is {word}?"},
            ],
            "max_tokens": 64 + size,
            "temperature": 0.5,
            "stop": [f"END {word}"],
        },
        "stream": {
            "model": model,
            "stream": True,
            "messages": [
                {"role": "user", "content": f"Count, {word}."},
                {"role": "assistant", "content": f"One {word}."},
                {"role": "user", "content": f"Go on, {word}."},
            ],
            "seed": 40 + size,
            "top_p": 0.75,
            "stop": ["END", f"HALT {word}"],
        },
        "tool": {
            "model": model,
            "messages": [
                {"role": "system", "content": f"Use tools for {word}."},
                {"role": "user", "content": f"How is {word}?"},
            ],
            **tools,
            **required,
        },
        "parallel": {
            "model": model,
            "stream": True,
            "messages": [
                {"role": "user", "content": f"Weather of and trains to {word}?"},
                {
                    "role": "assistant",
                    "content": f"I look for {word}.",
                    "tool_calls": [
                        call(f"call_a{size}", "get_weather", city=word, days=2),
                        call(f"call_b{size}", "find_train", to=word),
                    ],
                },
                {"role": "tool", "tool_call_id": f"call_a{size}", "content": f"sunny in {word}"},
                {"role": "tool", "tool_call_id": f"call_b{size}", "content": f"at noon to {word}"},
            ],
            **tools,
            **named,
        },
        "error": {
            "model": model,
            "messages": [{"role": "user", "content": f"Fail, {word}!"}],
            "max_tokens": 900 + size,
            **tools,
            "tool_choice": "none",
        },
    }


def answers(word: str) -> dict[str, Said]:
    """What the backend answers to each kind of request."""
    size = len(word)
    model = f"engine-{word}"
    return {
        "plain": Said(
            (f"{word} is a word.",),
            (f"They ask about {word}.",),
            prompt=20 + size,
            completion=9,
            thought=3,
            id=f"r-{word}-1",
            stop=f"END {word}",
            model=model,
        ),
        "stream": Said(
            (f"Two {word}", ", three", f" {word}, fo"),
            finish="length",
            prompt=31,
            completion=7 + size,
            id=f"r-{word}-2",
            model=model,
        ),
        "tool": Said(
            (),
            calls=((f"call_1{word}", "get_weather", {"city": word, "days": size}),),
            finish="tool_calls",
            prompt=50,
            completion=12 + size,
            id=f"r-{word}-3",
            model=model,
        ),
        "parallel": Said(
            ("I ask ", f"twice for {word}. "),
            ("Both for ", f"{word}."),
            (
                (f"call_2{word}", "get_weather", {"city": f"old {word}", "days": 1}),
                (f"call_3{word}", "find_train", {"to": f"new {word}"}),
            ),
            "tool_calls",
            90 + size,
            33,
            8,
            f"r-{word}-4",
            model,
        ),
        "error": Said(error=f"The engine for {word} is out of order.", id=f"r-{word}-5", model=model),
    }


def _words(said: Said, words: Mapping[str, str]) -> str:
    return words[said.finish]


def _in_text(said: Said) -> tuple[str, ...]:
    """The pieces of the text of a backend that writes calls in it."""
    written = [
        f"<tool_call>{json.dumps({'name': name, 'arguments': given})}</tool_call>" for _, name, given in said.calls
    ]
    return (*said.text, *written)


def _json(arguments: Mapping[str, Json]) -> str:
    return json.dumps(arguments, separators=(",", ":"))


def demo(said: Said) -> list[Message]:
    finish = {"stop": "FINISH_STOP", "length": "FINISH_LENGTH", "tool_calls": "FINISH_TOOL_CALLS"}
    head: Message = {"id": said.id, "model": said.model}
    if said.error:
        return [head, {"finish": "FINISH_FAILED"}]
    parts: list[Message] = [*({"reasoning": one} for one in said.reasoning), *({"text": one} for one in said.text)]
    parts += [{"call": {"id": key, "name": name, "arguments": given}} for key, name, given in said.calls]
    counts = {"prompt_tokens": said.prompt, "completion_tokens": said.completion, "reasoning_tokens": said.thought}
    return [head, *parts, {"finish": _words(said, finish), "usage": counts}]


def google(said: Said) -> list[Message]:
    head: Message = {"response_id": said.id, "model_version": said.model}
    if said.error:
        return [{**head, "prompt_feedback": {"block_reason": "OTHER"}}]
    parts: list[Message] = [*({"text": one, "thought": True} for one in said.reasoning)]
    parts += [{"text": one} for one in said.text]
    calls: list[Message] = [{"function_call": {"name": name, "args": given}} for _, name, given in said.calls]
    content: list[Message] = [
        {**head, "candidates": [{"content": {"role": "model", "parts": below}}]}
        for below in [*([part] for part in parts), *([calls] if calls else [])]
    ]
    finish = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP"}
    answered = said.completion - said.thought
    counts = {
        "prompt_token_count": said.prompt,
        "candidates_token_count": answered,
        "thoughts_token_count": said.thought,
        "total_token_count": said.prompt + said.completion,
    }
    return [*content, {"candidates": [{"finish_reason": _words(said, finish)}], "usage_metadata": counts, **head}]


def xai(said: Said) -> list[Message]:
    head: Message = {"id": said.id, "model": said.model}
    if said.error:
        return []
    deltas: list[Message] = [{"reasoning_content": one} for one in said.reasoning]
    deltas += [{"content": one} for one in said.text]
    calls: list[Message] = [
        {
            "id": key,
            "type": "TOOL_CALL_TYPE_CLIENT_SIDE_TOOL",
            "function": {"name": name, "arguments": _json(given)},
        }
        for key, name, given in said.calls
    ]
    deltas += [{"tool_calls": calls}] if calls else []
    finish = {"stop": "REASON_STOP", "length": "REASON_MAX_LEN", "tool_calls": "REASON_TOOL_CALLS"}
    counts = {
        "prompt_tokens": said.prompt,
        "completion_tokens": said.completion - said.thought,
        "reasoning_tokens": said.thought,
        "total_tokens": said.prompt + said.completion,
    }
    sent: list[Message] = [{**head, "outputs": [{"delta": delta}]} for delta in deltas]
    return [*sent, {**head, "outputs": [{"finish_reason": _words(said, finish)}], "usage": counts}]


def localai(said: Said) -> list[Message]:
    if said.error:
        return []
    deltas: list[Message] = [{"reasoning_content": one} for one in said.reasoning]
    deltas += [{"content": one} for one in said.text]
    for index, (key, name, given) in enumerate(said.calls):
        arguments = _json(given)
        deltas.append({"tool_calls": [{"index": index, "id": key, "name": name, "arguments": arguments[:4]}]})
        deltas.append({"tool_calls": [{"index": index, "arguments": arguments[4:]}]})
    counts: Message = {"tokens": said.completion, "prompt_tokens": said.prompt}
    return [*({"chat_deltas": [delta]} for delta in deltas), counts]


def sglang(said: Said) -> list[Message]:
    head: dict[str, Json] = {"object": "chat.completion.chunk", "id": said.id, "model": said.model}
    if said.error:
        return [{"json_chunk": {"error": {"message": said.error, "code": 503, "type": "unavailable"}}}]
    deltas: list[dict[str, Json]] = [{"reasoning_content": one} for one in said.reasoning]
    deltas += [{"content": one} for one in said.text]
    for index, (key, name, given) in enumerate(said.calls):
        function: Json = {"name": name, "arguments": _json(given)}
        deltas.append({"tool_calls": [{"index": index, "id": key, "type": "function", "function": function}]})
    total = said.prompt + said.completion
    usage: Json = {"prompt_tokens": said.prompt, "completion_tokens": said.completion, "total_tokens": total}
    chunks: list[dict[str, Json]] = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": said.finish}]})
    chunks.append({**head, "choices": [], "usage": usage})
    return [*({"json_chunk": chunk} for chunk in chunks), {"finished": True}]


def tgis(said: Said) -> list[Message]:
    pieces = _in_text(said)
    head: Message = {"input_token_count": said.prompt}
    if said.error:
        return [head, {"stop_reason": "ERROR"}]
    finish = {"stop": "EOS_TOKEN", "length": "MAX_TOKENS", "tool_calls": "EOS_TOKEN"}
    texts: list[Message] = [
        {"text": piece, "generated_token_count": max(1, said.completion - len(pieces) + number)}
        for number, piece in enumerate(pieces)
    ]
    end: Message = {"stop_reason": "STOP_SEQUENCE", "stop_sequence": said.stop} if said.stop else {}
    end = end or {"stop_reason": _words(said, finish)}
    return [head, *texts, {**end, "generated_token_count": said.completion}]


def _tensors(**outputs: str | int) -> Message:
    described: list[Message] = []
    raw: list[bytes] = []
    for name, value in outputs.items():
        described.append({"name": name, "datatype": "BYTES" if isinstance(value, str) else "UINT32", "shape": [1]})
        data = value.encode() if isinstance(value, str) else b""
        raw.append(len(data).to_bytes(4, "little") + data if isinstance(value, str) else value.to_bytes(4, "little"))
    return {"outputs": described, "raw_output_contents": raw}


def mlserver(said: Said) -> list[Message]:
    return [] if said.error else [_tensors(output=piece) for piece in _in_text(said)]


def triton_trtllm(said: Said) -> list[Message]:
    if said.error:
        return [{"error_message": said.error}]
    return [{"infer_response": _tensors(text_output=piece)} for piece in _in_text(said)]


def triton_vllm(said: Said) -> list[Message]:
    if said.error:
        return [{"error_message": said.error}]
    pieces = _in_text(said)
    finish = {"stop": "stop", "length": "length", "tool_calls": "stop"}
    texts = [
        _tensors(text_output=piece, finish_reason="None", num_input_tokens=said.prompt, num_output_tokens=1)
        for piece in pieces
    ]
    last = _tensors(
        text_output="",
        finish_reason=_words(said, finish),
        num_input_tokens=said.prompt,
        num_output_tokens=said.completion - len(pieces),
    )
    return [{"infer_response": one} for one in (*texts, last)]


def warp(said: Said) -> list[Message]:
    head: Message = {"init": {"request_id": said.id}}
    if said.error:
        return [head, {"finished": {"quota_limit": {}}}]
    pieces = [*(("reasoning", one) for one in said.reasoning), *(("text", one) for one in _in_text(said))]
    parts = {"reasoning": "agent_reasoning", "text": "agent_output"}

    def added(kind: str, text: str) -> Message:
        return {"client_actions": {"actions": [{"add_messages_to_task": {"messages": [{parts[kind]: {kind: text}}]}}]}}

    def more(kind: str, text: str) -> Message:
        action: Message = {"append_to_message_content": {"message": {parts[kind]: {kind: text}}}}
        return {"client_actions": {"actions": [action]}}

    sent: list[Message] = [added(*pieces[0])]
    for before, (kind, text) in pairwise(pieces):
        sent.append(more(kind, text) if before[0] == kind else added(kind, text))
    finish: Message = {"stop": {"done": {}}, "length": {"max_token_limit": {}}, "tool_calls": {"done": {}}}[said.finish]
    usage: list[Message] = [
        {"total_input": said.prompt - 4, "output": said.completion - 2},
        {"total_input": 4, "output": 2},
    ]
    return [head, *sent, {"finished": {**finish, "token_usage": usage}}]


def yandex(said: Said) -> list[Message]:
    if said.error:
        return []
    sent: list[Message] = [
        {
            "alternatives": [
                {"message": {"text": "".join(said.text[: number + 1])}, "status": "ALTERNATIVE_STATUS_PARTIAL"}
            ]
        }
        for number in range(len(said.text))
    ]
    status = {"stop": "FINAL", "length": "TRUNCATED_FINAL", "tool_calls": "TOOL_CALLS"}
    calls: list[Message] = [{"function_call": {"name": name, "arguments": given}} for _, name, given in said.calls]
    last: Message = {"tool_call_list": {"tool_calls": calls}} if calls else {"text": "".join(said.text)}
    usage = {
        "input_text_tokens": said.prompt,
        "completion_tokens": said.completion,
        "total_tokens": said.prompt + said.completion,
    }
    end: Message = {"message": last, "status": f"ALTERNATIVE_STATUS_{_words(said, status)}"}
    return [*sent, {"alternatives": [end], "usage": usage}]


def gigachat(said: Said) -> list[Message]:
    if said.error:
        return []
    held: list[Message] = [{"content": piece} for piece in said.text]
    held += [{"function_call": {"name": name, "arguments": _json(given)}} for _, name, given in said.calls]
    finish = {"stop": "stop", "length": "length", "tool_calls": "function_call"}
    usage = {
        "prompt_tokens": said.prompt,
        "completion_tokens": said.completion,
        "total_tokens": said.prompt + said.completion,
    }
    sent: list[Message] = [{"alternatives": [{"message": one}]} for one in held]
    last: Message = {"finish_reason": _words(said, finish)}
    return [*sent, {"alternatives": [last], "usage": usage, "model_info": {"name": said.model}}]


BACKENDS: Final[dict[str, Callable[[Said], list[Message]]]] = {
    "demo": demo,
    "gemini_grpc": google,
    "gigachat": gigachat,
    "localai": localai,
    "mlserver": mlserver,
    "sglang": sglang,
    "tgis": tgis,
    "triton_trtllm": triton_trtllm,
    "triton_vllm": triton_vllm,
    "vertex_grpc": google,
    "warp": warp,
    "xai": xai,
    "yandex": yandex,
}
# These report every failure as a status of gRPC.
BY_STATUS: Final = ("xai", "localai", "mlserver", "lists", "single", "yandex", "gigachat")


def talk(said: Said) -> list[Message]:
    if said.error:
        return [{"failure": {"sentence": said.error, "number": 7}}]
    pieces = _in_text(said)
    sent: list[Message] = [
        {"so_far": "".join(pieces[: number + 1]), "tokens_in": said.prompt} for number in range(len(pieces))
    ]
    finish = {"stop": "ENDING_DONE", "length": "ENDING_FULL", "tool_calls": "ENDING_DONE"}
    return [*sent, {"so_far": "".join(pieces), "tokens_out": said.completion, "ending": _words(said, finish)}]


def parts(said: Said) -> list[Message]:
    head: Message = {"id": said.id, "model": said.model}
    if said.error:
        return [head, {"ended": {"crash": {"reason": said.error}}}]
    held: list[Message] = [*({"thought": one} for one in said.reasoning), *({"text": one} for one in said.text)]
    held += [{"call": {"id": key, "name": name, "fields": given}} for key, name, given in said.calls]
    counts = {"input": said.prompt, "output": said.completion, "thinking": said.thought}
    end: Message = {"stop": {"fully": {}}, "length": {"too_long": {}}, "tool_calls": {"fully": {}}}[said.finish]
    return [head, *({"parts": [part]} for part in held), {"counts": counts, "ended": end}]


def deltas(said: Said) -> list[Message]:
    if said.error:
        return [{"problem": said.error}]
    pieces: list[Message] = [{"thinking": one} for one in said.reasoning]
    pieces += [{"content": _base64(one)} for one in said.text]
    for index, (key, name, given) in enumerate(said.calls):
        arguments = _json(given)
        pieces.append({"calls": [{"index": index, "id": key, "name": name, "arguments": _base64(arguments[:5])}]})
        pieces.append({"calls": [{"index": index, "arguments": _base64(arguments[5:])}]})
    sent: list[Message] = [{"outputs": [{**piece, "reason": "running"}], "new_tokens": 1} for piece in pieces]
    return [*sent, {"outputs": [{"reason": said.finish}], "new_tokens": said.completion - len(pieces)}]


def events(said: Said) -> list[Message]:
    if said.error:
        return [{"events": [{"failure": {"word": said.error, "number": 9}}]}]
    finish = {"stop": "stop", "length": "length", "tool_calls": "stop"}
    counts = {"fresh": said.prompt - 5, "kept": 5, "written": said.completion}
    sent: list[Message] = [{"events": [{"said": piece}]} for piece in _in_text(said)]
    return [*sent, {"why": _words(said, finish), "counts": counts}]


def lists(said: Said) -> list[Message]:
    """The text so far, with a status in every message; calls without ids."""
    if said.error:
        return []
    partial: list[Message] = [
        {"alternatives": [{"message": {"text": "".join(said.text[: number + 1])}, "status": "PARTIAL"}]}
        for number in range(len(said.text))
    ]
    status = {"stop": "FINAL", "length": "TRUNCATED", "tool_calls": "TOOL_CALLS"}[said.finish]
    calls = [{"name": name, "arguments": given} for _, name, given in said.calls]
    last: Message = {"call_list": {"calls": calls}} if calls else {"text": "".join(said.text)}
    usage = {"input": said.prompt, "output": said.completion, "total": said.prompt + said.completion}
    return [*partial, {"alternatives": [{"message": last, "status": status}], "usage": usage, "version": said.model}]


def single(said: Said) -> list[Message]:
    """One call a message, as text in JSON."""
    if said.error:
        return []
    held: list[Message] = [{"content": piece} for piece in said.text]
    held += [{"function_call": {"name": name, "arguments": _json(given)}} for _, name, given in said.calls]
    finish = {"stop": "stop", "length": "length", "tool_calls": "function_call"}
    usage = {"prompt_tokens": said.prompt, "completion_tokens": said.completion}
    sent: list[Message] = [{"alternatives": [{"message": one}]} for one in held]
    return [*sent, {"alternatives": [{"finish_reason": _words(said, finish)}], "usage": usage}]


EVENTS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc",
    "method": "acme.events.v1.Events/Answer",
    "request": {"text": "$prompt"},
    "read": [
        {
            "each": "events",
            "rules": [{"error": {"when": {"failure": "set"}, "message": "failure.word"}}, {"text": "said"}],
        },
        {"finish": {"at": "why"}, "usage": {"prompt": ["counts.fresh", "counts.kept"], "completion": "counts.written"}},
    ],
}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# Services that no preset knows, each with its mapping.
INVENTED: Final[dict[str, tuple[Entry, Callable[[Said], list[Message]]]]] = {
    "talk": (TALK, talk),
    "parts": (PARTS, parts),
    "deltas": (DELTAS, deltas),
    "events": (EVENTS, events),
    "lists": (LISTS, lists),
    "single": (SINGLE, single),
}
SERVICES: Final = (*BACKENDS, *INVENTED)


def options_of(service: str) -> ProtoOptions:
    """The mapping of a service: a preset, or that of an invented one."""
    entry = {"preset": service} if service in BACKENDS else INVENTED[service][0]
    return check_options(entry, ProtoOptions, "options")


def recorded(service: str, word: str) -> list[RecordedExchange]:
    """One exchange of each kind with a service, as a gateway that has its mapping records them."""
    options = options_of(service)
    adapter = ProtoAdapter(options, 1 << 20)
    method = Schema(options.schema).method(options.method)
    forced = "tool_choice" in adapter.capabilities.supported_params or service == "sglang"
    # These cannot be made to call any tool.
    forced &= service not in ("gigachat", "single")
    said = answers(word)
    return [
        _exchange(service, adapter, method, options.carrier, kind, request, said[kind])
        for kind, request in requests(word, forced=forced).items()
    ]


def _exchange(
    preset: str, adapter: ProtoAdapter, method: Method, carrier: str, kind: str, request: dict[str, Json], said: Said
) -> RecordedExchange:
    write = BACKENDS[preset] if preset in BACKENDS else INVENTED[preset][1]
    conversation = load_dialect().decode(Document(dict(request)), RequestHead("")).conversation
    exchange = Exchange(adapter, conversation, Policy())
    messages = [_written(method, message) for message in write(said)]
    answer = grpc(messages) if carrier == "grpc" else WRITERS[carrier](messages)
    failed = bool(said.error) and preset in BY_STATUS
    trailers = {"grpc-status": "14", "grpc-message": said.error} if failed else {"grpc-status": "0"}
    trial = try_response(exchange, answer, trailers)
    got = read_answer(event for arrival in trial.arrivals for event in arrival.events)
    known = KnownAnswer(
        got.text,
        got.reasoning,
        tuple(one.block for one in got.calls),
        None if got.finish is None else got.finish.reason,
        got.usage,
        error=None if trial.error is None else KnownError(trial.error.message, trial.error.status),
    )
    assert (known.error is not None) is bool(said.error), (preset, kind, trial.error)
    return RecordedExchange(
        f"{kind}", conversation, Policy(), exchange.request.body, answer, trailers if carrier == "grpc" else {}, known
    )


def _written(method: Method, message: Message) -> bytes:
    kind = message_class(method.response)
    made: Any = kind()
    raw = _raw(message)
    ParseDict(message, made)
    if raw is not None:
        holder = getattr(made, "infer_response", made)
        holder.raw_output_contents.extend(raw)
    data: bytes = made.SerializeToString()
    return data


def _raw(message: Message) -> Sequence[bytes] | None:
    """Takes the raw tensors and the JSON out of a message: the JSON form of protobuf has bytes in base64."""
    holder = message.get("infer_response", message)
    if "json_chunk" in message:
        message["json_chunk"] = base64.b64encode(json.dumps(message["json_chunk"]).encode()).decode()
    found: Sequence[bytes] | None = holder.pop("raw_output_contents", None)
    return found
