"""Runs the conformance kit on every wire, with text and with calls."""

import json

import pytest

from adapters.text.backend import TextAdapter
from adapters.text.backend.presets import PRESETS
from gateway.core.conversation import Conversation, JsonObject, Text, ToolSpec, Turn
from gateway.core.events import Finish, ResponseStart, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart, UsageReport
from gateway.testing.conformance import CHECKS, Case, Check
from gateway.tool_calls.parsers.format import id_prefix
from tests.adapters.text.backend import answers
from tests.tiers import sample

USAGE = UsageReport(3, 5, 8)
START, SAID = ResponseStart(), TextDelta(answers.TEXT)
ASKED = Conversation((Turn("user", (Text("Weather?"),), index=0),), (ToolSpec("f"), ToolSpec("g")), stream=True)
PREFIX = id_prefix(ASKED)
END = "</tool_call>\n"
CALLS = (
    *("Well", ".\n<tool", '_call>\n{"name": "f", "argu', f'ments": {{"n": 1}}}}\n{END}'),
    f'<tool_call>{{"name":"g","arguments":{{}}}}{END}',
)
WHOLE: JsonObject = {
    "path": "",
    "request": {"prompt": "$prompt"},
    "framing": "json",
    "text": ["text"],
    "finish": ["why"],
}


CASES = [
    Case("llama_cpp", TextAdapter, answers.llama(), (START, SAID, USAGE, Finish("stop", "eos"))),
    Case(
        "completions",
        TextAdapter,
        answers.completions(),
        (START, SAID, Finish("stop", "stop"), USAGE),
        options={"wire": "completions"},
    ),
    Case(
        "vllm",
        TextAdapter,
        answers.completions(usage_apart=False),
        (START, SAID, USAGE, Finish("stop", "stop")),
        options={"wire": "vllm"},
    ),
    Case(
        "ollama",
        TextAdapter,
        answers.ollama(),
        (START, SAID, USAGE, Finish("stop", "stop")),
        options={"wire": "ollama"},
    ),
    Case(
        "ollama_chat",
        TextAdapter,
        answers.ollama_chat(),
        (START, SAID, USAGE, Finish("stop", "stop")),
        options={"wire": "ollama_chat"},
    ),
    Case("tgi", TextAdapter, answers.tgi(), (START, SAID, USAGE, Finish("stop", "eos_token")), options={"wire": "tgi"}),
    Case(
        "koboldcpp",
        TextAdapter,
        answers.koboldcpp(),
        (START, SAID, Finish("stop", "stop")),
        options={"wire": "koboldcpp"},
    ),
    Case(
        "plain",
        TextAdapter,
        answers.TEXT.encode(),
        (START, SAID, Finish("stop")),
        options={"wire": "plain"},
        marks_end=False,
    ),
    Case("plain_sse", TextAdapter, answers.plain_sse(), (START, SAID, Finish("stop")), options={"wire": "plain_sse"}),
    Case(
        "plain_ndjson",
        TextAdapter,
        answers.plain_ndjson(),
        (START, SAID, Finish("stop", "stop")),
        options={"wire": "plain_ndjson"},
    ),
    Case(
        "one document",
        TextAdapter,
        json.dumps({"text": answers.TEXT, "why": "eos"}).encode(),
        (START, SAID, Finish("stop", "eos")),
        options={"wire": dict(WHOLE)},
    ),
    Case(
        "calls",
        TextAdapter,
        answers.llama(CALLS),
        (
            START,
            TextDelta("Well.\n"),
            ToolCallStart(0, f"{PREFIX}0", "f"),
            ToolCallDelta(0, '{"n": 1}'),
            ToolCallEnd(0),
            ToolCallStart(1, f"{PREFIX}1", "g"),
            ToolCallDelta(1, "{}"),
            ToolCallEnd(1),
            USAGE,
            Finish("stop", "eos"),
        ),
        ASKED,
    ),
]


def test_every_wire_is_held_to_the_kit() -> None:
    assert PRESETS.keys() <= {str(case.options.get("wire", "llama_cpp")) for case in CASES}


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
