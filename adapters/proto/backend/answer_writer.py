"""Turns what the rules read from the messages of one response into events, in the order of the grammar."""

import base64
import codecs
from collections.abc import Sequence
from typing import Final

import msgspec

from adapters.proto.backend.json_places import DocumentReader
from adapters.proto.backend.openai_json import OpenAIChunks
from adapters.proto.backend.token_counts import NO_COUNTS, Counts, CountsMode
from adapters.text.backend.call_filter import CallFilter
from adapters.text.backend.frames import utf8
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendProtocolError
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    UsageReport,
)
from gateway.core.notices import Action, Level, Notice, NoticeRule, Reported
from gateway.core.provider_state import with_provider_state
from gateway.response.role_marker_filter import TURN_INVENTED
from gateway.wires.call_tracker import CallTracker

_REPLACED: Final = "\ufffd"


class AnswerFacts(msgspec.Struct, frozen=True):
    """What the events of a response depend on beside its bytes.

    `seed` makes derived ids differ from those of earlier responses, and `stops` are the client's stop sequences.
    `passes`: the client speaks OpenAI's chat completions. `reads_ids`: a rule reads the ids of calls. `provider` and
    `field` name opaque state in `extra_content`.
    """

    seed: int
    stops: tuple[str, ...]
    passes: bool
    reads_ids: bool
    provider: str
    field: str


class AnswerWriter:
    """Collects the events of one response in `events`.

    `call_filter` finds the calls and thoughts that the text may hold; None: the text is only text. `touched`: a rule
    has found something in the message that is being read. `empty`: no rule has found anything yet. `progress` counts
    what was found, and `pieces` the pieces of text and reasoning. `stopped`: the response ended on purpose before the
    backend's end. `over`: what later messages say is no part of the response.
    """

    def __init__(self, call_filter: CallFilter | None, facts: AnswerFacts) -> None:
        self.events: list[Event] = []
        self.touched = False
        self.empty = True
        self.progress = 0
        self.pieces = 0
        self.stopped = False
        self.finished = False
        self.over = False
        self.id: str | None = None
        self.model: str | None = None
        self._call_filter = call_filter
        self._facts = facts
        self._calls = CallTracker(facts.seed, optional_ids=not facts.reads_ids)
        self._chunks: OpenAIChunks | None = None
        self._called = 0
        self._started = False
        self._spoken = False
        self._totals: dict[object, str] = {}
        self._characters: dict[object, codecs.IncrementalDecoder] = {}
        self._documents: dict[object, DocumentReader] = {}
        self._reason: tuple[Reason, str] | None = None
        # State that is not sent yet, and whether the next one continues it.
        self._states: list[str | bytes] = []
        self._joins = False
        self._stopped_by = ""
        self._counts = NO_COUNTS
        self._reported: UsageReport | None = None
        self._reported_notices = Reported()

    @property
    def has_finish(self) -> bool:
        """Whether a finish rule has found the end of the response."""
        return self._reason is not None

    @property
    def filters(self) -> bool:
        """Whether a text may be more than text, such as a call, or end the response."""
        return self._call_filter is not None

    def take(self) -> list[Event]:
        """Returns the collected events and forgets them."""
        events, self.events = self.events, []
        return events

    def text(self, text: str) -> None:
        """Adds a piece of the text. Raises BackendError for an invalid call in it."""
        if text and not (self.over and self._late()):
            self.texts((text,))

    def texts(self, texts: Sequence[str]) -> None:
        """Adds pieces of the text that came together, none of them empty, before the end of the response. Raises
        BackendError."""
        if not texts:
            return
        self._touch()
        self.pieces += len(texts)
        if self._states:
            self._release()
        self._spoken = True
        if self._call_filter is None:
            self.events += map(TextDelta, texts)
            return
        self._call_filter.feed(texts, self.events)
        if self._call_filter.stopped is not None:
            self.stopped = True
            self._emit("tool_calls", self._call_filter.stopped)

    def reasoning(self, text: str) -> None:
        """Adds a piece of the reasoning."""
        if text and not self._late():
            if self._call_filter is not None:
                self._call_filter.thinks_apart()
            if not self._joins:
                self._release()
            self.pieces += 1
            self.events.append(ReasoningDelta(text))

    def new_part(self, key: object, total: str) -> str:
        """Returns the piece that a text so far adds to the one before it. Raises BackendProtocolError if it does not
        continue that one. `key` tells the texts of one response apart."""
        before = self._totals.get(key, "")
        if not total.startswith(before):
            raise BackendProtocolError("The backend sent a text so far that does not begin with the one before it.")
        self._totals[key] = total
        return total[len(before) :]

    def characters(self, key: object, data: bytes, whole: bool = False) -> str:
        """Returns the characters that these bytes complete; one may be split over two messages with the same key.
        `whole`: the bytes are all of the text so far. Bytes that are not UTF-8 become U+FFFD, with a notice."""
        decoder = utf8() if whole else self._characters.get(key) or utf8()
        self._characters[key] = decoder
        begun, text = decoder.getstate()[0], decoder.decode(data)
        if _REPLACED in text and _REPLACED.encode() not in begun + data:
            self.note_once("changed", "TEXT_MENDED", "bytes of a text that are not UTF-8 became U+FFFD")
        return text

    def document(self, key: object, value: str | bytes) -> Json:
        """Returns the JSON document in a field. A character may be split over two documents with the same key; half of
        one is mended, with a notice. Raises BackendProtocolError."""
        reader = self._documents.get(key) or self._documents.setdefault(key, DocumentReader())
        notices: list[Event] = []
        document = reader.read(value, notices)
        self._add_each(notices)
        return document

    def _add_each(self, notices: list[Event]) -> None:
        for notice in notices:
            if isinstance(notice, Notice):
                self.add_once(notice)

    def opaque(self, state: str | bytes, *, joins: bool = False) -> None:
        """Adds state that belongs to the reasoning so far; bytes are sent as base64. It is sent with the event that
        follows, so that it does not depend on how the bytes were cut. `joins`: this is a piece, to which later ones
        are joined until text or a call follows."""
        if state and not self._late():
            if not joins:
                self._release()
            self._states.append(state)
            self._joins = joins

    def _release(self) -> None:
        if self._states:
            self.events.append(ReasoningEnd(self._state(_joined(self._states))))
            self._states, self._joins = [], False

    def _state(self, state: str) -> JsonObject:
        return with_provider_state(self._facts.provider, {self._facts.field: state})

    def call(self, key: int | str | None, call_id: str, name: str, arguments: str, opaque: str = "") -> None:
        """Adds a piece of the call that `key` or the id names; an empty key is that of the call before it. None: this
        is a whole call. `opaque`: its state. Raises BackendError."""
        if self._late():
            return
        self._release()
        function: dict[str, Json] = {"name": name, "arguments": arguments}
        entry: dict[str, Json] = {"function": function, **(self._state(opaque) if opaque else EMPTY)}
        if key is None:
            entry["index"] = self._called
            self._called += 1
        elif key != "":
            entry["index"] = key
        if call_id:
            entry["id"] = call_id
        self.events += self._calls.feed([entry])

    def finish(self, reason: Reason, raw: str) -> None:
        """Records the end of the response, which the carrier may still have to confirm. The first one counts."""
        self._touch()
        if self.finished or (self.over and self._reason != (reason, raw)):
            self.note_once("ignored", "LATE_EVENT", "a second finish reason came after the end of the response")
        if self._reason is None:
            self._reason = (reason, raw)

    def other_choice(self) -> None:
        """Reports a choice beside the first one, which is no part of the response."""
        self.touched = True
        self.note_once("dropped", "OTHER_CHOICE", "a choice that was not requested")

    def stopped_at(self, stop: str) -> None:
        """Records the stop sequence that was met."""
        if stop:
            self._touch()
            self._stopped_by = stop

    def chunk(self, document: Json) -> None:
        """Adds a chunk of OpenAI's chat completions, or a whole response. Raises BackendError, after the events before
        the fault."""
        if self._chunks is None:
            self._chunks = OpenAIChunks(self._facts.seed, self._facts.stops, passes=self._facts.passes)
        for event in self._chunks.read(document):
            self._forward(event)

    def _forward(self, event: Event) -> None:
        """Adds an event of the chunk. The end and the counts wait for the carrier's own end."""
        match event:
            case ResponseStart():
                self.start(event.id or "", event.model or "")
            case Notice():
                self.events.append(event)
            case Finish():
                self.finish(event.reason, event.raw or "")
                self._stopped_by = event.stop_sequence or ""
            case UsageReport():
                self._touch()
                self._reported = event
                if self.finished:
                    self.events.append(event)
            case _:
                self._touch()
                self.events.append(event)

    def usage(self, counts: Counts, mode: CountsMode) -> None:
        """Combines token counts with those before them."""
        if counts == NO_COUNTS:
            return
        self._touch()
        self._counts = self._counts.combined(counts, mode)
        if self.finished and (usage := self._counts.report()) is not None:
            self.events.append(usage)

    def start(self, call_id: str, model: str) -> None:
        """Records the backend's id of the response and its name of the model."""
        if call_id or model:
            self.id, self.model = self.id or call_id or None, self.model or model or None
            self._touch()

    def complete(self) -> None:
        """Ends the response; without a finish of its own it is a stop. Raises BackendError for an invalid call."""
        if not self.finished:
            reason, raw = self._reason or ("stop", "")
            self._emit(reason, raw or None)

    def note_once(self, action: Action, rule: NoticeRule, detail: str, level: Level = "warning") -> None:
        """Adds a notice unless the response has the same one."""
        self.add_once(Notice("backend", action, rule, detail, level=level))

    def add_once(self, notice: Notice) -> None:
        """Adds this notice unless the response has it."""
        if self._reported_notices.is_new(notice):
            self.events.append(notice)

    def _emit(self, reason: Reason, raw: str | None) -> None:
        self._touch()
        self._release()
        if any(decoder.getstate()[0] for decoder in self._characters.values()):
            self.note_once("dropped", "TAIL_BROKEN", "the response ended in the middle of a character")
        for reader in self._documents.values():
            halves: list[Event] = []
            reader.end(halves)
            self._add_each(halves)
        if self._call_filter is None:
            self.events += self._calls.close(self._spoken)
        elif not self.stopped:
            self._call_filter.close(reason, self.events)
        if (usage := self._reported or self._counts.report()) is not None:
            self.events.append(usage)
        if self._call_filter is not None and self._stopped_by.startswith("\n") and not self._own_stop:
            self.events.append(TURN_INVENTED)
        self.events.append(Finish(reason, raw, self._own_stop))
        self.finished = self.over = True

    @property
    def _own_stop(self) -> str | None:
        return self._stopped_by if self._stopped_by in self._facts.stops else None

    def _touch(self) -> None:
        self.touched = True
        self.empty = False
        self.progress += 1
        if not self._started:
            self._started = True
            self.events.append(ResponseStart(self.id, self.model))

    def _late(self) -> bool:
        """Returns whether the response is over; whatever comes then is dropped with a notice."""
        if not self.over:
            self._touch()
            return False
        self.touched = True
        if not self.stopped:
            self.note_once("dropped", "LATE_CONTENT", "content came after the end of the response")
        return True


def _joined(pieces: Sequence[str | bytes]) -> str:
    """Returns a state as text."""
    data = b"".join([piece for piece in pieces if isinstance(piece, bytes)])
    return base64.b64encode(data).decode() if data else "".join([piece for piece in pieces if isinstance(piece, str)])
