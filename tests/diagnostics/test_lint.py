"""Lint names the file, the path, the rule and the advice, in each of its formats."""

import io
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.diagnostics.lint import FORMATS, lint
from gateway.providers.registry import PROFILES
from gateway.recording.lines import RequestLine, RouteLine, data_of
from gateway.recording.recording import Recording, write_recording
from gateway.recording.route import policy_fields

GOOD = b'[{"role": "user", "content": "hi"}]'
ORPHAN = b'{"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "lost"}]}'


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert isinstance(exited.value.code, int)
    return exited.value.code


def test_a_sound_file_has_no_findings() -> None:
    for saved in (GOOD, b"\xef\xbb\xbf" + GOOD, b'\xef\xbb\xbf {"messages": %b}' % GOOD):
        assert lint("a.json", saved) == []
    assert lint("a.json", b'{"messages": [{"role": "user", "content": "hi"}]}') == []


def test_a_finding_names_place_rule_and_advice() -> None:
    (finding,) = lint("a.json", ORPHAN)
    assert FORMATS["text"]([finding]).startswith("a.json: messages[0].role: TOOL_ORPHAN: the tool message does not")
    (listed,) = json.loads(FORMATS["json"]([finding]))
    assert (listed["file"], listed["line"], listed["rule"], listed["index"]) == ("a.json", None, "TOOL_ORPHAN", 0)
    assert (listed["tool_call_id"], listed["param"]) == ("x", "messages[0].role")


def test_half_a_character_is_a_finding() -> None:
    assert [found.violation.rule for found in lint("a.json", b'[{"role": "user", "content": "\\ud83d"}]')] == [
        "TEXT_UNICODE"
    ]


def test_an_empty_array_of_messages_is_a_finding() -> None:
    assert [finding.violation.rule for finding in lint("a.json", b"[]")] == ["MESSAGES_EMPTY"]


CHAT: Final = {"messages": [{"role": "user", "content": "hi"}]}
EFFORT: Final = {"output_config": {"effort": "max"}}


@pytest.mark.parametrize(
    ("profile", "fields", "expected"),
    [
        (
            "openai",
            {"model": "gpt-5", "max_tokens": 5, "temperature": 0.5, **CHAT},
            [("max_tokens", "REQUEST_FIELD_RENAMED"), ("temperature", "REQUEST_FIELD_DROPPED")],
        ),
        ("openai", {"model": "gpt-5", "max_completion_tokens": 5, "temperature": 1, **CHAT}, []),
        (
            "groq",
            {"model": "m", "logprobs": True, "store": True, **CHAT},
            [("logprobs", "PARAM_REFUSED"), ("store", "REQUEST_FIELD_DROPPED")],
        ),
        ("glm", {"model": "glm-5", "temperature": 2, **CHAT}, [("temperature", "REQUEST_FIELD_CHANGED")]),
        ("openai", {"model": "gpt-4o", "stop": ["a", "b", "c", "d", "e"], **CHAT}, [("stop", "REQUEST_FIELD_CHANGED")]),
        (
            "kimi-thinking",
            {"model": "kimi-k3", "reasoning_effort": "xhigh", **CHAT},
            [("reasoning_effort", "EFFORT_CHANGED")],
        ),
        # A field that has its name from another API is no mistake of the client.
        (
            "openai",
            {"model": "gpt-5.2", "max_tokens": 5, "system": "s", **EFFORT, **CHAT},
            [("output_config.effort", "EFFORT_CHANGED")],
        ),
        ("none", {"model": "m", "max_tokens": -1, "store": True, **CHAT}, []),
    ],
)
def test_a_field_that_the_provider_does_not_take_is_a_finding(
    profile: str, fields: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    found = lint("a.json", json.dumps(fields).encode(), PROFILES[profile])
    assert [(one.violation.param, one.violation.rule) for one in found] == expected
    assert all(one.violation.advice and one.violation.index == -1 for one in found)
    for form in FORMATS.values():
        assert all(one.violation.rule in form(found) for one in found)


def test_a_rule_of_one_provider_is_looked_for_where_the_provider_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greeting = tmp_path / "greeting.json"
    greeting.write_bytes(b'[{"role": "assistant", "content": "hi"}]')
    assert run("lint", str(greeting)) == 0
    assert run("lint", "--profile", "gemini", str(greeting)) == 1
    assert "messages[0].role: FIRST_TURN_ROLE: the first message" in capsys.readouterr().out
    assert run("lint", "--profile", "gemni", str(greeting)) == 2
    assert "did you mean 'gemini'?" in capsys.readouterr().err


def test_a_file_of_lines_is_one_request_a_line() -> None:
    (finding,) = lint("a.jsonl", GOOD + b"\n\n" + ORPHAN + b"\n")
    assert finding.line == 3
    assert FORMATS["text"]([finding]).startswith("a.jsonl:3: messages[0].role: ")
    with pytest.raises(InvalidRequest, match=r"^a\.jsonl:2: "):
        lint("a.jsonl", GOOD + b"\n{")


def test_sarif_is_what_review_tools_read() -> None:
    document = json.loads(FORMATS["sarif"](lint("a.jsonl", ORPHAN)))
    (run_,) = document["runs"]
    assert document["version"] == "2.1.0"
    assert [rule["id"] for rule in run_["tool"]["driver"]["rules"]] == ["TOOL_ORPHAN"]
    (result,) = run_["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "a.jsonl"}, "region": {"startLine": 1}}
    assert location["logicalLocations"] == [{"fullyQualifiedName": "messages[0].role"}]


def test_the_exit_status_tells_clean_findings_and_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, orphan, broken = tmp_path / "good.json", tmp_path / "orphan.json", tmp_path / "broken.json"
    good.write_bytes(GOOD)
    orphan.write_bytes(ORPHAN)
    broken.write_bytes(b"x")
    assert run("lint", str(good)) == 0
    assert capsys.readouterr().out == ""
    assert run("lint", str(good), str(orphan)) == 1
    assert "TOOL_ORPHAN" in capsys.readouterr().out
    assert run("lint", str(broken), str(orphan), str(tmp_path / "absent.json")) == 2
    told = capsys.readouterr()
    assert "TOOL_ORPHAN" in told.out
    assert "broken.json: The request body is not valid JSON: invalid character (byte 0)." in told.err
    assert "absent.json: cannot be read" in told.err


def test_it_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ORPHAN)))
    assert run("lint", "--format", "json", "-") == 1
    assert json.loads(capsys.readouterr().out)[0]["file"] == "-"


def test_thinking_without_a_signature_is_found_unless_the_provider_keeps_it() -> None:
    """Claude Code sends it back after a switch from a model of another provider to one of Anthropic."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    call = {"type": "tool_use", "id": "a", "name": "a", "input": {}}
    said = {"role": "assistant", "content": [thought, call, {"type": "redacted_thinking", "data": ""}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "7"}]}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}, said, result]}
    data = json.dumps(body).encode()
    found = lint("request.json", data, dialect="anthropic_messages")
    assert [(one.violation.rule, one.violation.param) for one in found] == [
        ("THINKING_UNSIGNED", "messages[1].content[0]"),
        ("THINKING_UNSIGNED", "messages[1].content[2]"),
    ]
    assert lint("request.json", data, PROFILES["anthropic"], "anthropic_messages") == found
    assert lint("request.json", data, PROFILES["deepseek"], "anthropic_messages") == []
    thought["signature"] = "S"
    assert len(lint("request.json", json.dumps(body).encode(), dialect="anthropic_messages")) == 1


def test_what_anthropic_refuses_is_found_under_its_profile() -> None:
    said = [{"type": "text", "text": " "}, {"type": "tool_use", "id": "a:1", "name": "a", "input": {}}]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a:1", "content": "7"}]}
    messages = [{"role": "user", "content": ""}, {"role": "assistant", "content": said}, result]
    data = json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
    found = lint("request.json", data, PROFILES["anthropic"], "anthropic_messages")
    assert [(one.violation.rule, one.violation.param) for one in found] == [
        ("TEXT_BLANK", "messages[0].content"),
        ("TEXT_BLANK", "messages[1].content[0]"),
        ("CALL_ID_SHAPE", "messages[1].content[1].id"),
    ]
    assert "'a:1'" in found[2].violation.detail and found[2].violation.tool_call_id == "a:1"
    assert lint("request.json", data, dialect="anthropic_messages") == []


def test_an_id_that_a_provider_refuses_is_found_in_any_dialect_under_its_profile() -> None:
    call = {"id": "functions.read:0", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "functions.read:0", "content": "7"}
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    data = json.dumps([{"role": "user", "content": "hi"}, said, result]).encode()
    for profile in ("anthropic", "mistral", "anthropic-compat"):
        found = lint("request.json", data, PROFILES[profile])
        assert [(one.violation.rule, one.violation.param) for one in found] == [
            ("CALL_ID_SHAPE", "messages[1].tool_calls[0].id")
        ]
    assert lint("request.json", data, PROFILES["openai"]) == []


def recorded(*bodies: dict[str, Any], adapter: str = "openai_chat") -> bytes:
    """A recording of these requests, without their answers."""
    lines: list[RequestLine | RouteLine] = []
    for x, body in enumerate(bodies, 1):
        sent = data_of(json.dumps(body).encode())
        lines.append(RequestLine(x, f"req_{x}", "openai_chat", "POST", "/v1/chat/completions", body=sent))
        lines.append(RouteLine(x, "m", "b", adapter, policy=policy_fields(Policy(profile=PROFILES["mistral"]))))
    return write_recording(Recording(lines=tuple(lines)))


def test_a_recording_is_checked_request_by_request_under_the_profile_that_it_was_sent_by() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "7"}
    loop = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}, result],
    }
    data = recorded({"model": "m", **CHAT}, json.loads(ORPHAN), loop)
    found = lint("bug.dragoman.jsonl", data)
    assert [(one.line, one.violation.rule) for one in found] == [
        (4, "FIRST_TURN_ROLE"),
        (4, "TOOL_ORPHAN"),
        (6, "CALL_ID_SHAPE"),
    ]
    assert FORMATS["text"](found[1:]).startswith("bug.dragoman.jsonl:4: messages[0].role: TOOL_ORPHAN: ")
    assert [one.violation.rule for one in lint("bug.dragoman.jsonl", data, PROFILES["openai"])] == ["TOOL_ORPHAN"]
    messages = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": ""}]}
    lines = data_lines(recorded(messages, adapter="anthropic_messages"))
    lines[0]["dialect"], lines[1]["policy"] = "anthropic_messages", {}
    assert [one.violation.rule for one in lint("-", as_lines(lines))] == ["TEXT_BLANK"], "the rules of its wire"


def data_lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()[1:]]


def as_lines(lines: list[Any]) -> bytes:
    header = write_recording(Recording())
    return header + b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_recording_that_cannot_be_checked_says_which_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = data_lines(recorded({"model": "m", **CHAT}, json.loads(ORPHAN)))
    del lines[0]["body"]
    lines[0]["absent"] = "evicted"
    file = tmp_path / "bug.dragoman.jsonl"
    file.write_bytes(as_lines(lines))
    assert run("lint", str(file)) == 2
    told = capsys.readouterr()
    assert "bug.dragoman.jsonl:2: The body of the request req_1 is not in the recording: evicted." in told.err
