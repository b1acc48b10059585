"""Holds the tables of docs/warp-backends.md to the schema, to what the encoder writes and to what the decoder reads."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message as AnyMessage

from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import (
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import BackendError
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from tests.adapters.warp.backend import script
from tests.adapters.warp.backend.sent import ENCODINGS, RED_DOT, Encoding, assistant, both, system, user
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "warp-backends.md").read_text(encoding="utf-8")
PREFIX: Final = f"{pb.DESCRIPTOR.package}."
# A field: the name of its message and its own. Descriptors are of two classes, and the stubs know one of them.
Place: TypeAlias = tuple[str, str]
Descriptor: TypeAlias = Any
# What is passed over may be told in these words.
PASSED_OVER: Final = frozenset({"ACTION_IGNORED", "MESSAGE_IGNORED", "NATIVE_CALL_DROPPED", "UNKNOWN_VARIANT"})


def rows() -> Iterator[tuple[Place, int, str]]:
    """Each field of the tables with its number and what becomes of it."""
    for section in re.split(r"^### ", PAGE, flags=re.M)[1:]:
        message = re.match(r"`([\w.]+)`", section)
        for fields, fate in re.findall(r"^\| (`.+?) \| (sent, read|sent|read|passed over) \|", section, re.M):
            for name, number in re.findall(r"`(\w+)` (\d+)", fields):
                assert message is not None
                yield (message[1], name), int(number), fate


def messages() -> dict[str, Descriptor]:
    """Every message of the schema that a request or a response holds, by its name without the package."""
    found: dict[str, Descriptor] = {}

    def visit(descriptor: Descriptor) -> None:
        name = descriptor.full_name.removeprefix(PREFIX)
        if name in found or not descriptor.full_name.startswith(PREFIX):
            return
        if not descriptor.GetOptions().map_entry:
            found[name] = descriptor
        for field in descriptor.fields:
            if field.message_type is not None:
                visit(field.message_type)

    visit(pb.Request.DESCRIPTOR)
    visit(pb.ResponseEvent.DESCRIPTOR)
    return found


def test_the_page_has_every_field_of_the_schema_once() -> None:
    stated = [(place, number) for place, number, _ in rows()]
    assert len(stated) == len(dict(stated))
    assert dict(stated) == {
        (name, field.name): field.number for name, message in messages().items() for field in message.fields
    }


def test_a_field_that_is_passed_over_has_a_reason() -> None:
    for line in re.findall(r"^\| `.+ \| passed over \|.*$", PAGE, re.M):
        assert re.search(r"\| passed over \| \S.* \|$", line), line


def filled(message: AnyMessage) -> Iterator[Place]:
    """Yields every field that is set in a message, also in those inside."""
    name = message.DESCRIPTOR.full_name.removeprefix(PREFIX)
    for field, value in message.ListFields():
        if message.DESCRIPTOR.full_name.startswith(PREFIX):
            yield name, field.name
        for inner in inside(field, value):
            yield from filled(inner)


def inside(field: Descriptor, value: Any) -> Iterable[AnyMessage]:
    if field.message_type is None or not field.message_type.full_name.startswith(PREFIX):
        return ()
    if field.message_type.GetOptions().map_entry:
        return value.values() if field.message_type.fields_by_name["value"].message_type else ()
    return value if field.is_repeated else (value,)


STATE: Final[JsonObject] = {
    "extra_content": {
        "warp": {
            "conversation_id": "c1",
            "task_id": "t1",
            "message_id": "m1",
            "request_id": "r1",
            "server_message_data": "x",
            "server_id": "s1",
        }
    }
}
SHELL: Final = ToolSpec("run_shell_command", "runs", {"type": "object", "properties": {"command": {}}})
PDF: Final = "data:application/pdf;base64,JVBERi0="
RESULT: Final = (
    Text("a"),
    Image(RED_DOT),
    File("file", {}, url="data:text/plain;base64,w7w=", name="a.txt"),
    File("file", {}, url=PDF),
)
CALLS: Final = (ToolCall("k1", "Execute", '{"n":1}', STATE), ToolCall("k2", "Execute", "{}"))
HISTORY: Final = (
    system("be brief"),
    user("q").changed(Text("q"), Image(RED_DOT)),
    Turn("assistant", (Reasoning("hm", extra=STATE), Text("said"), *CALLS), extra=STATE),
)
RESULTS: Final = (
    Turn("tool", (ToolResult("k1", RESULT),)),
    Turn("tool", (ToolResult("k2", (Text("no"),), is_error=True),)),
)
ASKED: Final = (
    (*HISTORY,),
    (*HISTORY, *RESULTS, user("more").changed(Text("more"), Image(RED_DOT))),
    (*HISTORY, *RESULTS, assistant("done"), user("more")),
    (user("q").changed(Text("q"), Image(RED_DOT)),),
)


@cache
def sent_fields() -> frozenset[Place]:
    """What the encoder writes of conversations that have everything that it can be given."""
    found: set[Place] = set()
    policy = Policy(images="placeholder")
    for encoding in ENCODINGS:
        for turns in ASKED:
            asked = Conversation(turns, (SHELL,), model="auto")
            found.update(filled(both(asked, policy, encoding=encoding, native_tools="expose")[0]))
    return frozenset(found)


def test_the_page_says_sent_of_what_the_encoder_writes() -> None:
    assert {place for place, _, fate in rows() if "sent" in fate} == sent_fields()


PROPERTIES: Final[dict[str, Json]] = {field.name: {} for field in pb.Message.ToolCall.RunShellCommand.DESCRIPTOR.fields}
LISTENER: Final = Conversation(
    (user("q"),), (SHELL, ToolSpec("run_shell_command", "", {"type": "object", "properties": PROPERTIES})), stream=True
)


def own(**fields: Any) -> pb.Message:
    return pb.Message(task_id="t1", **fields)


def replied() -> list[pb.ResponseEvent]:
    """A response with every kind of action, and with messages of which nothing is read."""
    cited = own(id="m2", agent_output={"text": "said"})
    cited.citations.add(document_id="d", document_type=pb.DOCUMENT_RULE)
    shell = own(id="m4", tool_call={"tool_call_id": "k4", "run_shell_command": {"command": "ls"}})
    shell.tool_call.run_shell_command.citations.add(document_id="e", document_type=pb.DOCUMENT_RULE)
    result = own(id="s3", tool_call_result={"tool_call_id": "k2", "server": {"serialized_result": "x"}})
    answered = own(id="s5", tool_call_result={"tool_call_id": "k1", "call_mcp_tool": {"error": {"message": "no"}}})
    succeeded = own(id="s6", tool_call_result={"tool_call_id": "k1"})
    parts = ({"text": {"text": "a"}}, {"image": {"mime_type": "b"}}, *({"resource": held} for held in _RESOURCES))
    results = [pb.CallMCPToolResult.Result(**part) for part in parts]
    succeeded.tool_call_result.call_mcp_tool.success.results.extend(results)
    echo = own(id="s4", user_query={"query": "q", "context": {"directory": {"pwd": "/"}, "shell": {"name": "sh"}}})
    echo.user_query.context.operating_system.platform = "Linux"
    echo.user_query.context.images.add(mime_type="image/png")
    echo.user_query.referenced_attachments["A"].plain_text = "a"
    echo.user_query.referenced_attachments["B"].SetInParent()
    echo.user_query.mode.SetInParent()
    moved = pb.ClientAction.MoveMessagesToNewTask(
        source_task_id="t1",
        new_task={"id": "t3"},
        first_message_id="m2",
        last_message_id="m2",
        expected_message_count=1,
        replacement_messages=[own(id="s7", agent_output={"text": "later"})],
    )
    return [
        pb.ResponseEvent(init={"conversation_id": "c1", "request_id": "r1", "run_id": "u1"}),
        _acts(script.task("t1", messages=[own(id="m0", agent_output={"text": "first"})])),
        _acts(
            pb.ClientAction(create_task={"task": {"id": "t2", "dependencies": {"parent_task_id": "t1"}}}),
            script.add(pb.Message(id="h1", agent_output={"text": "hidden"}), task_id="t2"),
            script.add(own(id="s1", server_event={"payload": "x"})),
            script.add(own(id="s2", tool_call={"tool_call_id": "k2", "server": {"payload": "x"}}), result, echo),
            script.add(answered, succeeded, own(id="s8", model_used={"model_id": "m", "is_fallback": True})),
            script.add(own(id="m1", agent_reasoning={"reasoning": "hm", "finished_duration": {"seconds": 1}})),
            script.BEGIN,
            script.add(cited),
            script.update(own(id="m2", agent_output={"text": "said more!"}), "agent_output.text"),
            script.append(own(id="m2", agent_output={"text": " more"}), "agent_output.text"),
            script.COMMIT,
            pb.ClientAction(move_messages_to_new_task=moved),
            script.append(own(id="s7", agent_output={"text": "x"}), "agent_output.text"),
            script.add(script.mcp_call("k3", args={"n": 1}, message_id="m3"), shell),
            pb.ClientAction(update_task_description={"task_id": "t1", "description": "d"}),
            pb.ClientAction(update_task_server_data={"task_id": "t1", "server_data": "d"}),
            pb.ClientAction(start_new_conversation={"start_from_message_id": "m9"}),
            pb.ClientAction(update_task_summary={"task_id": "t1", "summary": "s"}),
            script.BEGIN,
            script.add(own(id="m8", agent_output={"text": "gone"})),
            script.ROLLBACK,
        ),
        *(pb.ResponseEvent(finished=finished) for finished in _FINISHES),
    ]


_RESOURCES: Final[tuple[Any, ...]] = ({"text": {"content": "a"}}, {"binary": {"mime_type": "b"}})
_COUNTED: Final[Any] = {"auto": {"total_tokens": 5, "token_usage_by_category": {"primary": 5}, "model_id": "auto"}}
_INFERENCE: Final[Any] = {"auto": {"token_count": {"input": 1, "output": 2}, "web_search_count": 1}}
_FINISHES: Final[tuple[Any, ...]] = (
    {
        "done": {},
        "conversation_usage_metadata": {
            "warp_token_usage": _COUNTED,
            "byok_token_usage": _COUNTED,
            "custom_endpoint_token_usage": _COUNTED,
            "token_usage": [{"model_id": "auto"}],
            "context_window_segments": [{"segment_type": 1, "token_count": 2}],
        },
    },
    {
        "request_charges": {
            "usage_by_category": {
                "primary": {
                    "direct_api_inference_usage": _INFERENCE,
                    "byok_inference_usage": _INFERENCE,
                    "custom_endpoint_inference_usage": _INFERENCE,
                }
            }
        },
    },
    {"token_usage": [{"model_id": "auto", "total_input": 1}], "request_cost": {"exact": 1.0}},
    {"internal_error": {"message": "m"}},
    {"invalid_api_key": {"provider": 1, "model_name": "m"}},
)


def _acts(*actions: pb.ClientAction) -> pb.ResponseEvent:
    event = pb.ResponseEvent()
    event.client_actions.actions.extend(actions)
    return event


def told(events: Iterable[pb.ResponseEvent], encoding: Encoding) -> list[object]:
    """What the client and the operator learn of a response, without what is said of content that was passed over."""
    try:
        wire = b"".join(map(script.frame, events))
        heard = script.decode(wire, LISTENER, encoding=encoding, native_tools="expose")
    except BackendError as error:
        return [error.code, error.status, error.message, error.words]
    return [event for event in heard if not (isinstance(event, Notice) and event.rule in PASSED_OVER)]


def instances(events: Iterable[AnyMessage]) -> Iterator[AnyMessage]:
    """Yields every message of a response, also those inside."""
    for event in events:
        yield event
        for field, value in event.ListFields():
            yield from instances(inside(field, value))


def changes(message: AnyMessage, field: Descriptor) -> Iterator[Callable[[Any], None]]:
    """Yields the ways to change one field of a message: another value, and none."""
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        yield lambda target: _put(getattr(target, name), value)
    elif field.is_repeated and field.message_type is not None:
        yield lambda target: getattr(target, name).add()
    elif field.is_repeated:
        yield lambda target: getattr(target, name).append(_sample(field, None))
    elif field.message_type is not None:
        yield lambda target: getattr(target, name).SetInParent()
    else:
        yield lambda target: setattr(target, name, _sample(field, getattr(target, name)))
    is_set = bool(getattr(message, name)) if field.is_repeated else message.HasField(name)
    if is_set and name not in _SPARE:
        yield lambda target: target.ClearField(name)


def _put(container: Any, value: Descriptor) -> None:
    if value.message_type is not None:
        container["zz"].SetInParent()
    else:
        container["zz"] = _sample(value, None)


def _sample(field: Descriptor, value: Any) -> Any:
    if field.enum_type is not None:
        return next(known.number for known in reversed(field.enum_type.values) if known.number != value)
    match field.cpp_type:
        case field.CPPTYPE_STRING:
            return f"{value or ''}z" if field.type == field.TYPE_STRING else b"z"
        case field.CPPTYPE_BOOL:
            return not value
        case field.CPPTYPE_FLOAT | field.CPPTYPE_DOUBLE:
            return (value or 0.0) + 0.5
        case _:
            return (value or 0) + 1


@cache
def effects() -> dict[Place, bool]:
    """Every field of a response, and whether a change of it changes what is told of the response. A choice is only made
    anew where the present one is passed over."""
    found: dict[Place, bool] = {}
    head = replied()
    count = len(_FINISHES)
    for (number, finish), encoding in itertools.product(enumerate(head[-count:]), ENCODINGS):
        events = [*head[:-count], finish]
        plain = told(events, encoding)
        # The head is the same with every finish.
        first = len(list(instances(events[:-1]))) if number else 0
        for at, message in enumerate(list(instances(events))[first:], first):
            for field in message.DESCRIPTOR.fields:
                place = (message.DESCRIPTOR.full_name.removeprefix(PREFIX), field.name)
                if _is_free(message, field) and not found.get(place):
                    found[place] = any(told(changed, encoding) != plain for changed in _changed(events, at, field))
    return found


def _is_free(message: AnyMessage, field: Descriptor) -> bool:
    choice = field.containing_oneof
    chosen = None if choice is None else message.WhichOneof(choice.name)
    return chosen in (None, field.name, *_SPARE)


_SPARE: Final = ("server_event", "server", "update_task_summary", "done")


def _changed(events: list[pb.ResponseEvent], at: int, field: Descriptor) -> Iterator[list[pb.ResponseEvent]]:
    """Yields copies of a response in which one field of the message at this position is another."""
    for change in changes(next(itertools.islice(instances(events), at, None)), field):
        copies = [pb.ResponseEvent.FromString(event.SerializeToString()) for event in events]
        change(next(itertools.islice(instances(copies), at, None)))
        yield copies


def test_the_page_says_read_of_what_changes_a_response() -> None:
    assert {place for place, _, fate in rows() if "read" in fate} == {
        place for place, differs in effects().items() if differs
    }
    assert _reachable() <= effects().keys()


def _reachable() -> set[Place]:
    """The fields that a response can hold."""
    names = {"Request", "TaskContext", "Metadata", "Settings", "MCPContext", "MCPServer", "MCPTool", "Input"}
    return {place for place, _, _ in rows() if place[0].partition(".")[0] not in names}
