"""A message that differs from an earlier one in nothing but the text it appends in, that text out, without parsing.

Protobuf writes the length of everything before it. So two messages of one length that have the same bytes around one
text are the same message with two texts; and a backend that tells an answer in small pieces soon has sent one of
every length. What is learned is checked by parsing the message once more with another text in the place of its own.
"""

from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from adapters.warp.entry import OUTPUT, TEXT_PATHS, text_of
from adapters.warp.multi_agent_pb2 import ResponseEvent

# A backend that changes more than the text in every message is never learned; to try each time would double the work.
_TRIES: Final = 64
# Longer messages are none that come again and again.
_LONGEST: Final = 1024
# The length of a shorter text is one byte.
_LONG_TEXT: Final = 128


class Growth(msgspec.Struct, frozen=True, gc=False):
    """What an action says that appends to one text: the id of the message, its kind and the text."""

    key: str
    kind: str
    text: str


class _Known(msgspec.Struct, frozen=True):
    before: bytes
    text: slice
    after: bytes
    key: str
    kind: str


class Template:
    """The bytes around the text of the messages that were read in full, by the length of the message."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._tries = _TRIES

    def read(self, payload: bytes) -> Growth | None:
        """The growth that a message stands for when it fits; None for one that must be read in full."""
        known = self._known.get(len(payload))
        if known is None or not (payload.startswith(known.before) and payload.endswith(known.after)):
            return None
        try:
            text = payload[known.text].decode()
        except UnicodeDecodeError:
            return None
        self._tries = _TRIES
        return Growth(known.key, known.kind, text)

    def learn(self, payload: bytes, event: ResponseEvent) -> None:
        """Keep a message that does nothing but append to one text."""
        if not self._tries or len(payload) > _LONGEST:
            return
        growth = _growth(event)
        text = b"" if growth is None else growth.text.encode()
        if growth is None or len(text) >= _LONG_TEXT:
            return
        self._tries -= 1
        # With its length, because a short text may also be a part of something else.
        begin = payload.find(b"%c%b" % (len(text), text)) + 1
        end = begin + len(text)
        before, after = payload[:begin], payload[end:]
        if _changes_only_the_text(before, after, growth, event):
            self._known[len(payload)] = _Known(before, slice(begin, end), after, growth.key, growth.kind)


def _growth(event: ResponseEvent) -> Growth | None:
    actions = event.client_actions.actions
    appended = actions[0].append_to_message_content if len(actions) == 1 else None
    if appended is None or len(appended.mask.paths) != 1:
        return None
    kind, message = TEXT_PATHS.get(appended.mask.paths[0]), appended.message
    text = text_of(message)
    return Growth(message.id, kind, text) if kind and text and message.WhichOneof("message") == kind else None


def _changes_only_the_text(before: bytes, after: bytes, growth: Growth, event: ResponseEvent) -> bool:
    """Whether another text between these bytes is read as another text in the same place, and as nothing else."""
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
