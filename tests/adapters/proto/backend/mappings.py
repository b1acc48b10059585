"""The mappings of the invented services, as settings.json would hold them."""

from typing import Any, Final, TypeAlias

from tests.paths import ROOT

# Any: JSON that tests change at any depth.
Entry: TypeAlias = dict[str, Any]

SET: Final = str(ROOT / "tests" / "adapters" / "proto" / "backend" / "services.pb")

TALK: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc_web",
    "method": "acme.talk.v1.Talk/Speak",
    "request": {
        "engine": "$model",
        "text": "$prompt",
        "limits": {"most_tokens": "$max_tokens", "heat": "$temperature", "until": "$stop"},
        "seed": "$seed",
    },
    "read": [
        {"error": {"when": {"failure": "set"}, "message": "failure.sentence", "code": "failure.number"}},
        {
            "text": "so_far",
            "mode": "total",
            "finish": {
                "at": "ending",
                "reasons": {"ENDING_DONE": "stop", "ENDING_FULL": "length"},
                "failures": ["ENDING_BROKEN"],
            },
            "usage": {"prompt": "tokens_in", "completion": "tokens_out", "mode": "max"},
        },
    ],
}

PARTS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "connect",
    "method": "acme.parts.v1.Parts/Answer",
    "request": {
        "model": "$model",
        "temperature": "$temperature",
        "most_tokens": "$max_tokens",
        "labels": {"from": "gateway"},
        "turns": {
            "$each": "$turns",
            "by": "$role",
            "system": {"speaker": "SPEAKER_RULES", "parts": [{"text": "$text"}]},
            "user": {
                "speaker": "SPEAKER_PERSON",
                "parts": {"$each": "$parts", "by": "$kind", "text": {"text": "$text"}},
            },
            "assistant": {
                "speaker": "SPEAKER_MODEL",
                "parts": {
                    "$each": "$parts",
                    "by": "$kind",
                    "text": {"text": "$text"},
                    "call": {"call": {"id": "$id", "name": "$name", "fields": "$arguments"}},
                },
            },
            "tool": {
                "speaker": "SPEAKER_TOOL",
                "parts": [{"result": {"id": "$id", "name": "$name", "text": "$text"}}],
            },
        },
        "tools": {"$each": "$tools", "as": {"name": "$name", "about": "$description", "schema": "$parameters"}},
        "choice": {
            "$case": "$choice",
            "none": {"mode": "MODE_NEVER"},
            "required": {"mode": "MODE_ALWAYS"},
            "named": {"tool": "$chosen"},
        },
    },
    "read": [
        {"error": {"when": {"ended.crash": "set"}, "message": "ended.crash.reason"}},
        {"start": {"id": "id", "model": "model"}},
        {
            "each": "parts",
            "rules": [
                {"reasoning": "thought"},
                {"text": "text"},
                {
                    "when": {"call": "set"},
                    "call": {"id": "call.id", "name": "call.name", "arguments": "call.fields"},
                },
            ],
        },
        {"usage": {"prompt": "counts.input", "completion": "counts.output", "reasoning": "counts.thinking"}},
        {
            "finish": {
                "oneof": "ended.why",
                "reasons": {"fully": "stop", "too_long": "length"},
                "failures": ["crash"],
            }
        },
    ],
}

DELTAS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "frames_varint",
    "method": "acme.deltas.v1.Deltas/Complete",
    "path": "/complete",
    "max_tokens": 256,
    "request": {
        "model": "$model",
        "max_tokens": "$max_tokens",
        "stop": "$stop",
        "messages": {
            "$each": "$turns",
            "by": "$role",
            "system": {"role": "system", "content": "$text"},
            "user": {"role": "user", "content": "$text"},
            "assistant": {
                "role": "assistant",
                "content": "$text",
                "calls": {"$each": "$calls", "as": {"id": "$id", "name": "$name", "arguments": "$arguments"}},
            },
            "tool": {"role": "tool", "call_id": "$id", "content": "$text"},
        },
        "functions": {
            "$each": "$tools",
            "as": {
                "name": "$name",
                "description": "$description",
                "parameters": {"$json": {"schema": "$parameters", "strict": False}},
            },
        },
    },
    "read": [
        {"error": {"when": {"problem": "set"}, "message": "problem", "status": 503}},
        {
            "each": "outputs",
            "when": {"index": 0},
            "reasoning": "thinking",
            "text": "content",
            "call": {
                "each": "calls",
                "index": "index",
                "id": "id",
                "name": "name",
                "arguments": "arguments",
                "mode": "delta",
            },
            "finish": {"at": "reason", "none": ["running"]},
        },
        {"usage": {"completion": "new_tokens", "mode": "sum"}},
    ],
}

RELAY: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "connect",
    "method": "acme.relay.v1.Relay/Complete",
    "request": {"body": {"$json": "$openai"}, "engine": "engines/$model"},
    "read": [{"json": "body", "openai": True}],
}

FORMS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc_web",
    "method": "acme.forms.v1.Forms/Answer",
    "metadata": {"x-route": "pool=$model"},
    "state": {"provider": "acme", "field": "seal"},
    "request": {
        "model": "$model",
        "rules": "$system",
        "heat": "$temperature",
        "effort": {"$case": "$effort", "low": "EFFORT_LITTLE", "high": "EFFORT_MUCH"},
        "shape": "$schema",
        "entries": {
            "$each": "$turns",
            "by": "$role",
            "together": True,
            "user": {
                "role": "person",
                "blocks": {
                    "$each": "$parts",
                    "by": "$kind",
                    "text": {"text": "$text"},
                    "image": {"media": {"type": "$media_type", "data": "$bytes"}},
                    "result": {"result": {"id": "$id", "name": "$name", "body": {"said": "$text", "kind": "text"}}},
                },
            },
            "assistant": {
                "role": "model",
                "blocks": {
                    "$each": "$parts",
                    "by": "$kind",
                    "text": {"text": "$text"},
                    "call": {"call": {"id": "$id", "name": "$name", "fields": "$arguments", "seal": "$opaque"}},
                    "reasoning": {"thought": {"$with": "$opaque", "text": "$text", "seal": "$opaque"}},
                },
            },
        },
        "tools": {"$each": "$tools", "as": {"name": "$name", "parameters": "$parameters"}},
    },
    "read": [
        {"start": {"model": 'labels["model"]'}, "stopped_by": 'labels["halted_by"]'},
        {"text": "blocks[0].text", "hidden": "special", "when": {"detail": "unset"}},
        {
            "each": "blocks",
            "rules": [
                {"reasoning": "thought.text", "opaque": {"at": "thought.seal", "on": "reasoning"}},
                {
                    "when": {"call": "set"},
                    "call": {"id": "call.id", "name": "call.name", "arguments": "call.fields"},
                    "opaque": {"at": "call.seal", "on": "call"},
                },
            ],
        },
        {"usage": {"prompt": "counts[name=in].value", "completion": "counts[name=out].value"}},
        {"finish": {"at": 'labels["why"]', "reasons": {"halt": "stop"}}},
    ],
}

TENSORS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc_web",
    "method": "acme.tensors.v1.Tensors/Infer",
    "request": {
        "model": "$model",
        "inputs": [
            {"name": "prompt", "datatype": "BYTES", "shape": [1], "contents": {"bytes_contents": ["$prompt"]}},
            {"name": "limit", "datatype": "INT32", "shape": [1], "contents": {"int_contents": ["$max_tokens"]}},
        ],
    },
    "read": [
        {"error": {"when": {"error": "set"}, "message": "error"}},
        {
            "text": {"tensor": "text"},
            "finish": {"at": {"tensor": "why"}, "none": ["None"]},
            "usage": {"completion": {"tensor": "count"}, "mode": "sum"},
        },
    ],
}

LISTS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc",
    "method": "acme.lists.v1.Lists/Complete",
    "request": {
        "model": "$model",
        "options": {
            "stream": True,
            "temperature": "$temperature",
            "max_tokens": "$max_tokens",
            "trace": "$request_id",
        },
        "messages": {
            "$each": "$turns",
            "by": "$role",
            "together": "result_list.results",
            "system": {"role": "system", "text": "$text"},
            "user": {"role": "user", "text": "$text"},
            "assistant": [
                {"$with": "$text", "role": "assistant", "text": "$text"},
                {
                    "$with": "$calls",
                    "role": "assistant",
                    "call_list": {"calls": {"$each": "$calls", "as": {"name": "$name", "arguments": "$arguments"}}},
                },
            ],
            "tool": {"role": "assistant", "result_list": {"results": [{"name": "$name", "content": "$text"}]}},
        },
        "tools": {
            "$each": "$tools",
            "as": {
                "function": {
                    "name": "$name",
                    "description": "$description",
                    "parameters": "$parameters",
                    "strict": "$strict",
                }
            },
        },
        "json_object": {"$case": "$format", "json_object": True},
        "json_schema": {"$case": "$format", "json_schema": {"schema": "$schema"}},
        "choice": {
            "$case": "$choice",
            "auto": {"mode": "AUTO"},
            "none": {"mode": "NONE"},
            "required": {"mode": "REQUIRED"},
            "named": {"function_name": "$chosen"},
        },
    },
    "read": [
        {"start": {"model": "version"}},
        {
            "each": "alternatives",
            "rules": [
                {"text": "message.text", "mode": "total"},
                {"call": {"each": "message.call_list.calls", "name": "name", "arguments": "arguments"}},
                {
                    "finish": {
                        "at": "status",
                        "none": ["PARTIAL"],
                        "reasons": {
                            "FINAL": "stop",
                            "TRUNCATED": "length",
                            "FILTERED": "content_filter",
                            "TOOL_CALLS": "tool_calls",
                        },
                    }
                },
            ],
        },
        {"usage": {"prompt": "usage.input", "completion": "usage.output", "total": "usage.total", "mode": "max"}},
    ],
}

SINGLE: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc",
    "method": "acme.single.v1.Single/ChatStream",
    "metadata": {"x-request-id": "$request_id"},
    "request": {
        "model": "$model",
        "options": {
            "temperature": "$temperature",
            "max_tokens": "$max_tokens",
            "functions": {
                "$each": "$tools",
                "as": {"name": "$name", "description": "$description", "parameters": {"$json": "$parameters"}},
            },
            "function_call": {"$with": "$tools", "as": {"$case": "$choice", "auto": "auto", "none": "none"}},
        },
        "messages": {
            "$each": "$turns",
            "by": "$role",
            "system": {"role": "system", "content": "$text"},
            "user": {"role": "user", "content": "$text", "name": "$speaker"},
            "assistant": {
                "role": "assistant",
                "content": "$text",
                "function_call": {"$call": {"name": "$name", "arguments": "$arguments"}},
            },
            "tool": {
                "role": "function",
                "name": "$name",
                "content": {"$json": {"result": "$text", "failed": "$is_error"}},
            },
        },
    },
    "read": [
        {
            "each": "alternatives",
            "choice": "index",
            "rules": [
                {"text": "message.content"},
                {
                    "when": {"message.function_call": "set"},
                    "call": {"name": "message.function_call.name", "arguments": "message.function_call.arguments"},
                },
                {"finish": {"at": "finish_reason", "reasons": {"function_call": "tool_calls"}}},
            ],
        },
        {"usage": {"prompt": "usage.prompt_tokens", "completion": "usage.completion_tokens"}},
    ],
}

MAPPINGS: Final = {
    "talk": TALK,
    "parts": PARTS,
    "deltas": DELTAS,
    "relay": RELAY,
    "forms": FORMS,
    "tensors": TENSORS,
    "lists": LISTS,
    "single": SINGLE,
}

# The options that an adapter requires, by its name: a test of all adapters can construct them with these.
REQUIRED_OPTIONS: Final[dict[str, Entry]] = {"proto": TALK}
