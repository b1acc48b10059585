"""`dragoman map learn` with a service of turns, a oneof of choices, and errors beside its answers."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main

SCHEMA: Final = """
syntax = "proto3";
package acme.desk.v1;
message Call { string key = 1; string tool = 2; string input = 3; }
message Turn { string who = 1; string say = 2; repeated Call calls = 3; string call_key = 4; }
message Tool { string name = 1; string about = 2; string shape = 3; }
message Ask {
  string model = 1;
  repeated Turn turns = 2;
  repeated Tool tools = 3;
  oneof pick { bool forbid = 4; bool must = 5; string only = 6; }
}
message Event { int32 status = 1; string note = 2; string word = 3; }
enum End { END_OPEN = 0; END_DONE = 1; END_CUT = 2; END_CALLS = 3; }
message Reply { string said = 1; repeated Event events = 2; repeated Call calls = 3; End end = 4; }
service Desk { rpc Talk(Ask) returns (stream Reply); }
"""
TOOL: Final = {
    "type": "function",
    "function": {"name": "weather", "description": "Tells it.", "parameters": {"type": "object"}},
}
SENT_TOOL: Final = {"name": "weather", "about": "Tells it.", "shape": '{"type":"object"}'}
Message = dict[str, Any]


def learn(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["map", "learn", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk.proto").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def learned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, dict[str, Any]]:
    """What is printed, and the entry."""
    assert learn("recorded", "--schema", "desk.proto", "--output", "entry.json", *arguments) in (0, 1)
    entry: dict[str, Any] = json.loads(Path("entry.json").read_text())
    return capsys.readouterr().out, entry


def write(name: str, request: Message, sent: Message, answer: list[Message], expected: Message | None) -> None:
    files = Path("recorded") / name
    files.mkdir(parents=True)
    (files / "request.json").write_text(json.dumps(request))
    (files / "body.json").write_text(json.dumps(sent))
    (files / "answer.json").write_text(" ".join(map(json.dumps, answer)))
    if expected is not None:
        (files / "expected.json").write_text(json.dumps(expected))


def exchange(
    name: str,
    answer: list[Message],
    expected: Message | None,
    request: Message | None = None,
    sent: Message | None = None,
    turns: tuple[tuple[str, str], ...] | None = None,
) -> None:
    """Writes an exchange whose turns are texts; each has texts of its own."""
    said = (("user", f"Ask {name}"),) if turns is None else turns
    messages = [{"role": role, "content": text} for role, text in said]
    told = [{"who": role, "say": text} for role, text in said]
    own = {"model": f"model-{name}"}
    write(
        name, {**own, "messages": messages, **(request or {})}, {**own, "turns": told, **(sent or {})}, answer, expected
    )


def text(content: str, finish: str = "stop") -> Message:
    return {"choices": [{"message": {"content": content}, "finish_reason": finish}]}


def said(*pieces: str, end: str = "END_DONE") -> list[Message]:
    return [*({"said": piece} for piece in pieces[:-1]), {"said": pieces[-1], "end": end}]


def results(name: str, *keys: str) -> None:
    """Writes an exchange with earlier calls, each with its result."""
    calls = [
        {"id": key, "type": "function", "function": {"name": "weather", "arguments": json.dumps({"day": number})}}
        for number, key in enumerate(keys)
    ]
    sent_calls = [
        {"key": key, "tool": "weather", "input": json.dumps({"day": number})} for number, key in enumerate(keys)
    ]
    request = [
        {"role": "user", "content": f"Look {name}"},
        {"role": "assistant", "content": f"Wait {name}", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": key, "content": f"Wet {name} {key}"} for key in keys),
    ]
    sent = [
        {"who": "user", "say": f"Look {name}"},
        {"who": "assistant", "say": f"Wait {name}", "calls": sent_calls},
        *({"who": "tool", "say": f"Wet {name} {key}", "callKey": key} for key in keys),
    ]
    model = f"model-{name}"
    asked = {"model": model, "messages": request, "tools": [TOOL]}
    answer: list[Message] = [{"calls": [{"key": f"new {name}", "tool": "weather", "input": '{"day":9}'}]}]
    answer.append({"end": "END_CALLS"})
    made = {"id": f"new {name}", "type": "function", "function": {"name": "weather", "arguments": '{"day":9}'}}
    expected = {"choices": [{"message": {"content": None, "tool_calls": [made]}, "finish_reason": "tool_calls"}]}
    write(name, asked, {"model": model, "turns": sent, "tools": [SENT_TOOL]}, answer, expected)


def conversations() -> None:
    exchange("a", said("Go", "od."), text("Good."), turns=(("system", "Be good."), ("user", "Hello")))
    turns = (("user", "One"), ("assistant", "Two"), ("user", "Three"))
    exchange("b", said("Cut", " o", end="END_CUT"), text("Cut o", "length"), turns=turns)
    results("r", "k1", "k2")


def error(name: str, status: int, note: str, expected: Message | None, **fields: str) -> None:
    exchange(name, [{"events": [{"status": status, "note": note, **fields}]}], expected)


def test_the_status_of_errors_is_the_field_that_holds_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversations()
    error("slow", 429, "slow down", {"status": 429, "error": {"message": "slow down", "code": "429"}})
    error("full", 503, "overloaded", {"error": {"message": "overloaded", "code": 503}})
    printed, entry = learned(capsys)
    rule = {"when": {"note": "set"}, "message": "note", "status": "status"}
    assert entry["read"][0] == {"each": "events", "error": rule}
    assert "  full: equal\n" in printed and "  slow: equal\n" in printed


def test_the_code_of_errors_is_the_field_that_holds_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversations()
    expected = {"status": 429, "error": {"message": "slow down", "code": "too_eager"}}
    error("slow", 429, "slow down", expected, word="too_eager")
    printed, entry = learned(capsys)
    assert entry["read"][0]["error"]["code"] == "word"
    assert "  slow: equal\n" in printed
    expected["error"] = {"message": "slow down", "code": "another"}
    Path("recorded/slow/expected.json").write_text(json.dumps(expected))
    printed, _ = learned(capsys)
    assert "read.error.code: no field holds the code that clients got of slow" in printed
    assert '  slow: differs\n    answer.error.code: recorded "another", made ' in printed


def test_a_status_that_no_field_holds_differs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversations()
    error("slow", 7, "slow down", {"status": 429, "error": {"message": "slow down"}})
    error("wrong", 8, "bad", {"status": 404, "error": {"message": "bad"}})
    printed, _ = learned(capsys)
    assert "read.error.status: no field holds the status that clients got of slow, wrong" in printed
    assert "  slow: differs\n    answer.error.status: recorded 429, made " in printed
    assert learn("recorded", "--diff", "entry.json") == 1
    assert "answer.error.status: recorded 429, the entry makes " in capsys.readouterr().out


def test_errors_among_events_of_answers_are_told_by_their_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    exchange("c", [{"events": [{"status": 200, "note": "fine"}]}, *said("O", "K")], text("OK"))
    error("slow", 429, "slow down", {"status": 429, "error": {"message": "slow down"}})
    printed, entry = learned(capsys)
    rule = {"when": {"status": 429}, "message": "note", "status": "status"}
    assert {"each": "events", "error": rule} in entry["read"]
    assert "events[].status 429: a response with it is an error" in printed


def test_a_response_that_only_cannot_be_read_is_not_the_expected_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing tells the failure: its events are those of an answer."""
    conversations()
    exchange("c", [{"events": [{"status": 200, "note": "fine"}]}, *said("O", "K")], text("OK"))
    error("lost", 200, "fine", {"status": 502, "error": {"message": "It failed."}})
    printed, _ = learned(capsys)
    assert "read.error: nothing tells the failure of lost" in printed
    assert "  lost: differs\n    answer.error: recorded an error, made a response that is none: " in printed


def test_an_error_of_which_nothing_is_known_is_told_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversations()
    exchange("gone", [], None)
    Path("recorded/gone/trailers.txt").write_text("grpc-status: 14\n")
    printed, _ = learned(capsys)
    assert "  gone: equal, of an answer that is not known\n" in printed


def test_an_exchange_whose_request_is_refused_keeps_its_known_answer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    exchange("must", said("Hm", "m"), text("Hmm"), {"tools": [TOOL], "tool_choice": "required"}, {"tools": [SENT_TOOL]})
    printed, _ = learned(capsys)
    assert "  must: differs\n    request: recorded a request, made a refusal: tool_choice" in printed


def test_a_oneof_of_choices_is_written_by_the_words_of_the_choice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    choices()
    printed, entry = learned(capsys)
    assert {name: entry["request"][name] for name in ("forbid", "must", "only")} == {
        "forbid": {"$case": "$choice", "none": True},
        "must": {"$case": "$choice", "required": True},
        "only": {"$case": "$choice", "named": "$chosen"},
    }
    assert "oneof" not in printed and "differs" not in printed


def choices() -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    answers: dict[str, tuple[Message, Message]] = {
        "none": ({"tool_choice": "none"}, {"forbid": True}),
        "must": ({"tool_choice": "required"}, {"must": True}),
        "named": ({"tool_choice": named}, {"only": "weather"}),
    }
    for name, (asked, sent) in answers.items():
        tools = [] if name == "none" else [SENT_TOOL]
        exchange(name, said("H", name), text(f"H{name}"), {"tools": [TOOL], **asked}, {"tools": tools, **sent})


def test_members_of_a_oneof_that_no_choice_tells_apart_are_open_and_no_other_doubt_names_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    exchange("c", said("H", "i"), text("Hi"), {"user": "anna"}, {"only": "anna"})
    exchange("d", said("H", "o"), text("Ho"), {"seed": 4}, {"must": True})
    printed, entry = learned(capsys)
    (kept,) = {"must", "only"} & {*entry["request"]}
    (dropped,) = {"must", "only"} - {kept}
    assert "request: 'must' and 'only' are of one oneof, and both are recorded" in printed
    assert f"request.{dropped}" not in printed.partition("not decided")[2]


def test_the_id_of_a_call_is_never_a_constant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All recorded calls have one id, as those of a server that counts in each conversation."""
    exchange("a", said("Go", "od."), text("Good."), turns=(("system", "Be good."), ("user", "Hello")))
    for name in ("r", "s", "t"):
        results(name, "z9")
    _, entry = learned(capsys)
    turns = entry["request"]["turns"]
    assert turns["assistant"]["calls"]["as"]["key"] == "$id"
    assert turns["tool"]["call_key"] == "$id"


def test_one_wrong_answer_leaves_the_rule_of_the_others_and_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    exchange("c", said("O", "K"), text("OK"))
    exchange("wrong", said("Fi", "ne"), text("nope"))
    printed, entry = learned(capsys)
    assert any(rule.get("text") == "said" for rule in entry["read"])
    assert "read.text: said holds it in the other responses, but not in wrong\n" in printed
    assert '  wrong: differs\n    answer.text: recorded "nope", made "Fine"\n' in printed
    assert "  a: equal\n" in printed


def test_tools_that_were_recorded_beside_the_choice_of_none_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    none = {"tools": [TOOL], "tool_choice": "none"}
    exchange("none", said("H", "i"), text("Hi"), none, {"tools": [SENT_TOOL], "forbid": True})
    printed, entry = learned(capsys)
    assert entry["request"]["tools"]["$each"] == "$tools"
    assert "request.tools: recorded beside tool_choice none, with which the gateway never sends tools\n" in printed
    assert "  none: differs\n    request.tools: recorded " in printed


def test_one_conversation_is_told_to_be_too_few(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exchange("a", said("Go", "od."), text("Good."), turns=(("user", "Hi"), ("user", "Ho")))
    body = Path("recorded/a/body.json")
    body.write_text(body.read_text().replace("Ho", "HO"))
    assert learn("recorded", "--schema", "desk.proto") == 2
    printed = capsys.readouterr().err
    assert printed.startswith(
        "dragoman: one conversation is too few to tell where it stands in the recorded requests: add"
    )


@pytest.mark.parametrize("part", ["body", "answer"])
def test_a_message_that_is_not_of_the_schema_names_its_file(
    part: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversations()
    Path(f"recorded/b/{part}.json").write_text('{"nothing": 1}')
    assert learn("recorded", "--schema", "desk.proto") == 2
    assert capsys.readouterr().err.startswith(f"dragoman: recorded/b/{part}.json: it is no acme.desk.v1.")
