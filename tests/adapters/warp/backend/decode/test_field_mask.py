from collections.abc import Sequence

import pytest

from adapters.warp.backend.decode.field_mask import MaskError, append, update
from adapters.warp.multi_agent_pb2 import Message, Task


def said(text: str, **fields: str) -> Message:
    return Message(agent_output={"text": text}, **fields)  # type: ignore[arg-type] # only text fields are named


@pytest.mark.parametrize(
    ("target", "source", "paths", "result"),
    [
        (said("a"), said("b"), ["agent_output.text"], said("b")),
        (said("a"), said("b"), ["agent_output"], said("b")),
        (said("a"), said("b", id="2"), ["id"], said("a", id="2")),
        (said("a", id="1"), said("b"), ["id"], said("a")),
        (said("a"), Message(), ["agent_output.text"], Message(agent_output={})),
        (said("a"), Message(), ["agent_output"], Message()),
        (
            said("a"),
            Message(agent_reasoning={"reasoning": "r"}),
            ["agent_reasoning"],
            Message(agent_reasoning={"reasoning": "r"}),
        ),
        (said("a"), Message(), ["agent_reasoning.reasoning"], said("a")),
        (said("a"), said("b"), [], said("a")),
        (said("a"), said("b", id="2"), ["id", "agent_output.text"], said("b", id="2")),
    ],
)
def test_update_replaces_the_masked_fields(
    target: Message, source: Message, paths: Sequence[str], result: Message
) -> None:
    assert update(target, source, paths) == []
    assert target == result


def test_append_continues_the_masked_texts() -> None:
    target = said("a", server_message_data="x")
    assert append(target, said("b", server_message_data="y"), ["agent_output.text", "server_message_data"]) == []
    assert target == said("ab", server_message_data="xy")


def test_a_mask_is_a_set_of_paths() -> None:
    target = said("a")
    assert append(target, said("b"), ["agent_output.text", "mood", "agent_output.text", "mood"]) == ["mood"]
    assert target == said("ab")
    assert update(target, said("c"), ["mood", "mood", *["agent_output.text"] * 2]) == ["mood"]
    assert target == said("c")


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "mood",
        "message",
        "agent_output.mood",
        "agent_output.text.more",
        "mood.text",
        "agentOutput.text",
        "agent_output.",
    ],
)
@pytest.mark.parametrize("change", [update, append])
def test_an_unknown_path_changes_nothing(path: str, change: object) -> None:
    assert callable(change)
    target = said("a")
    assert change(target, said("b"), [path]) == [path]
    assert target == said("a")


@pytest.mark.parametrize("path", ["agent_output", "timestamp.seconds", "user_query.referenced_attachments"])
def test_only_text_can_be_appended_to(path: str) -> None:
    target = Message(user_query={}, timestamp={"seconds": 1}) if "user" in path else Message(timestamp={"seconds": 1})
    with pytest.raises(MaskError):
        append(target, target, [path])


def test_a_path_through_a_list_goes_element_by_element() -> None:
    target, source = Task(messages=[said("a"), said("c")]), Task(messages=[said("b"), said("d")])
    append(target, source, ["messages.agent_output.text"])
    assert [message.agent_output.text for message in target.messages] == ["ab", "cd"]
    update(target, Task(messages=[said("e")]), ["messages"])
    assert [message.agent_output.text for message in target.messages] == ["e"]


def test_a_path_through_lists_of_unequal_length_is_an_error() -> None:
    target = Task(messages=[said("a")])
    with pytest.raises(MaskError):
        append(target, Task(messages=[said("b"), said("c")]), ["messages.agent_output.text"])


def test_a_map_has_no_paths_below_it() -> None:
    target = Message(user_query={"referenced_attachments": {"a": {"plain_text": "x"}}})
    assert update(target, Message(), ["user_query.referenced_attachments.key"]) == [
        "user_query.referenced_attachments.key"
    ]
    update(target, Message(), ["user_query.referenced_attachments"])
    assert not target.user_query.referenced_attachments
