"""Tests the output of `dragoman explain`."""

import io
import json
import sys
from pathlib import Path

import pytest

from adapters.openai.client_errors import error_object
from gateway.cli import main
from gateway.core.conversation import Json
from gateway.core.errors import Unsupported
from gateway.diagnostics.explain_request import plan
from gateway.diagnostics.explain_text import explain_text
from gateway.diagnostics.explanation import Classified, Explanation
from gateway.diagnostics.message_words import message_words

CALLING: dict[str, Json] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
}
REFUSED = Unsupported("n is not supported", param="n")
BROKEN: list[dict[str, Json]] = [
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "one"},
    {"role": "user", "content": "What does it say?"},
    {"role": "tool", "tool_call_id": "gone", "content": "lost"},
    CALLING,
]


def page(messages: list[dict[str, Json]], settings: dict[str, Json] | None = None, width: int = 100) -> list[str]:
    return explain_text(plan(messages, settings), messages, width=width).splitlines()


def test_before_and_after_stand_side_by_side() -> None:
    lines = page(BROKEN, width=80)
    assert "[2] user: What does it say?            | [2] user: What does it say?" in lines
    assert any(line.startswith("[3] tool (gone): lost ") and "| [3] user: [Result of" in line for line in lines)
    assert any(line.startswith(" ") and "| [+] tool (c1): Error" in line for line in lines)


def test_the_word_stands_beside_the_notice_that_breaks_it() -> None:
    lines = [line.strip() for line in page(BROKEN)]
    (orphan,) = [line for line in lines if line.startswith("repair messages[3] TOOL_ORPHAN: ")]
    (unanswered,) = [line for line in lines if line.startswith("repair messages[4] CALLS_UNANSWERED: ")]
    assert orphan.endswith(" (loses tools)") and "loses" not in unanswered


@pytest.mark.parametrize(
    ("dialect", "request_fields", "line"),
    [
        (
            "openai_responses",
            {
                "input": [
                    {"role": "user", "content": "hi"},
                    {"type": "function_call_output", "call_id": "c", "output": "7"},
                ]
            },
            "[1] function_call_output (c): 7 ",
        ),
        (
            "anthropic_messages",
            {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
            "[0] user: hi ",
        ),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "[0] user: hi "),
        ("ollama", {"messages": [{"role": "user", "content": "hi"}]}, "[0] user: hi"),
    ],
)
def test_the_messages_of_every_dialect_are_shown(
    dialect: str,
    request_fields: dict[str, Json],
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved = tmp_path / "request.json"
    saved.write_text(json.dumps({"model": "m", **request_fields}))
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(SystemExit):
        main(["explain", str(saved), "--settings", str(tmp_path / "settings.json"), "--dialect", dialect])
    assert line in capsys.readouterr().out


CALL: Json = {"type": "tool_use", "id": "a:1", "name": "read", "input": {"path": "x"}}
FUNCTION: Json = {"name": "f", "args": {"a": 1}}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}, CALL]},
            'assistant: thinking \'Hm\' without a signature calls read (a:1) {"path":"x"}',
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": "S"}]},
            "assistant: thinking 'Hm'",
        ),
        (
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": ""}, {"type": "text", "text": ""}]},
            "assistant: redacted thinking without its data blank text",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "7"}]},
            "user: result (a): 7",
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": {}}, {"type": "input_audio"}, {"type": "novel"}]},
            "user: picture audio novel",
        ),
        (
            {
                "role": "model",
                "parts": [{"text": "Hm", "thought": True}, {"functionCall": FUNCTION}],
            },
            "model: thinking 'Hm' calls f {\"a\":1}",
        ),
        (
            {
                "role": "user",
                "parts": [{"functionResponse": FUNCTION}, {"inlineData": {}}, {}, 7],
            },
            'user: result of f {"a":1} file a part with nothing 7',
        ),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, "function_call f (c) '{}'"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}, "reasoning: Hm"),
        ({"type": "function_result", "call_id": "c", "result": "7"}, "function_result (c): 7"),
        (
            {"type": "function_result", "call_id": "c", "result": [{"type": "text", "text": "7"}]},
            "function_result (c): 7",
        ),
        (
            {"role": "assistant", "reasoning_content": "Hm", "content": "Yes", "tool_calls": [7]},
            "assistant: thinking 'Hm' calls 7 Yes",
        ),
        ({"role": "user", "content": {"a": 1}}, 'user: {"a":1}'),
        (7, "7"),
    ],
)
def test_blocks_of_every_dialect_are_words(message: Json, said: str) -> None:
    assert message_words(message) == said


def test_an_object_and_a_text_of_the_same_arguments_are_told_apart() -> None:
    def said(arguments: Json) -> str:
        function: Json = {"name": "read", "arguments": arguments}
        return message_words({"role": "assistant", "tool_calls": [{"id": "c", "function": function}]})

    assert said({"a": 1}) == 'assistant: calls read (c) {"a":1}'
    assert said('{"a":1}') == "assistant: calls read (c) '{\"a\":1}'"


def test_a_renamed_id_is_shown_with_the_one_that_it_was() -> None:
    def result(call_id: str) -> dict[str, Json]:
        return {"role": "tool", "tool_call_id": call_id, "content": "7"}

    assert message_words(result("c_2"), result("c")) == "tool (c -> c_2): 7"
    assert message_words(result("c"), result("c")) == "tool (c): 7"
    lines = page([CALLING, result("c1"), CALLING, result("c1"), {"role": "user", "content": "Well?"}], width=80)
    assert any(line.endswith("| [2] assistant: calls read (c1 -> c1_2)") for line in lines)
    assert any(line.endswith("| '{}'") for line in lines), "a changed row is shown whole"
    assert any(line.endswith("| [3] tool (c1 -> c1_2): 7") for line in lines)


def test_what_was_left_out_stands_alone() -> None:
    lines = page(BROKEN[:3], {"max_history_messages": 0}, width=80)
    assert any(line.startswith("[1] assistant: one") and line.endswith("| ") for line in lines)


def test_what_limits_left_in_place_is_named_with_its_reason_where_they_removed_something() -> None:
    lines = page(BROKEN[:3], {"max_history_messages": 0})
    at = lines.index("pinned")
    assert lines[at + 1 : at + 3] == [
        "  messages[0]: before the first answer",
        "  messages[2]: the newest user message",
    ]
    assert "pinned" not in page(BROKEN[:3])


def test_faults_changes_and_the_text_are_shown() -> None:
    text = "\n".join(page(BROKEN))
    assert "messages[3].role TOOL_ORPHAN: " in text
    assert "  repair messages[4] CALLS_UNANSWERED: " in text
    assert "  User: first" in text


def test_a_refused_request_says_so() -> None:
    lines = page(BROKEN, {"repair": "strict"})
    assert "refused, nothing would be sent" in lines
    assert not any("| after" in line for line in lines)


def test_no_line_is_wider_than_asked_in_the_table() -> None:
    lines = page([{"role": "user", "content": "x" * 500}], width=60)
    assert max(len(line) for line in lines if " | " in line) <= 60


def test_content_cannot_command_the_terminal() -> None:
    text = explain_text(plan([{"role": "user", "content": "\x1b[2J\x07"}]), [{"role": "user", "content": "\x1b[2J"}])
    assert "\x1b" not in text and "\x07" not in text


def test_colour_only_when_asked() -> None:
    assert "\x1b[31m" in explain_text(plan(BROKEN), BROKEN, colour=True)
    assert "\x1b" not in explain_text(plan(BROKEN), BROKEN)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert isinstance(exited.value.code, int)
    return exited.value.code


def test_the_command_reads_a_file_or_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    request = json.dumps({"model": "any", "messages": BROKEN}).encode()
    (tmp_path / "request.json").write_bytes(request)
    assert run("explain", "request.json") == 0
    assert "TOOL_ORPHAN" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(BROKEN).encode())))
    assert run("explain", "-", "--json", "--profile", "groq") == 0
    assert json.loads(capsys.readouterr().out)["violations"][0]["rule"] == "TOOL_ORPHAN"
    (tmp_path / "settings.json").write_text('{"repair": "strict"}')
    assert run("explain", "request.json") == 1


def test_a_file_that_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "absent.json") == 2
    assert capsys.readouterr().err == "dragoman: absent.json: cannot be read: No such file or directory\n"


@pytest.mark.parametrize(("messages", "line"), [(BROKEN[:3], "no violations"), (BROKEN[:4], "1 violation")])
def test_violations_are_counted(messages: list[dict[str, Json]], line: str) -> None:
    assert line in page(messages)


def test_a_refusal_gives_its_reason() -> None:
    told = Explanation(
        model="m",
        backend="b",
        violations=(),
        classification=Classified(0, (), False),
        error=error_object(REFUSED),
        refusal=REFUSED.message,
    )
    assert "  n is not supported" in explain_text(told, []).splitlines()


def test_messages_are_shown_for_a_backend_that_takes_messages() -> None:
    chat: dict[str, Json] = {
        "backends": {"b": {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": "demo:chat"}},
        "models": {"m": {"backend": "b"}},
    }
    assert page([{"role": "user", "content": "first"}], chat)[-1] == '  {"role":"user","content":"first"}'
