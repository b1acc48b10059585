"""Collects the events and notices of all parts of the decoder in the order in which the client receives them."""

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.core.events import Event
from gateway.core.notices import Action, Level, Notice, NoticeRule, Reported


class Output:
    """Collects the events of one `feed`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._reported = Reported()

    def drain(self) -> list[Event]:
        """Returns and clears the collected events."""
        events, self.events = self.events, []
        return events

    def note(
        self,
        action: Action,
        rule: NoticeRule,
        detail: str,
        *,
        level: Level = "warning",
        tool_call_id: str | None = None,
    ) -> None:
        """Adds a notice."""
        self.events.append(Notice("backend", action, rule, detail, tool_call_id=tool_call_id, level=level))

    def note_once(self, action: Action, rule: NoticeRule, detail: str, *, level: Level = "warning") -> None:
        """Adds a notice, unless the same sentence was already reported in this response."""
        if self._reported.is_new((rule, detail)):
            self.note(action, rule, detail, level=level)

    def note_unknown(self, message: Message) -> None:
        """Reports, once per kind, a message with a variant that the schema does not define."""
        detail = f"unknown variant of {message.DESCRIPTOR.name} (fields: {unknown_numbers(message) or 'none'})"
        self.note_once("ignored", "UNKNOWN_VARIANT", detail, level="debug")


def unknown_numbers(message: Message) -> str:
    """Returns the numbers of the first fields that the schema does not define, or an empty string when it defines
    all."""
    unknown = UnknownFieldSet(message)
    numbers = sorted({unknown[n].field_number for n in range(len(unknown))})
    return ", ".join(map(str, numbers[:8]))
