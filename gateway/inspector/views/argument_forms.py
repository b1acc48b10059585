"""Says where the arguments of calls stand as an object and where as text: as JSON both look alike.

A chat client may send an object where its API has text, and a provider may take only objects; the conversation holds
text in either case (`gateway.core.conversation.ToolCall`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.core.conversation import Turn
from gateway.core.notices import Notice
from gateway.inspector.views.cells import Column, Form
from gateway.recording.recording import Interaction


class Forms(msgspec.Struct, frozen=True):
    """The forms of the client's arguments, by the index of the message, where one of them is an object; and the indexes
    of messages whose arguments are sent as objects."""

    client: Mapping[int, Sequence[Form]]
    objects_sent: frozenset[int]

    def of(self, turn: Turn, column: Column) -> Sequence[Form | None]:
        """Returns the forms of the arguments of a message at a stage; of a message that has one form at every stage,
        none."""
        index = turn.index
        if index is None or not (index in self.client or index in self.objects_sent):
            return ()
        if column == "client" and index in self.client:
            return self.client[index]
        return ["object" if column == "sent" and index in self.objects_sent else "text"] * len(turn.calls)


def argument_forms(interaction: Interaction, notices: Sequence[Notice]) -> Forms:
    """Returns the forms of one request with these notices."""
    return Forms(
        dict(_client_forms(interaction, _indexes(notices, "CALL_ARGS_TYPE"))), _indexes(notices, "ARGUMENTS_AS_OBJECT")
    )


def _indexes(notices: Sequence[Notice], rule: str) -> frozenset[int]:
    return frozenset(notice.index for notice in notices if notice.rule == rule and notice.index is not None)


def _client_forms(interaction: Interaction, reported: frozenset[int]) -> Iterator[tuple[int, Sequence[Form]]]:
    """Yields the messages, of those with this fault, that have an object. The body may have any shape."""
    if not reported:
        return
    try:
        document = msgspec.json.decode(interaction.body or b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    messages = _list(_member(document, "messages"))
    for index in sorted(reported & set(range(len(messages)))):
        message = messages[index]
        calls = [_member(call, "function") for call in _list(_member(message, "tool_calls"))]
        forms: list[Form] = ["object" if isinstance(_member(call, "arguments"), dict) else "text" for call in calls]
        if "object" in forms:
            yield index, forms


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
