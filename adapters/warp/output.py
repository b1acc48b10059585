"""Where the parts of the decoder put their events and notices, in the one order in which the client shall see them."""

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.events import Event
from gateway.notices import Action, Level, Notice


class Output:
    """Collects what one `feed` emits."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._noted: set[tuple[str, str]] = set()

    def take(self) -> list[Event]:
        """Everything since the last take."""
        events, self.events = self.events, []
        return events

    def note(
        self,
        action: Action,
        rule: str,
        detail: str,
        *,
        level: Level = "warning",
        tool_call_id: str | None = None,
    ) -> None:
        """Say what happened."""
        self.events.append(Notice("backend", action, rule, detail, tool_call_id=tool_call_id, level=level))

    def note_once(self, action: Action, rule: str, detail: str, *, level: Level = "warning") -> None:
        """Say what happened, unless this very sentence was said before in this answer."""
        if (rule, detail) not in self._noted:
            self._noted.add((rule, detail))
            self.note(action, rule, detail, level=level)

    def note_unknown(self, message: Message) -> None:
        """Say, once per kind, that a message has a variant which the schema does not name."""
        detail = f"unknown variant of {message.DESCRIPTOR.name} (fields: {unknown_numbers(message) or 'none'})"
        self.note_once("ignored", "UNKNOWN_VARIANT", detail, level="debug")


def unknown_numbers(message: Message) -> str:
    """The numbers of the first fields that the schema does not name; empty when it names all."""
    unknown = UnknownFieldSet(message)
    numbers = sorted({unknown[n].field_number for n in range(len(unknown))})
    return ", ".join(map(str, numbers[:8]))
