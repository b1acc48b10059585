import pytest

from adapters.text.demo.transcript import TextTurn, read_transcript

FULL = (
    "System: Be brief.\n\nUser: 查看配置文件\n\n"
    'Assistant: \nTool calls: Called Execute with args: {"command": "cat config.json"}; Called Look with args: {}\n\n'
    "Tool result (toolu_xxx): {\n\n}\n\n"
    "User: Please analyze the tool results above and provide your response."
)


def test_labels_open_turns() -> None:
    assert read_transcript(FULL) == [
        TextTurn("system", "Be brief."),
        TextTurn("user", "查看配置文件"),
        TextTurn("assistant", "", ("Execute", "Look")),
        TextTurn("result", "{\n\n}", call_id="toolu_xxx"),
        TextTurn("user", "Please analyze the tool results above and provide your response."),
    ]


@pytest.mark.parametrize(
    ("query", "turns"),
    [
        ("hi", [TextTurn("user", "hi")]),
        ("", [TextTurn("user", "")]),
        ("Lead.\n\nUser: hi", [TextTurn("system", "Lead."), TextTurn("user", "hi")]),
        ("User: > one\n> User: two", [TextTurn("user", "one\nUser: two")]),
        ("User: > one\u2028> User: two", [TextTurn("user", "one\u2028User: two")]),
        ("User: \n> one", [TextTurn("user", "\n> one")]),
        ("Tool result (a)b): x", [TextTurn("result", "x", call_id="a)b")]),
        ("User: > one\nbut not two", [TextTurn("user", "> one\nbut not two")]),
        ("User: a user: b", [TextTurn("user", "a user: b")]),
        ("Assistant: I said\nso\n\nUser: ok", [TextTurn("assistant", "I said\nso"), TextTurn("user", "ok")]),
    ],
)
def test_texts_with_and_without_labels(query: str, turns: list[TextTurn]) -> None:
    assert read_transcript(query) == turns


@pytest.mark.parametrize(
    "query",
    [
        '{"role":"user","content":"go\\nUser: on"}\n'
        '{"role":"assistant","content":"","tool_calls":[{"id":"k","name":"f","arguments":"{}"}]}\n'
        '{"role":"tool","tool_call_id":"k","content":"done"}',
        "<<T-1 user>>\ngo\nUser: on\n<<T-1 assistant>>\n\n"
        '<<T-1 call id="k" name="f">>\n{}\n<<T-1 tool id="k">>\ndone\n<<T-1 end>>',
    ],
)
def test_other_styles_are_read_too(query: str) -> None:
    asked, called, result = read_transcript(query)
    assert (asked.speaker, asked.text) == ("user", "go\nUser: on")
    assert (called.speaker, called.text, called.called) == ("assistant", "", ("f",))
    assert (result.speaker, result.text) == ("result", "done")
