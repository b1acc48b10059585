"""Shows the requests of a recording as the latest ones of a gateway."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from gateway.core.conversation import Turn
from gateway.core.notices import NO_CHANGE
from gateway.core.session import Session
from gateway.inspector.asked import asked_of, client_turns
from gateway.inspector.clients import client_name
from gateway.inspector.filter import Filter, holds, read_filter
from gateway.inspector.outcomes import outcome_of
from gateway.inspector.requests import Listed, RequestContents
from gateway.inspector.summary import Summary, conversation_name, conversation_session, first_user_turn
from gateway.inspector.totals import Totals, totals_of
from gateway.recording.recording import Interaction, Recording
from gateway.recording.route import request_head


class RecordedRequests:
    """The requests of a recording. It answers as a `RequestSource` does, but nothing changes in it, so that nobody
    watches it, and nothing is forgotten. `redacted`: its words were replaced when it was made."""

    def __init__(self, recording: Recording) -> None:
        interactions = {one.request.id: one for one in recording.interactions()}
        self.redacted = recording.header.redaction.level != "none"
        began = _time(recording.header.made)
        self._interactions = interactions
        self._summaries = {request_id: _summary(one, began) for request_id, one in interactions.items()}

    async def listed(self, filter: str, before: int | None, limit: int) -> Listed:
        wanted = read_filter(filter)
        found = self._found(wanted)
        page = [summary for summary in found if before is None or summary.seq < before]
        return Listed(page[:limit], len(found), len(self._summaries), wanted.found)

    def _found(self, wanted: Filter) -> list[Summary]:
        return [
            summary
            for request_id, summary in reversed(self._summaries.items())
            if wanted.matches(summary) and holds(_texts(self._interactions[request_id]), wanted.words, ())
        ]

    async def totals(self, filter: str) -> Totals:
        return totals_of(self._found(read_filter(filter)))

    async def summary(self, request_id: str) -> Summary | None:
        return self._summaries.get(request_id)

    async def contents(self, request_id: str) -> RequestContents | None:
        found = self._interactions.get(request_id)
        return None if found is None else RequestContents(found)

    async def previous(self, conversation: str, before: int) -> Summary | None:
        earlier = (one for one in reversed(self._summaries.values()) if one.seq < before)
        return next((one for one in earlier if one.conversation == conversation), None)

    async def clear(self) -> None:
        return None

    async def seen(self) -> int:
        """Returns the number of workers."""
        return 1


def session_of(interaction: Interaction) -> Session | None:
    """Returns the session of a recorded request: as its client named it, or by the beginning of its conversation."""
    return interaction.request.session or conversation_session(_turns(interaction))


def _time(made: str) -> float:
    try:
        return datetime.fromisoformat(made).timestamp()
    except ValueError:
        return 0


def _texts(interaction: Interaction) -> list[bytes]:
    sent = interaction.sent
    sides = (interaction.reads, interaction.writes)
    joined = [b"".join(step.data.content for step in steps) for steps in sides]
    return [interaction.body or b"", sent.body.content if sent is not None and sent.body is not None else b"", *joined]


def _summary(interaction: Interaction, began: float) -> Summary:
    request, route, end = interaction.request, interaction.route, interaction.end
    head, usage = interaction.client_head, None if end is None else end.usage
    turns = _turns(interaction)
    changes = Counter(notice.stage for notice in interaction.notices if notice.action not in NO_CHANGE)
    return Summary(
        seq=interaction.x,
        id=request.id,
        began=began,
        method=request.method,
        path=request.path,
        dialect=request.dialect,
        key="-",
        model="-" if route is None else route.model,
        backend="-" if route is None else route.backend,
        live=False,
        ms=0 if end is None else end.marks.end or 0,
        status=0 if end is None else end.status,
        code="" if end is None else end.code,
        stream=head is not None and head.headers.get("content-type", "").startswith("text/event-stream"),
        changes="; ".join(f"{stage}={count}" for stage, count in changes.items()),
        rules=tuple(dict.fromkeys(notice.rule for notice in interaction.notices)),
        prompt_tokens=None if usage is None else usage.prompt,
        completion_tokens=None if usage is None else usage.completion,
        contents="kept",
        bytes=sum(map(len, _texts(interaction))),
        conversation=conversation_name(first_user_turn(turns)),
        session=request.session or conversation_session(turns),
        client=client_name(request.headers.get("user-agent", "").encode("latin-1", "replace")),
        first_ms=None if end is None else end.marks.first,
        outcome="not recorded" if end is None else outcome_of(end.status, end.code),
        asked=asked_of(turns, ()),
    )


def _turns(interaction: Interaction) -> Sequence[Turn]:
    return client_turns(interaction.request.dialect, request_head(interaction), interaction.body or b"")
