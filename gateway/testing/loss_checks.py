"""Checks that an adapter loses nothing in silence: content is sent, rejected, or reported in a notice."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

import msgspec

from gateway.core.conversation import (
    EMPTY,
    Conversation,
    File,
    Image,
    JsonObject,
    Reasoning,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.testing.adapter_case import Case
from gateway.testing.request_form import check_form

# A wire may carry an image in base64, or its bytes.
_IN_BASE64: Final = b"aW1hZ2VtYXJrZXIx"
# One of each kind of part that some backends do not accept, with the bytes that show that it was sent. The kind of the
# last one is unknown to every adapter.
PARTS: Final[tuple[tuple[Image | File, bytes], ...]] = (
    (Image("https://host/imagemarker.png"), b"imagemarker"),
    (Image(f"data:image/png;base64,{_IN_BASE64.decode()}"), _IN_BASE64),
    (Image("data:,nothing"), b"nothing"),
    (Image("https://host/imagemarker.png", {"detail": "low", "cache_control": {}}), b"imagemarker"),
    (File("file", {"type": "file", "file": {"file_id": "filemarker"}}), b"filemarker"),
    (File("input_audio", {"type": "input_audio", "input_audio": 7}), b"input_audio"),
    (File("smell of\ntomorrow", {"type": "smell of\ntomorrow", "smell": ["smellmarker"]}), b"smellmarker"),
)
PART_ROLES: Final[tuple[Role, ...]] = ("user", "assistant", "system", "developer")

# Arguments of calls as models have written them, by description.
ARGUMENTS: Final[Mapping[str, str]] = {
    **{"empty": "", "blank": " \n", "no JSON": "argumentmarker", "broken off": '{"path": "argumentmarker'},
    **{"two values": '{"n": 1} {"path": "argumentmarker"}', "a key twice": '{"a": 1, "a": "argumentmarker"}'},
    **{"null": "null", "true": "true", "a number": "7", "text": '"argumentmarker"', "an array": '["argumentmarker"]'},
    **{"a large number": '{"n": 1' + "0" * 400 + "}", "not a number": '{"n": NaN, "s": "argumentmarker"}'},
    **{"an empty key": '{"": "argumentmarker"}', "half a character": '{"s": "\\ud800"}', "a zero": '{"s": "\\u0000"}'},
    **{"nested": '{"a":' * 150 + '"argumentmarker"' + "}" * 150, "deep": "[" * 20_000 + "]" * 20_000},
    **{"deep and broken off": '{"a":' * 20_000, "wrapped": '{"name": "look", "args": {"path": "argumentmarker"}}'},
}
# Fields that no schema of a message, a part or a call defines, and one with an unknown value.
UNKNOWN: Final[JsonObject] = {"unknownmarker": {"deep": [1, None, "x"]}, "cache_control": "x"}


def nothing_is_dropped_in_silence(case: Case) -> None:
    """Every word of a plain history is in the request, or a notice gives the reason."""
    conversation = _marked(tools=case.shared.capabilities.tools)
    exchange = case.sends(conversation)
    words = [word for turn in conversation.turns for word in re.findall(r"[a-z]+marker", str(turn))]
    missing = [word for word in words if word.encode() not in exchange.request.body]
    assert not missing or _has_notice(exchange.notices), f"{missing} were dropped without a notice"


def a_summary_is_sent(case: Case) -> None:
    """A summary in the place of older messages is sent, before the question that follows it."""
    summary = Turn("user", (Text("[Turns left out.]\nsummarymarker"),), synthesized=True, summary=True)
    system, question = Turn("system", (Text("Be brief."),), index=0), Turn("user", (Text("secondmarker"),), index=9)
    histories = [(system, summary, question), (summary, question)]
    if case.build().capabilities.tools:
        histories.append((system, summary, question, *_called("{}")))
    for turns in histories:
        body = case.sends(Conversation(turns, model="model")).request.body
        places = [body.find(word) for word in (b"summarymarker", b"secondmarker")]
        assert 0 <= places[0] < places[1], "the summary is not sent before the question"


def parts_are_not_dropped_in_silence(case: Case) -> None:
    """An image, a file or a part of an unknown kind, in a message of any role or in a tool's result, is sent, rejected,
    or reported in a notice."""
    for part, word in PARTS:
        question = Turn("user", (Text("What is this?"), part), index=0)
        histories: list[tuple[Turn, ...]] = [(question,)]
        histories += [(Turn("user", (Text("?"),)), Turn(role, (Text("Look."), part), index=1)) for role in PART_ROLES]
        histories.append((question, *_called("{}", part)))
        words = (word, b"imagemarker1") if word == _IN_BASE64 else (word,)
        for turns in histories:
            _sent_or_noticed(case, turns, words, f"a part of kind {word!r}")


def any_arguments_can_be_sent(case: Case) -> None:
    """The arguments of an earlier call are text that a model wrote: any text is sent, rejected or reported."""
    for kind, arguments in ARGUMENTS.items():
        turns = (Turn("user", (Text("?"),), index=0), *_called(arguments))
        word = b"argumentmarker" if "argumentmarker" in arguments else b""
        _sent_or_noticed(case, turns, (word,), f"arguments ({kind})")


def unknown_fields_are_not_dropped_in_silence(case: Case) -> None:
    """A field of a message, a part or a call that no schema defines, and the reasoning of an earlier answer, is sent,
    rejected, or reported in a notice."""
    question = Turn("user", (Text("?"), Text("")), index=0)
    call, custom = ToolCall("k", "look", "{}"), ToolCall("k", "look", "free", {**UNKNOWN, "type": "custom"})
    result = Turn("tool", (ToolResult("k", (Text("x"),)),), index=2)
    histories: dict[str, tuple[Turn, ...]] = {
        "an unknown field of a message": (msgspec.structs.replace(question, extra=UNKNOWN),),
        "an unknown field of a part": (Turn("user", (Text("?", UNKNOWN),), index=0),),
        "an unknown field of an empty message": (
            question,
            Turn("assistant", (), index=1, extra=UNKNOWN),
            Turn("user", (), index=2),
        ),
        "an unknown field of a refusal": (
            question,
            Turn("assistant", (Text("No.", {**UNKNOWN, "type": "refusal"}),), index=1),
            question,
        ),
        "the reasoning of an earlier answer": (
            question,
            Turn("assistant", (Reasoning("unknownmarker", "reasoning"),), index=1),
            question,
        ),
        "an unknown field of a call": (
            question,
            Turn("assistant", (msgspec.structs.replace(call, extra=UNKNOWN),), index=1),
            result,
        ),
        "an unknown field of a custom call": (question, Turn("assistant", (custom,), index=1), result),
        "an unknown field of a result": (question, *_called("{}", Text("y", UNKNOWN))),
        "an unknown field of a tool message": (
            question,
            Turn("assistant", (call,), index=1),
            msgspec.structs.replace(result, extra=UNKNOWN),
        ),
    }
    for what, turns in histories.items():
        _sent_or_noticed(case, turns, (b"unknownmarker",), what)


def other_dialects_are_not_sent(case: Case) -> None:
    """A message or a parameter in the words of a dialect that no backend speaks never reaches the backend."""
    turn = Turn("user", (Text("What is this?"),), index=0)
    source = Source("no dialect", {"role": "user", "content": "sourcemarker"})
    written = msgspec.structs.replace(turn, source=source)
    plain, foreign = (
        case.sends(Conversation((sent,), model="model", params=params, dialect="no dialect")).request.body
        for sent, params in ((turn, EMPTY), (written, {"parametermarker": "parametermarker"}))
    )
    assert foreign == plain, "a source or a parameter of another dialect changes what is sent"


def _called(arguments: str, *parts: Text | Image | File) -> tuple[Turn, Turn]:
    """Builds a call and its result."""
    call = Turn("assistant", (ToolCall("k", "look", arguments),), index=1)
    return call, Turn("tool", (ToolResult("k", (Text("This."), *parts)),), index=2)


def _sent_or_noticed(case: Case, turns: tuple[Turn, ...], words: tuple[bytes, ...], what: str) -> None:
    """Checks each policy for parts: a word is sent so that the adapter can describe it, rejected, or reported."""
    tools = (ToolSpec("look"),) if case.shared.capabilities.tools else ()
    for images in _IMAGES:
        policy = msgspec.structs.replace(case.policy, images=images)
        try:
            exchange = case.sends(Conversation(turns, tools, model="model"), policy)
        except InvalidRequest:
            continue
        check_form(exchange.request)
        assert case.shared.describe(exchange.request.body) is not None, f"{what}: nothing to read"
        sent = any(word in exchange.request.body for word in words)
        assert sent or _has_notice(exchange.notices), f"{what} was dropped: send it, or add a notice to the request"


_IMAGES: Final[tuple[Literal["refuse", "placeholder"], ...]] = ("refuse", "placeholder")


def _has_notice(notices: Iterable[Notice]) -> bool:
    """Returns whether a notice reports that content was not sent unchanged."""
    return any(notice.action not in ("seen", "added") for notice in notices)


def _marked(tools: bool) -> Conversation:
    """Builds a short history in which every text is a word that occurs once. The adapter receives it as a client wrote
    it."""
    turns = [
        Turn("system", (Text("systemmarker"),)),
        Turn("user", (Text("firstmarker"),)),
        Turn("assistant", (Text("answermarker"),)),
        Turn("user", (Text("secondmarker"),)),
    ]
    if tools:
        turns += [
            Turn("assistant", (ToolCall("callidmarker", "toolmarker", '{"key": "argumentmarker"}'),)),
            Turn("tool", (ToolResult("callidmarker", (Text("resultmarker"),)),)),
        ]
    numbered = tuple(msgspec.structs.replace(turn, index=index) for index, turn in enumerate(turns))
    offered = (ToolSpec("toolmarker", "Looks it up."),) if tools else ()
    return Conversation(numbered, offered, model="model", stream=True)


CHECKS: Final[tuple[Callable[[Case], None], ...]] = (
    nothing_is_dropped_in_silence,
    a_summary_is_sent,
    parts_are_not_dropped_in_silence,
    any_arguments_can_be_sent,
    unknown_fields_are_not_dropped_in_silence,
    other_dialects_are_not_sent,
)
