import pytest

from gateway.core.conversation import File, Image, Source, Text, ToolResult, Turn
from gateway.core.errors import Unsupported
from gateway.core.policy import Policy
from tests.adapters.warp.backend.sent import RED_DOT, assistant, both, call, conversation, query, rules, sent, user

REMOTE = Image("https://example.org/a.png")
PLACEHOLDER = Policy(images="placeholder")


def test_a_text_says_where_each_attached_image_stood() -> None:
    turns = [
        Turn("user", (Text("before"), Image(RED_DOT), Text("after"))),
        assistant("", call("k")),
        Turn("tool", (ToolResult("k", (Text("shot"), Image("data:image/gif;base64,R0lG"))),)),
    ]
    request, notices = both(conversation(*turns))
    assert "before\n[image 1]\nafter" in query(request)
    assert "shot\n[image 2]" in query(request)
    assert [image.mime_type for image in request.input.context.images] == ["image/png", "image/gif"]
    assert rules(notices).count("IMAGE_ATTACHED") == 2


@pytest.mark.parametrize(
    ("turn", "param"),
    [
        (Turn("user", (Text("a"), REMOTE), index=4), "messages[4].content[1]"),
        (Turn("tool", (ToolResult("k", (Text("a"), REMOTE)),), index=2), "messages[2].content[1]"),
        (Turn("user", (File("input_audio", {}),), index=1), "messages[1].content[0]"),
    ],
)
def test_a_part_that_text_cannot_tell_is_refused_by_its_place(turn: Turn, param: str) -> None:
    with pytest.raises(Unsupported) as caught:
        sent(conversation(turn))
    assert caught.value.param == param


@pytest.mark.parametrize("encoding", ["flatten", "structured"])
def test_placeholders_stand_for_what_cannot_be_sent_and_attached_images_stay_images(encoding: str) -> None:
    turn = Turn("user", (Text("see"), REMOTE, Image(RED_DOT), File("input_audio", {})))
    request, notices = both(conversation(turn), PLACEHOLDER, encoding=encoding)
    assert "[image]" in query(request)
    assert "[input_audio]" in query(request)
    assert len(request.input.context.images) == 1
    assert rules(notices).count("PART_NOT_SENT") == 2


def test_the_conversation_itself_is_not_touched() -> None:
    asked = conversation(Turn("user", (Image(RED_DOT),), source=Source("chat", {"role": "user"})), user("hi"))
    before = repr(asked)
    sent(asked)
    assert repr(asked) == before
