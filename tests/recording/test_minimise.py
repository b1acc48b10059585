import json

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.recording.minimise import Minimised, minimise, shows, with_body, with_bytes, with_reads
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import compare_to_recorded
from gateway.recording.recording import Recording, read_recording, write_recording
from gateway.recording.remake import remade
from gateway.recording.route import policy_fields
from tests.recording.samples import goldens, interaction_of, names


def named(name: str) -> Recording:
    return Recording().with_interactions([interaction_of(goldens()[names().index(name)])])


def asking(document: Json, name: str = "openai_chat_plain_answer") -> Recording:
    """The response of a golden folder to another request."""
    (interaction,) = named(name).interactions()
    changed = with_body(interaction, document)
    return Recording().with_interactions([remade(changed, run_offline(changed))])


def body_of(found: Minimised) -> Json:
    (interaction,) = found.recording.interactions()
    value: Json = msgspec.json.decode(interaction.body or b"")
    return value


def long_history() -> Json:
    """A history of 29 messages with one orphaned result, and eleven tools."""
    messages: list[Json] = [{"role": "system", "content": "You help.\nWith much."}]
    for at in range(9):
        call: Json = {"id": f"call_{at}", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
        messages += [
            {"role": "user", "content": f"question {at}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{at}", "content": f"result {at}"},
        ]
    messages[19:19] = [{"role": "tool", "tool_call_id": "lost", "content": "nobody asked for this"}]
    tools: Json = [{"type": "function", "function": {"name": f"tool_{at}", "parameters": {}}} for at in range(11)]
    return {"model": "auto", "messages": messages, "tools": tools, "temperature": 0.5, "stream": True}


@pytest.mark.parametrize("until", ["rule:TOOL_ID_UNKNOWN", "same"])
def test_a_long_history_becomes_what_shows_the_fault(until: str) -> None:
    recording = asking(long_history())
    found = minimise(recording, until)
    body = body_of(found)
    assert isinstance(body, dict) and isinstance(body["messages"], list)
    assert found.minimal and found.tries < 2000
    assert len(body["messages"]) <= 5 and "tools" not in body
    (interaction,) = found.recording.interactions()
    assert "TOOL_ID_UNKNOWN" in {one.rule for one in run_offline(interaction).violations}


@pytest.mark.parametrize(
    ("name", "until"),
    [
        ("openai_chat_broken_history", "same"),
        ("openai_chat_truncated", "code:upstream_stream_truncated"),
        ("openai_chat_enveloped_call", "rule:ENVELOPE_OPENED"),
        ("openai_chat_rate_limited", "status:429"),
        ("openai_chat_error_in_stream", "same"),
        ("anthropic_messages_round_trip", "rule:FIELD_NOT_SENT"),
    ],
)
def test_the_smaller_recording_still_shows_it_and_nothing_can_be_left_out(name: str, until: str) -> None:
    recording = named(name)
    (whole,) = recording.interactions()
    test = shows(until, run_offline(whole))
    found = minimise(recording, until)
    (small,) = found.recording.interactions()
    assert test(run_offline(small))
    assert [check for check in compare_to_recorded(small, run_offline(small)) if check.difference] == []
    assert len(small.body or b"") <= len(whole.body or b"")
    assert minimise(recording, until) == found, "deterministic"
    again = minimise(found.recording, until)
    assert (body_of(again), len(again.recording.lines)) == (body_of(found), len(found.recording.lines))
    body = msgspec.json.decode(small.body or b"")
    for key in body if isinstance(body, dict) else ():
        less = with_body(small, {name: value for name, value in body.items() if name != key})
        assert not test(run_offline(less)), key
    reads = [read.data.content for read in small.reads]
    for at in range(len(reads)):
        assert not test(run_offline(with_reads(small, reads[:at] + reads[at + 1 :])))
    assert read_recording(write_recording(found.recording)) == found.recording


def test_the_smaller_history_has_no_other_fault_and_ends_the_same() -> None:
    messages: Json = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "call_9", "content": "lost"}]
    found = minimise(asking({"model": "auto", "messages": messages}), "rule:TOOL_ORPHAN")
    (interaction,) = found.recording.interactions()
    run = run_offline(interaction)
    assert {one.rule for one in run.violations} == {"TOOL_ORPHAN"}, "without a role it would be no tool's result"
    assert (run.status, run.code) == (200, "")


def test_words_that_do_not_matter_go() -> None:
    text = "First line.\nIgnore this User: line\nUser: I am somebody else\nlast"
    document: Json = {
        "model": "auto",
        "messages": [{"role": "user", "content": text, "colour": "red"}, {"role": "robot"}],
    }
    body = body_of(minimise(asking(document), "same"))
    assert isinstance(body, dict) and "First" not in json.dumps(body)


def test_of_several_requests_the_first_that_shows_it_stays() -> None:
    plain, limited = (
        named("openai_chat_plain_answer").interactions()[0],
        named("openai_chat_rate_limited").interactions()[0],
    )
    recording = Recording().with_interactions([plain.numbered(1), limited.numbered(2), limited.numbered(3)])
    (one,) = minimise(recording, "status:429").recording.interactions()
    assert one.x == 1 and one.end is not None and one.end.status == 429


def test_a_body_that_is_no_json_becomes_smaller_by_bytes() -> None:
    (interaction,) = named("openai_chat_plain_answer").interactions()
    broken = with_bytes(interaction, b'{"model": "auto", "messages": [')
    recording = Recording().with_interactions([remade(broken, run_offline(broken))])
    (one,) = minimise(recording, "code:invalid_json").recording.interactions()
    assert len(one.body or b"") <= 1


@pytest.mark.parametrize("until", ["nonsense", "rule:", "same:x", "mood:bad"])
def test_an_unknown_test_is_refused(until: str) -> None:
    with pytest.raises(InvalidRequest, match="Known tests"):
        minimise(named("openai_chat_plain_answer"), until)


def test_what_the_recording_does_not_show_is_told() -> None:
    with pytest.raises(InvalidRequest, match="No request of the recording shows rule:NO_SUCH_RULE"):
        minimise(named("openai_chat_plain_answer"), "rule:NO_SUCH_RULE")


def test_a_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.recording.minimise.MOST_TRIES", 20)
    found = minimise(asking(long_history()), "same")
    assert found.tries == 20 and not found.minimal


def test_a_body_that_is_nested_too_deep_becomes_smaller_and_stays_it() -> None:
    (interaction,) = named("openai_chat_plain_answer").interactions()
    deep = with_bytes(interaction, b'{"model": ' + b"[" * 600 + b"]" * 600 + b"}")
    recording = Recording().with_interactions([remade(deep, run_offline(deep))])
    (one,) = minimise(recording, "code:invalid_json").recording.interactions()
    before, after = run_offline(deep).error, run_offline(one).error
    assert before is not None and after is not None and after.message == before.message, "no other fault of JSON"
    assert len(one.body or b"") < len(deep.body or b"")


def strict(document: Json) -> Recording:
    """A request that the gateway refuses for its history."""
    (interaction,) = named("openai_chat_plain_answer").interactions()
    assert interaction.route is not None
    route = msgspec.structs.replace(interaction.route, policy=policy_fields(Policy(repair="strict")))
    changed = with_body(msgspec.structs.replace(interaction, route=route), document)
    return Recording().with_interactions([remade(changed, run_offline(changed))])


@pytest.mark.parametrize("until", ["code:invalid_value", "status:400", "same"])
def test_the_failure_keeps_its_words_and_its_place(until: str) -> None:
    """Many refusals share a code: a search that keeps only that ends at another one."""
    messages: list[Json] = [{"role": "user", "content": f"question {at}"} for at in range(4)]
    messages.append({"role": "tool", "tool_call_id": "lost", "content": "x"})
    recording = strict({"model": "auto", "temperature": 0, "messages": messages})
    (whole,) = recording.interactions()
    (small,) = minimise(recording, until).recording.interactions()
    before, after = run_offline(whole).error, run_offline(small).error
    assert before is not None and after is not None
    assert (before.param, after.param) == ("messages[4].role", "messages[0].role")
    assert after.message == before.message.replace("messages[4]", "messages[0]")
    assert "lost" in after.message


def test_it_says_which_request_it_took_and_whether_the_failure_is_the_backends_answer() -> None:
    (plain,), (limited,) = (named(f"openai_chat_{name}").interactions() for name in ("plain_answer", "rate_limited"))
    recording = Recording().with_interactions([plain.numbered(1), limited.numbered(2)])
    found = minimise(recording, "status:429")
    assert (found.taken, found.answered) == (2, True), "no part of the request matters to what was recorded"
    orphan: Json = {"role": "tool", "tool_call_id": "a", "content": "x"}
    found = minimise(strict({"model": "auto", "messages": [orphan]}), "same")
    assert (found.taken, found.answered) == (1, False)
    found = minimise(recording, "command:x", judge=lambda one: b"429" in write_recording(one))
    assert (found.taken, found.answered) == (2, False), "the command may ask the backend"
