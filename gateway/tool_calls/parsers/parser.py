"""Separates a model's text, which arrives in pieces, into plain text and tool calls.

    TEXT --mark--> CALL --its end--> CLOSING --closing mark, or anything else--> TEXT
                   CALL --it is none--> TEXT, and what was read is text
                   CALL --its end, in a list--> LISTED --comma--> CALL
                                                LISTED --anything else--> CLOSING, or TEXT behind what is no call

A mark counts at the beginning of the text, after a call, and where its anchor says. Blanks that stand alone before a
call or around its marks belong to the marks. Where a line behind a call begins with the mark of a result, the model
invents the tool's result, and the text ends.
"""

import re
from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import ToolSpec
from gateway.core.errors import BackendTruncated, InvalidToolCall
from gateway.core.events import Event, Reason, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.json_scan import skip
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.reader import CallReader

_BRACE: Final = "}"
_BEFORE_CLOSER: Final = re.compile(r"[ \t\n\r}]*+")


class ToolCallParser:
    """Parses one response. With empty `marks` or `tools`, every text passes at once.

    `ends` are the marks of results. `ended` turns true at the first of them, and the rest is dropped. In text only the
    beginning of a mark is held back. Arguments pass as they were written, in the pieces in which they arrive; no event
    is ever revoked. The cost is linear in the text, however finely it is cut.
    """

    def __init__(
        self, marks: Sequence[Mark], tools: Sequence[ToolSpec] | Declared, id_prefix: str, ends: Sequence[str] = ()
    ) -> None:
        self.ended = False
        self._declared = tools if isinstance(tools, Declared) else Declared(tools)
        own = {mark.text: mark for mark in marks}
        self._marks: dict[str, Mark | None] = {**dict.fromkeys(ends), **own} if tools else {}
        self._search = re.compile("|".join(map(re.escape, self._marks)))
        self._first = re.compile("|".join(re.escape(text[0]) for text in self._marks))
        self._longest = max(map(len, self._marks), default=0)
        self._id_prefix = id_prefix
        self._index = 0
        self._step = self._text
        self._held = ""
        self._before = "\n"
        self._alone = bool(self._marks)
        self._blanks: list[str] = []
        self._mark: Mark | None = None
        self._reader: CallReader  # Set where a mark opens a call, and read from there on.
        self._raw: list[str] = []
        self._started = False
        self._closed = False
        self._error: InvalidToolCall | None = None

    def feed(self, text: str) -> list[Event]:
        """Parses the next piece of the model's text. Raises ValueError after `close`.

        Raises InvalidToolCall when an earlier piece showed that a call that had begun is none (one piece later, so that
        the events before it are emitted).
        """
        if self._closed:
            raise ValueError("the text has ended already")
        if self._error is not None:
            raise self._error
        if not text or self.ended:
            return []
        if (passed := self.pass_on((text,))) is not None:
            return passed
        events: list[Event] = []
        text, self._held, at = self._held + text, "", 0
        while at < len(text) and self._error is None:
            at = self._step(text, at, events)
        return events

    def close(self, reason: Reason = "stop") -> list[Event]:
        """Ends the text. Raises InvalidToolCall.

        Raises BackendTruncated when a call is open, unless the model reached its length limit: then the call ends as it
        is, and the finish reason of length reports the cut to the client.
        """
        self._closed = True
        if self._error is not None:
            raise self._error
        events: list[Event] = []
        if self.ended:
            return events
        if self._step == self._text:
            if self._held or not self._index:
                self._show(self._held, events)
        elif self._step == self._call:
            self._close_call(reason, events)
        else:
            self._end_closing(events)
        return events

    def pass_on(self, texts: Sequence[str]) -> list[Event] | None:
        """Returns the events of pieces that came together, one for each, if no piece can begin or end a call.

        None when a piece may, or when the parser expects nothing more: then they must be fed.
        """
        if self._error is not None or self._closed or self.ended:
            return None
        if not self._marks:
            return list(map(TextDelta, texts))
        if self._step == self._text:
            together = "".join(texts)
            if self._held or self._alone or self._first.search(together):
                return None
            self._before = together[-1]
            return list(map(TextDelta, texts))
        written = self._reader.more(texts) if self._step == self._call else None
        return None if written is None else [ToolCallDelta(self._index, piece) for piece in written]

    def _text(self, text: str, at: int, events: list[Event]) -> int:
        if self._alone and (end := skip(text, at)) > at:
            self._blanks.append(text[at:end])
            return end
        begin, found = self._find(text, at)
        if begin > at:
            self._show(text[at:begin], events)
        if found is None:
            self._held = text[begin:]
            return len(text)
        mark = self._marks[found]
        if mark is None:
            self._blanks.clear()
            self.ended = True
            return len(text)
        self._mark = mark
        self._open(mark, "" if mark.is_read else mark.text)
        return begin if mark.is_read else begin + len(mark.text)

    def _open(self, mark: Mark, read: str) -> None:
        self._reader, self._started = mark.reader(self._declared), False
        self._raw = [*self._blanks, read]
        self._blanks.clear()
        self._step = self._call

    def _find(self, text: str, at: int) -> tuple[int, str | None]:
        """Returns where the next mark begins, and which; else None and where one may still begin, or the text's end."""
        for found in self._search.finditer(text, at):
            if self._counts(self._marks[found[0]], text, found.start(), at):
                return found.start(), found[0]
        for possible in self._first.finditer(text, max(at, len(text) - self._longest + 1)):
            begin = possible.start()
            for written, mark in self._marks.items():
                if written.startswith(text[begin:]) and self._counts(mark, text, begin, at):
                    return begin, None
        return len(text), None

    def _counts(self, mark: Mark | None, text: str, begin: int, at: int) -> bool:
        if mark is None and not self._index:
            return False
        if self._alone and begin == at:
            return True
        before = text[begin - 1] if begin > at else self._before
        if mark is None:
            return before == "\n"
        return (before == "\n" and mark.anchor != "first") or (before in " \t\r" and mark.anchor == "blank")

    def _show(self, text: str, events: list[Event]) -> None:
        text = "".join([*self._blanks, text])
        self._blanks.clear()
        if text:
            self._before, self._alone = text[-1], False
            events.append(TextDelta(text))

    def _call(self, text: str, at: int, events: list[Event]) -> int:
        reader = self._reader
        end = reader.read(text, at)
        if reader.name is not None:
            self._pass_call(reader, reader.name, events)
        elif reader.failure is not None:
            self._fail(reader.failure)
        else:
            self._raw.append(text[at:end])
            if reader.refusal is not None:
                self._refuse(reader, events)
        return end

    def _pass_call(self, reader: CallReader, name: str, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            events.append(ToolCallStart(self._index, self._id(self._index), name))
        if reader.arguments:
            events.append(ToolCallDelta(self._index, "".join(reader.arguments)))
            reader.arguments.clear()
        if reader.failure is not None:
            self._fail(reader.failure)
        elif reader.done:
            self._end_call(events)

    def _fail(self, reason: str) -> None:
        self._error = InvalidToolCall(f"The model wrote a tool call that cannot be read: {reason}.")

    def _end_call(self, events: list[Event]) -> None:
        for what, count in self._reader.repaired.items():
            events.append(
                self._notice("changed", "TEXT_CALL_MENDED", f"in a call: {what} ({count})", "info", self._index)
            )
        events.append(ToolCallEnd(self._index))
        self._index += 1
        self._alone = True
        self._step = self._listed if self._reader.in_list else self._closing

    def _listed(self, text: str, at: int, events: list[Event]) -> int:
        if (end := skip(text, at)) > at:
            if self._reader.refusal is None:
                self._blanks.append(text[at:end])
            else:
                self._show(text[at:end], events)
            return end
        if text[at] == "," and self._mark is not None:
            self._open(self._mark, ",")
            self._reader.in_list = True
            return at + 1
        if self._reader.refusal is not None:
            self._step = self._text
            return at
        self._step = self._closing
        return at + 1 if text[at] == "]" else at

    def _closing(self, text: str, at: int, events: list[Event]) -> int:
        """Blanks and surplus braces belong to the call when its closing mark follows them."""
        closer = self._mark.closer if self._mark else ""
        if (end := _before_closer(text, at) if closer else skip(text, at)) > at:
            self._blanks.append(text[at:end])
            return end
        piece = text[at : at + len(closer)]
        if piece != closer and closer.startswith(piece):
            self._held = piece
            return len(text)
        self._step = self._text
        if closer and piece == closer:
            self._end_closing(events)
            return at + len(closer)
        if _BRACE in (shown := "".join(self._blanks)):
            self._blanks.clear()
            events.append(TextDelta(shown))
        return at

    def _end_closing(self, events: list[Event]) -> None:
        braces = "".join(self._blanks).count(_BRACE)
        self._blanks.clear()
        if braces:
            detail = f"after a call: surplus braces were dropped ({braces})"
            events.append(self._notice("dropped", "TEXT_CALL_MENDED", detail, "info", self._index - 1))

    def _refuse(self, reader: CallReader, events: list[Event]) -> None:
        raw = "".join(self._raw)
        if raw:
            events.append(TextDelta(raw))
            self._before, self._alone = raw[-1], False
        self._raw = []
        if reader.refusal is not None and not self._started:
            self._started = True
            self._report_refusal(reader.refusal.rule, reader.refusal.reason, events)
        if reader.done:
            self._step = self._listed if reader.in_list else self._text

    def _report_refusal(self, rule: NoticeRule, reason: str, events: list[Event]) -> None:
        if self._mark is None or not self._mark.doubtful:
            events.append(
                Notice(
                    "backend", "seen", rule, f"text that looks like a call is kept as text: {reason}", level="warning"
                )
            )

    def _close_call(self, reason: Reason, events: list[Event]) -> None:
        if self._reader.refusal is not None:
            return
        if reason != "length" and (self._reader.name is not None or self._reader.certain):
            raise BackendTruncated("The model's response ended inside a tool call.")
        if self._reader.name is None:
            events.append(TextDelta("".join(self._raw)))
            self._report_refusal("TEXT_CALL_BROKEN", "the response ended inside it", events)
        else:
            detail = "the response reached its length limit inside a call, whose arguments are incomplete"
            events.append(self._notice("seen", "TEXT_CALL_CUT", detail, "warning", self._index))
            events.append(ToolCallEnd(self._index))

    def _id(self, index: int) -> str:
        return f"{self._id_prefix}{index}"

    def _notice(self, action: Action, rule: NoticeRule, detail: str, level: Level, index: int) -> Notice:
        return Notice("backend", action, rule, detail, tool_call_id=self._id(index), level=level)


def _before_closer(text: str, at: int) -> int:
    found = _BEFORE_CLOSER.match(text, at)
    return found.end() if found else at
