"""Writes a recording as HAR 1.2, for tools that read that: the client's side, with what the backend's side took."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.recording.lines import Marks
from gateway.recording.recording import Interaction, Recording

_EPOCH: Final = "1970-01-01T00:00:00+00:00"


def har(recording: Recording) -> str:
    """Returns the recording as HAR. Streams are one text there; the times of their pieces are lost."""
    made = recording.header.made or _EPOCH
    entries: list[Json] = [_entry(one, made) for one in recording.interactions()]
    log: Json = {
        "version": "1.2",
        "creator": {"name": "dragoman", "version": recording.header.gateway},
        "entries": entries,
    }
    return msgspec.json.encode({"log": log}).decode()


def _entry(interaction: Interaction, made: str) -> Json:
    request, end = interaction.request, interaction.end
    marks = Marks() if end is None else end.marks
    total = marks.end or 0
    return {
        "startedDateTime": made,
        "time": total,
        "request": {
            "method": request.method,
            "url": f"http://localhost{request.path}",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _headers(request.headers),
            "queryString": [],
            "postData": {"mimeType": "application/json", **_content(interaction.body or b"")},
            "headersSize": -1,
            "bodySize": len(interaction.body or b""),
        },
        "response": _response(interaction),
        "cache": {},
        "timings": {
            "send": marks.read or 0,
            "wait": max((marks.first or total) - (marks.read or 0), 0),
            "receive": max(total - (marks.first or total), 0),
        },
        "_dragoman": {"id": request.id, "code": "" if end is None else end.code},
    }


def _response(interaction: Interaction) -> Json:
    head, end = interaction.client_head, interaction.end
    body = b"".join(write.data.content for write in interaction.writes)
    headers = {} if head is None else head.headers
    status = (0 if end is None else end.status) if head is None else head.status
    media = next((value for name, value in headers.items() if name == "content-type"), "")
    return {
        "status": status,
        "statusText": "",
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _headers(headers),
        "content": {"size": len(body), "mimeType": media, **_content(body)},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": len(body),
    }


def _content(body: bytes) -> dict[str, Json]:
    return {"text": body.decode("utf-8", "replace")}


def _headers(headers: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in headers.items()]
