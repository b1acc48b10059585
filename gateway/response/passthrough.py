"""Passes on what the core has no event for, or reports it: only a client of the backend's dialect can read it."""

from typing import Final

from gateway.core.conversation import EMPTY, JsonObject
from gateway.core.events import Event, PassthroughFields, Scope
from gateway.core.notices import Level, Notice, NoticeRule, Reported
from gateway.core.state_rule import StateRule

_ONLY_TEXT: Final = {str}


class Passthrough:
    """What one response has beside the events of the core. `passes`: the client speaks the backend's dialect. `keeps`:
    the gateway itself keeps some of it, which is reported in any case."""

    def __init__(self, passes: bool, keeps: StateRule | None = None) -> None:
        self.passes = passes
        self._kept = () if keeps is None else keeps.fields
        self._reported = Reported()
        self._repeated = PassthroughFields("response", EMPTY)

    def fields(self, scope: Scope, fields: JsonObject) -> list[Event]:
        """Returns the event of fields in an object of this scope, or the notice that the client does not get them. Of
        the same texts in each object of a response it is the same event."""
        if self.passes and scope == "response":
            repeated = self._repeated
            # Backends repeat the same text in every chunk. Of other values 1, 1.0 and true are equal.
            if (
                fields != repeated.fields
                or [*fields] != [*repeated.fields]
                or {*map(type, fields.values())} != _ONLY_TEXT
            ):
                repeated = self._repeated = PassthroughFields(scope, fields)
            return [repeated]
        if self.passes:
            return [PassthroughFields(scope, fields)]
        if kept := self.kept(fields):
            rest = {name: value for name, value in fields.items() if name not in kept}
            return [PassthroughFields(scope, kept), *(self.fields(scope, rest) if rest else ())]
        names = ", ".join(sorted(name[:40] for name in fields))
        return self._notice("FIELD_NOT_SHOWN", f"the client's dialect has no field for {names}", "debug")

    def kept(self, fields: JsonObject) -> JsonObject:
        """Returns those of the fields that the gateway keeps."""
        return {name: fields[name] for name in self._kept if name in fields} if self._kept else EMPTY

    def extra(self, fields: JsonObject) -> tuple[JsonObject, list[Event]]:
        """Returns the unknown fields that the client gets, and the notice about those that it does not get."""
        if self.passes or not fields:
            return fields, []
        return EMPTY, self.fields("event", fields)

    def event(self, event: JsonObject, what: str) -> list[Event]:
        """Returns a whole event of the backend's stream, or the notice that the client does not get it."""
        if self.passes:
            return [PassthroughFields("event", event)]
        return self._notice("UNKNOWN_EVENT", f"{what} has no form in the client's dialect", "warning")

    def _notice(self, rule: NoticeRule, detail: str, level: Level) -> list[Event]:
        """Reports each fact once, because a backend repeats it in every event."""
        return [Notice("backend", "ignored", rule, detail, level=level)] if self._reported.is_new(detail) else []
