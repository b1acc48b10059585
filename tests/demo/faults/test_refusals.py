"""The histories and tools that a backend refuses, in a provider's words; the neighbours of each are accepted."""

from typing import Any, Final

import pytest

from adapters.openai_chat.demo.refusals import REFUSALS
from gateway.history.rejections import classify_rejection
from tests.demo.faults.requests import TOOLS, TOOLS_OF, Body, answer

# Any: messages are JSON of several shapes.
Message = dict[str, Any]

USER: Final[Message] = {"role": "user", "content": "Weather?"}
SAID: Final[Message] = {"role": "assistant", "content": "Sunny."}
SYSTEM: Final[Message] = {"role": "system", "content": "Be brief."}


def called(*ids: str, **fields: Any) -> Message:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **fields}


def result(call_id: str, content: Any = "ok") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*messages: Message, **fields: Any) -> Body:
    return {"model": "m", "messages": list(messages), **fields}


def round_of(call_id: str) -> list[Message]:
    return [USER, called(call_id), result(call_id), USER]


PARTS: Final = [{"type": "text", "text": "ok"}]
DOTTED: Final = [{"type": "function", "function": {"name": "files.read", "parameters": {}}}]
LOOP: Final = chat(USER, called("a"), result("a"))
THOUGHT: Final = chat(USER, called("a", reasoning_content="Hm."), result("a"))

# What is refused, what is accepted, and the rule that the gateway makes of the words.
REFUSED: Final[dict[str, tuple[Body, Body, str | None]]] = {
    "results_in_order": (
        chat(USER, called("a", "b"), result("b"), result("a")),
        chat(USER, called("a", "b"), result("a"), result("b")),
        "TOOL_ID_UNKNOWN",
    ),
    "refuses_parts": (chat(USER, called("a"), result("a", PARTS)), LOOP, "CONTENT_TYPE"),
    "needs_reasoning": (LOOP, THOUGHT, "REASONING_MISSING"),
    "refuses_reasoning": (THOUGHT, LOOP, "REASONING_REFUSED"),
    "refuses_two_system": (chat(SYSTEM, SYSTEM, USER), chat(SYSTEM, USER, SAID, SYSTEM, USER), "ROLE_ORDER"),
    "refuses_late_system": (chat(USER, SAID, SYSTEM, USER), chat(SYSTEM, SYSTEM, USER), "ROLE_ORDER"),
    "refuses_developer": (chat({**SYSTEM, "role": "developer"}, USER), chat(SYSTEM, USER), "ROLE_UNKNOWN"),
    "refuses_assistant_first": (chat(SYSTEM, SAID, USER), chat(SYSTEM, USER, SAID, USER), "FIRST_TURN_ROLE"),
    "refuses_assistant_last": (chat(USER, SAID), chat(USER, SAID, USER), "ROLE_ORDER"),
    "refuses_repeated_role": (chat(USER, USER), chat(*round_of("a")), "ROLE_ORDER"),
    "refuses_user_after_tool": (chat(*round_of("a")), chat(*round_of("a")[:3], SAID, USER), "ROLE_ORDER"),
    "refuses_long_ids": (chat(*round_of("x" * 41)), chat(*round_of("x" * 40)), "CALL_ID_SHAPE"),
    "refuses_colon_ids": (chat(*round_of("functions.f:0")), chat(*round_of("call_1-A")), "CALL_ID_SHAPE"),
    "refuses_repeated_ids": (
        chat(*round_of("a"), *round_of("a")),
        chat(*round_of("a"), *round_of("b")),
        "TOOL_ID_DUPLICATE",
    ),
    "refuses_dotted_names": (chat(USER, tools=DOTTED), chat(USER, tools=TOOLS), "TOOL_NAME_SHAPE"),
    "refuses_tools": (chat(USER, tools=TOOLS), chat(USER), "TOOLS_REFUSED"),
    "refuses_forced_choice": (
        chat(USER, tools=TOOLS, tool_choice="required"),
        chat(USER, tools=TOOLS, tool_choice="none"),
        "TOOL_CHOICE_REFUSED",
    ),
    "refuses_named_choice": (
        chat(USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "f"}}),
        chat(USER, tools=TOOLS, tool_choice="required"),
        "TOOL_CHOICE_REFUSED",
    ),
    "refuses_max_tokens": (chat(USER, max_tokens=9), chat(USER, max_completion_tokens=9), "PARAM_REFUSED"),
    "context_unnamed": (
        chat({"role": "user", "content": "word " * 1001}),
        chat({"role": "user", "content": "word " * 900}),
        None,
    ),
    "refuses_stream_options": (chat(USER, stream_options={}), chat(USER), "PARAM_REFUSED"),
}
# The sound backend refuses these as well, in words of its own.
ALSO_REFUSED: Final[dict[str, tuple[Body, str]]] = {
    "refuses_orphan": (chat(USER, result("a")), "TOOL_ORPHAN"),
    "refuses_unanswered": (chat(USER, called("a"), USER), "CALLS_UNANSWERED"),
}
CASES: Final = [(name, "chat") for name in (*REFUSED, *ALSO_REFUSED)] + [("needs_signature", "gemini")]


def test_every_refusal_is_tested() -> None:
    assert {name for name, kind in CASES if kind == "chat"} == REFUSALS.keys()


@pytest.mark.parametrize("name", REFUSED)
async def test_the_refused_history_differs_from_an_accepted_one_in_one_thing(name: str) -> None:
    wrong, sound, rule = REFUSED[name]
    assert (await answer("chat", None, wrong)).status_code == 200
    assert (await answer("chat", name, sound)).status_code == 200
    refused = await answer("chat", name, wrong)
    found = classify_rejection(refused.json()["error"]["message"], None, ())
    assert (refused.status_code, found and found.rule) == (400, rule)


@pytest.mark.parametrize("name", ALSO_REFUSED)
async def test_a_broken_history_is_refused_in_a_providers_words(name: str) -> None:
    wrong, rule = ALSO_REFUSED[name]
    own = await answer("chat", None, wrong)
    refused = await answer("chat", name, wrong)
    found = classify_rejection(refused.json()["error"]["message"], None, ())
    assert (own.status_code, refused.status_code, found and found.rule) == (400, 400, rule)
    assert classify_rejection(own.json()["error"]["message"], None, ()) is None
    assert (await answer("chat", name, LOOP)).status_code == 200


async def test_the_backend_that_needs_reasoning_gives_it() -> None:
    asked = chat(USER)
    assert "reasoning_content" not in (await answer("chat", None, asked)).json()["choices"][0]["message"]
    assert (await answer("chat", "needs_reasoning", asked)).json()["choices"][0]["message"]["reasoning_content"]


async def test_a_call_without_its_signature_is_refused() -> None:
    call: Message = {"functionCall": {"name": "get_weather", "args": {}}}
    done = {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": "ok"}}}]}

    def body(part: Message) -> Body:
        question = {"role": "user", "parts": [{"text": "Weather?"}]}
        return {"contents": [question, {"role": "model", "parts": [part]}, done], **TOOLS_OF["gemini"]}

    assert (await answer("gemini", None, body(call))).status_code == 200
    assert (await answer("gemini", "needs_signature", body({**call, "thoughtSignature": "eA=="}))).status_code == 200
    refused = await answer("gemini", "needs_signature", body(call))
    found = classify_rejection(refused.json()["error"]["message"], None, ())
    assert (refused.status_code, found and found.rule) == (400, "SIGNATURE_MISSING")
