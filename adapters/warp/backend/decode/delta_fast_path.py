# fast path: "CPU/chunk, us", decodes the text of a message alone
# budget: "protobuf chunk"
# law: tests/adapters/warp/backend/decode/test_delta_fast_path.py
#      test_an_answer_is_the_same_when_every_message_is_read_in_full
"""Extracts the appended text from a message that differs from an earlier one only in this text, without parsing it."""

from typing import Final, TypeAlias

import msgspec
from google.protobuf.message import DecodeError

from adapters.warp.backend.decode.entry import OUTPUT, TEXT_PATHS, text_of
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.protobuf.text_templates import Reading, TextTemplates, find_template

# A response has few kinds of messages, and one of them is appended to for most of the time.
_WAIT: Final = 1


class Target(msgspec.Struct, frozen=True):
    """What an action appends a text to: the message's id and kind, and its task."""

    key: str
    kind: str
    task_id: str


# A target and the text for it.
Growth: TypeAlias = Reading[Target]


class DeltaFastPath(TextTemplates[Target]):
    """The templates of the messages that were read in full."""

    def __init__(self) -> None:
        super().__init__(_WAIT)

    def learn(self, payload: bytes, event: ResponseEvent) -> None:
        """Keeps a message whose only effect is to append to one text."""
        found = _growth(event)
        if found is None or not self.is_due():
            return
        target, text = found
        template = find_template(payload, text.encode())
        if template is not None:
            other, other_text = template.with_other_text(payload, text.encode())
            if _changes_only_the_text(other, other_text, target, event):
                self.add(template, target)


def _growth(event: ResponseEvent) -> tuple[Target, str] | None:
    actions = event.client_actions.actions
    appended = actions[0].append_to_message_content if len(actions) == 1 else None
    if appended is None or len(appended.mask.paths) != 1:
        return None
    kind, message = TEXT_PATHS.get(appended.mask.paths[0]), appended.message
    text = text_of(message)
    if not (kind and text and message.WhichOneof("message") == kind):
        return None
    return Target(message.id, kind, appended.task_id or message.task_id), text


def _changes_only_the_text(payload: bytes, text: str, target: Target, event: ResponseEvent) -> bool:
    """Returns whether a message is this event with another text in the same field."""
    expected = ResponseEvent()
    expected.CopyFrom(event)
    message = expected.client_actions.actions[0].append_to_message_content.message
    if target.kind == OUTPUT:
        message.agent_output.text = text
    else:
        message.agent_reasoning.reasoning = text
    try:
        return ResponseEvent.FromString(payload) == expected
    except (DecodeError, ValueError):
        return False
