import json
from typing import Any

import httpx
import msgspec
import pytest

from gateway.demo.serve import serve_demo

TOOLS = (
    "You can call these functions.\n<tools>\n"
    '{"name": "get_weather", "description": "Tells the weather.", "parameters": {"type": "object", '
    '"properties": {"city": {"type": "string"}}, "required": ["city"]}}\n'
    '{"name": "get_time", "description": "Tells the time.", "parameters": {"type": "object", '
    '"properties": {"city": {"type": "string"}}, "required": ["city"]}}\n</tools>\n'
)
PARIS = '<tool_call>\n{"name":"get_weather","arguments":{"city":"Paris"}}\n</tool_call>'
ROME = '<tool_call>\n{"name":"get_time","arguments":{"city":"Rome"}}\n</tool_call>'
CONTINUE = "\n\nUser: Please analyze the tool results above and provide your response."


async def complete(prompt: str, **fields: Any) -> dict[str, Any]:
    """The whole answer to a prompt without its cue."""
    async with serve_demo("text") as backend, httpx.AsyncClient() as client:
        body = {"prompt": f"{prompt}\n\nAssistant:", **fields}
        answer = await client.post(f"{backend.base_url}/completion", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def told(*turns: str, rule: str = "") -> str:
    return "\n\n".join([f"System: {TOOLS}{rule}", *turns])


async def test_an_answer_in_pieces_says_the_same_as_a_whole_one() -> None:
    whole = await complete("User: Count to 12.")
    async with serve_demo("text") as backend, httpx.AsyncClient() as client:
        body = {"prompt": "User: Count to 12.\n\nAssistant:", "stream": True}
        answer = await client.post(f"{backend.base_url}/completion", json=body)
        (asked,) = backend.requests
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(data.removeprefix("data: ")) for data in answer.text.split("\n\n") if data]
    assert "".join(event["content"] for event in events) == whole["content"] == " " + ", ".join(map(str, range(1, 13)))
    assert [event["stop"] for event in events] == [False] * (len(events) - 1) + [True]
    assert events[0]["content"] == "", "real ones begin with an empty piece, too"
    last = events[-1]
    assert (last["stop_type"], last["tokens_predicted"], last["tokens_evaluated"]) == ("eos", 12, 5)
    assert asked.summary == body


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("User: Hello", " Hello! I am a scripted demo model."),
        ("Hello", " Hello! I am a scripted demo model."),
        ("> nobody's label", ' You said: "> nobody\'s label".'),
        ("System: Be brief.\n\nUser: Hello", " Hello! I am"),
        ("System: Be brief.", " You said nothing. "),
        ('{"role":"user","content":"Hello"}', " Hello! I am"),
        (told("User: What is the weather in Paris?"), f" {PARIS}"),
        (told("User: The weather in Paris and the time in Rome?"), f" {PARIS}\n{ROME}"),
        (
            told("User: The weather in Paris and the time in Rome?", rule="Call at most one function"),
            f" Step 1 of 2.\n{PARIS}",
        ),
        (told("User: hi", rule="You must call a function now, and"), " <tool_call>\n"),
        (
            told("User: hi", rule="You must call the function get_time now, and"),
            ' <tool_call>\n{"name":"get_time"',
        ),
        (
            told("User: The weather in Paris?", f"Assistant: \n{PARIS}", "Tool result (c): sunny") + CONTINUE,
            " get_weather says: sunny",
        ),
        (
            told(
                "User: The weather in Paris?",
                f"Assistant: <tool_call>\n{{broken}}\n</tool_call>\n{PARIS}",
                "Tool result (c): sunny",
                rule='{"name": "no tool"}',
            )
            + CONTINUE,
            " get_weather says: sunny",
        ),
    ],
)  # fmt: skip
async def test_a_prompt_is_read_as_a_model_reads_it(prompt: str, said: str) -> None:
    assert (await complete(prompt))["content"].startswith(said)


async def test_a_result_after_which_nobody_asks_to_go_on_is_overlooked() -> None:
    rounds = told("User: The weather in Paris?", f"Assistant: \n{PARIS}", "Tool result (c): sunny")
    assert (await complete(rounds))["content"] == f" {PARIS}"
    assert "sunny" in (await complete(rounds + CONTINUE))["content"]


async def test_a_constrained_answer_is_one_value() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    shaped = await complete("User: How many? 7", json_schema=schema)
    assert isinstance(msgspec.json.decode(shaped["content"], type=dict)["n"], int)
    async with serve_demo("text") as backend, httpx.AsyncClient() as client:
        prompt = told("User: Paris", rule="You must call the function get_weather now, and")
        body = {"prompt": f"{prompt}\n\nAssistant: <tool_call>\n", "json_schema": {}, "stop": ["</tool_call>"]}
        answer = (await client.post(f"{backend.base_url}/completion", json=body)).json()
    assert json.loads(answer["content"]) == {"name": "get_weather", "arguments": {"city": "Paris"}}
    assert (answer["stop_type"], answer["stopping_word"]) == ("word", "</tool_call>")


@pytest.mark.parametrize(
    ("fields", "content", "stop_type"),
    [
        ({"n_predict": 2}, " 1, 2,", "limit"),
        ({"n_predict": -1}, " 1, 2, 3, 4, 5", "eos"),
        ({"n_predict": 0}, "", "limit"),
        ({"stop": ["4", "3"]}, " 1, 2, ", "word"),
        ({"stop": ["", "9"]}, " 1, 2, 3, 4, 5", "eos"),
    ],
)
async def test_limits_and_stops_are_the_servers(fields: dict[str, Any], content: str, stop_type: str) -> None:
    answer = await complete("User: Count to 5.", **fields)
    assert (answer["content"], answer["stop_type"]) == (content, stop_type)


async def test_what_is_no_request_is_refused() -> None:
    async with serve_demo("text") as backend, httpx.AsyncClient() as client:
        for body in (b"{", b"{}", b'{"prompt": 7}', b'{"prompt": "User: hi [[demo:nonsense]]"}'):
            answer = await client.post(f"{backend.base_url}/completion", content=body)
            assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
        assert (await client.get(f"{backend.base_url}/health")).json() == {"status": "ok"}
        recorded = (await client.get(f"{backend.base_url}/__demo/requests")).json()
    assert [request["summary"] for request in recorded["requests"]][:2] == [None, {}]
