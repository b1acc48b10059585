# fast path: "CPU/chunk, us", decodes the text of a message alone
# budget: "protobuf chunk"
# law: tests/adapters/warp/backend/decode/test_delta_fast_path.py
#      test_an_answer_is_the_same_when_every_message_is_read_in_full
"""Extracts the appended text from a message that differs from an earlier one only in this text, without parsing it.

Protobuf writes a length before every field of bytes. Two messages of one length that have the same bytes around one
text are therefore the same message with two texts; a backend that sends a response in small pieces soon has sent one
message of every length. The kept bytes are verified by parsing the message once more with another text in its place.
"""

from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from adapters.warp.backend.decode.entry import OUTPUT, TEXT_PATHS, text_of
from adapters.warp.multi_agent_pb2 import ResponseEvent

# If a backend changes more than the text in every message, learning never succeeds; trying each time would double the
# work.
_TRIES: Final = 64
# Longer messages do not recur often enough to be learned.
_LONGEST: Final = 1024
# A text below this length has a length prefix of one byte.
_LONG_TEXT: Final = 128


class AppendedText(msgspec.Struct, frozen=True, gc=False):
    """The content of an action that appends to one text: the message's id and kind, its task, and the text."""

    key: str
    kind: str
    task_id: str
    text: str


class _Known(msgspec.Struct, frozen=True):
    before: bytes
    text: slice
    after: bytes
    key: str
    kind: str
    task_id: str


class DeltaFastPath:
    """Holds the bytes around the text of the messages that were read in full, by the length of the message."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._tries = _TRIES

    def read(self, payload: bytes) -> AppendedText | None:
        """Returns the appended text of a message that matches, or None for a message that must be read in full."""
        known = self._known.get(len(payload))
        if known is None or not (payload.startswith(known.before) and payload.endswith(known.after)):
            return None
        try:
            text = payload[known.text].decode()
        except UnicodeDecodeError:
            return None
        self._tries = _TRIES
        return AppendedText(known.key, known.kind, known.task_id, text)

    def learn(self, payload: bytes, event: ResponseEvent) -> None:
        """Keeps a message whose only effect is to append to one text."""
        if not self._tries or len(payload) > _LONGEST:
            return
        growth = _growth(event)
        text = b"" if growth is None else growth.text.encode()
        if growth is None or len(text) >= _LONG_TEXT:
            return
        self._tries -= 1
        # The length prefix is included, because a short text may also occur inside another field.
        begin = payload.find(b"%c%b" % (len(text), text)) + 1
        end = begin + len(text)
        before, after = payload[:begin], payload[end:]
        if _changes_only_the_text(before, after, growth, event):
            self._known[len(payload)] = _Known(
                before, slice(begin, end), after, growth.key, growth.kind, growth.task_id
            )


def _growth(event: ResponseEvent) -> AppendedText | None:
    actions = event.client_actions.actions
    appended = actions[0].append_to_message_content if len(actions) == 1 else None
    if appended is None or len(appended.mask.paths) != 1:
        return None
    kind, message = TEXT_PATHS.get(appended.mask.paths[0]), appended.message
    text = text_of(message)
    if not (kind and text and message.WhichOneof("message") == kind):
        return None
    return AppendedText(message.id, kind, appended.task_id or message.task_id, text)


def _changes_only_the_text(before: bytes, after: bytes, growth: AppendedText, event: ResponseEvent) -> bool:
    """Returns whether another text between these bytes parses as another text in the same field and changes nothing
    else."""
    other = ("?" if growth.text[0] == "!" else "!") * len(growth.text.encode())
    expected = ResponseEvent()
    expected.CopyFrom(event)
    message = expected.client_actions.actions[0].append_to_message_content.message
    if growth.kind == OUTPUT:
        message.agent_output.text = other
    else:
        message.agent_reasoning.reasoning = other
    try:
        return ResponseEvent.FromString(before + other.encode() + after) == expected
    except (DecodeError, ValueError):
        return False
