import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.encoder import encode_request
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Conversation, ToolCall
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from tests.adapters.warp.backend.sent import (
    ENCODINGS,
    EXECUTE,
    Encoding,
    assistant,
    call,
    conversation,
    query,
    result,
    sent,
    system,
    user,
)

FIRST_TURN = bytes.fromhex(
    "0a00120e320c0a0a0a080a0268691a0020011a0d0a060a046175746f20014a0109322d1a2b0a06636c69656e74221d0a0745786563757465"
    "1a120a100a047479706512081a066f626a6563742a027331"
)
RESULT_TURN = bytes.fromhex("121632140a1212100a026b31620a0a080a060a040a026f6b22040a026331")

ROUNDS = conversation(
    system("Be brief."),
    user("Which files?"),
    assistant("", call("k1", '{"path": "a"}')),
    result("k1", "first"),
    assistant("And another.", call("k2", '{"path": "b"}')),
    result("k2", "second"),
)


def test_the_first_turn_is_these_bytes() -> None:
    options = WarpOptions(encoding="structured", server_name="client", server_id="s1", reasoning=False)
    made = encode_request(conversation(user("hi"), tools=[EXECUTE]), Policy(), options)
    assert made.body == FIRST_TURN


def test_the_turn_that_brings_a_result_has_this_input_and_metadata() -> None:
    expected = pb.Request.FromString(RESULT_TURN)
    carrying = ToolCall("k1", "Execute", "{}", {"extra_content": {"warp": {"conversation_id": "c1"}}})
    request = sent(conversation(user("hi"), assistant("", carrying), result("k1", "ok")), encoding="structured")
    assert (request.input, request.metadata) == (expected.input, expected.metadata)


def test_a_round_of_calls_is_this_text() -> None:
    turns = [
        user("查看配置文件"),
        assistant("", call("toolu_xxx", '{"command": "cat config.json"}')),
        result("toolu_xxx", "{配置文件内容...}"),
    ]
    made = encode_request(conversation(*turns), Policy(), WarpOptions())
    text = (
        "User: 查看配置文件\n\n"
        'Assistant: \nTool calls: Called Execute with args: {"command": "cat config.json"}\n\n'
        "Tool result (toolu_xxx): {配置文件内容...}\n\n"
        "User: Please analyze the tool results above and provide your response."
    )
    assert text.encode() in made.body
    assert query(pb.Request.FromString(made.body)) == text


def test_the_request_names_dragoman_and_asks_for_an_unpacked_stream() -> None:
    made = encode_request(conversation(user("hi")), Policy(), WarpOptions())
    assert made.path == "/ai/multi-agent"
    assert made.accepts == ("text/event-stream",)
    assert made.headers == {
        "content-type": "application/x-protobuf",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "x-warp-client-id": "dragoman",
        "x-warp-client-version": "0.1.0",
    }


def test_facts_about_the_system_are_sent_when_they_are_given() -> None:
    options = WarpOptions(os_category="Linux", os_name="Debian", os_version="13")
    headers = encode_request(conversation(user("hi")), Policy(), options).headers
    assert headers["x-warp-os-category"] == "Linux"
    assert headers["x-warp-os-name"] == "Debian"
    assert headers["x-warp-os-version"] == "13"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_question_is_never_lost(encoding: Encoding) -> None:
    assert str(sent(ROUNDS, encoding=encoding)).count("Which files?") == 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_system_text_is_in_every_request_also_in_one_that_brings_only_results(encoding: Encoding) -> None:
    for end in range(2, len(ROUNDS.turns) + 1):
        assert str(sent(conversation(*ROUNDS.turns[:end]), encoding=encoding)).count("Be brief.") == 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_result_follows_its_call_in_the_order_of_the_conversation(encoding: Encoding) -> None:
    text = str(sent(ROUNDS, encoding=encoding))
    # A printed request shows the log of a task before the input, as it happened.
    places = [text.index(word) for word in ("Which files?", "k1", "first", "And another.", "second")]
    assert places == sorted(places)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_results_from_before_the_last_question_are_kept(encoding: Encoding) -> None:
    text = str(sent(conversation(*ROUNDS.turns, assistant("Both."), user("Thanks, and now?")), encoding=encoding))
    assert all(word in text for word in ("first", "second", "Both.", "Thanks, and now?"))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nothing_about_this_machine_is_sent(encoding: Encoding) -> None:
    context = sent(ROUNDS, encoding=encoding).input.context
    assert context == pb.InputContext()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_conversations_do_not_know_each_other(encoding: Encoding) -> None:
    alone = sent(conversation(user("hi")), encoding=encoding)
    sent(ROUNDS, encoding=encoding)
    assert sent(conversation(user("hi")), encoding=encoding) == alone
    assert not alone.HasField("metadata")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_half_a_surrogate_pair_is_refused(encoding: Encoding) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        sent(conversation(user("\ud83d")), encoding=encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_conversation_without_turns_still_has_an_input(encoding: Encoding) -> None:
    assert sent(Conversation(()), encoding=encoding).input.WhichOneof("type")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_of_any_script_and_length_is_sent_whole(encoding: Encoding) -> None:
    text = "\U0001f469\u200d\U0001f4bb äß中\u2028" * 20_000
    assert text in query(sent(conversation(user(text)), encoding=encoding))
