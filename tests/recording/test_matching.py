import json

import msgspec

from gateway.recording.lines import BytesLine, HeadLine, data_of
from gateway.recording.matching import Matcher, Matching, Miss, RecordedRequest
from gateway.recording.recording import Interaction
from tests.recording.samples import goldens, interaction_of, names


def interaction(x: int, body: object) -> Interaction:
    one = interaction_of(goldens()[names().index("openai_chat_plain_answer")])
    assert one.sent is not None
    sent = msgspec.structs.replace(one.sent, body=data_of(json.dumps(body).encode()))
    return msgspec.structs.replace(one, sent=sent).numbered(x)


FIRST = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "user": "a"}
SECOND = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "call_1", "content": "14"}]}


def asked(body: object, path: str = "/chat/completions", method: str = "POST") -> RecordedRequest:
    return RecordedRequest(method, path, json.dumps(body, indent=1).encode())


def matcher(matching: Matching) -> Matcher:
    return Matcher([interaction(1, FIRST), interaction(2, SECOND)], "backend", matching)


def number(found: Interaction | Miss) -> int:
    assert isinstance(found, Interaction), found
    return found.x


def miss(found: Interaction | Miss) -> Miss:
    assert isinstance(found, Miss)
    return found


def test_the_shape_of_a_request_has_no_ids_and_no_order() -> None:
    finding = matcher("shape")
    renamed = {**SECOND, "messages": [{"role": "tool", "tool_call_id": "call_other", "content": "14"}]}
    assert number(finding.find(asked(renamed))) == 2
    assert [one.x for one in finding.unused] == [1]
    assert number(finding.find(asked({**FIRST, "user": "b"}, "/v1/chat/completions?key=hidden"))) == 1
    assert finding.unused == ()


def test_an_exact_request_has_every_value() -> None:
    finding = matcher("exact")
    found = miss(finding.find(asked({**FIRST, "user": "b"})))
    assert (found.nearest, found.place) == (1, "body.user")
    assert 'body.user: recorded "a", now "b"' in found.message
    assert number(finding.find(asked(FIRST))) == 1


def test_a_sequence_gives_responses_in_order() -> None:
    finding = matcher("sequence")
    assert [number(finding.find(asked("anything"))) for _ in range(2)] == [1, 2]
    found = miss(finding.find(asked("anything")))
    assert found.used and "given already (2)" in found.message


def test_a_miss_names_the_nearest_request_and_the_first_difference() -> None:
    finding = matcher("shape")
    other = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "15"}]}
    found = miss(finding.find(asked(other)))
    assert (found.nearest, found.used) == (2, False)
    assert 'body.messages[0].content: recorded "14", now "15"' in found.message
    longer = miss(finding.find(asked({**FIRST, "messages": FIRST["messages"] * 2})))  # type: ignore[operator]
    assert "body.messages, entries: recorded 1, now 2" in longer.message
    method = miss(finding.find(asked(FIRST, method="GET")))
    assert "method: recorded POST, now GET" in method.message
    path = miss(finding.find(asked(FIRST, "/v1/responses")))
    assert "path: recorded /chat/completions, now /v1/responses" in path.message
    secret = miss(finding.find(asked(FIRST, f"/v1/models/x?key={'k' * 20}&api=sk-{'a' * 20}")))
    assert "path: recorded /chat/completions, now /v1/models/x." in secret.message
    extra = miss(finding.find(asked({**FIRST, "stop": "x"})))
    assert 'body.stop: recorded nothing, now "x"' in extra.message


def test_a_response_is_given_once_and_a_second_request_is_told_so() -> None:
    finding = matcher("shape")
    finding.find(asked(FIRST))
    found = miss(finding.find(asked(FIRST)))
    assert found.used and found.nearest == 1 and "given already" in found.message
    again = miss(finding.find(asked({**FIRST, "model": "n"})))
    assert "It was given already, too." in again.message


def test_what_is_no_json_is_compared_by_its_bytes() -> None:
    one = interaction(1, FIRST)
    assert one.sent is not None
    one = msgspec.structs.replace(one, sent=msgspec.structs.replace(one.sent, body=data_of(b"\0\1\2")))
    finding = Matcher([one], "backend", "shape")
    assert "sha256" in miss(finding.find(RecordedRequest("POST", "/chat/completions", b"\0\1\3"))).message
    assert number(finding.find(RecordedRequest("POST", "/chat/completions", b"\0\1\2"))) == 1


def test_a_side_without_responses_has_none() -> None:
    one = msgspec.structs.replace(interaction(1, FIRST), sent=None)
    assert "no response of this side" in miss(Matcher([one], "backend", "shape").find(asked(FIRST))).message
    steps = tuple(step for step in one.steps if not (isinstance(step, BytesLine | HeadLine) and step.side == "client"))
    assert Matcher([msgspec.structs.replace(one, steps=steps)], "openai", "shape").unused == ()
