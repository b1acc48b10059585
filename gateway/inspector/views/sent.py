"""Shows the client's request and the one to the backend in every form that a person can read."""

import json
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.inspector.views.remade import Remade
from gateway.recording.beginning import closed_json

MOST_SHOWN: Final = 2**20
_LINE: Final = 16
# Letters that JSON text writes as escapes, as clients in Python do; an escaped backslash begins none.
_UNICODE: Final = re.compile(r"\\\\|(?:\\u[0-9A-Fa-f]{4})+")


class BodyView(msgspec.Struct, frozen=True):
    """A request by its bytes. `views`: `json` of a body in JSON, `fields` of another one, the `text` in it, `hex`.
    `round N` is what was sent in a further round, which a search for tools has made. `cut`: one of them is not whole.
    `bytes` is the size of the body."""

    method: str
    path: str
    bytes: int
    views: Mapping[str, str]
    cut: bool = False


def received_view(remade: Remade) -> BodyView:
    """Returns the client's request as it came. Raises InvalidRequest where it is not here."""
    request, body = remade.interaction.request, remade.interaction.body
    if body is None and request.beginning is not None:
        kept = request.beginning.data.content
        views = _views(closed_json(kept) or kept)
        return BodyView(request.method, request.path, request.beginning.bytes, views, cut=True)
    if body is None:
        raise InvalidRequest(remade.absent, status=404, code="unknown_request")
    views = _views(body)
    if "hex" in views and (text := _text(body)):
        # What a client meant as JSON is read by people, and mended by them.
        views = {"text": text, **views}
    return _body_view(request.method, request.path, body, views)


def sent_view(remade: Remade) -> BodyView:
    """Returns the request to the backend. Raises InvalidRequest where nothing was."""
    sent = remade.interaction.sent
    if sent is None or sent.body is None:
        reason = "the request did not come so far"
        if sent is not None:
            unwatched = remade.interaction.request.beginning is not None
            reason = "nobody watched, and it is large" if unwatched else "its body is larger than inspector.request_mb"
        raise InvalidRequest(f"What was sent to the backend is not here: {reason}.", status=404, code="unknown_request")
    body = sent.body.content
    views = _views(body)
    if "hex" in views:
        views = {**_fields(remade, body), **views}
    views |= _further(remade)
    exchange = None if remade.run is None else remade.run.exchange
    if exchange is not None and exchange.request.sent_text is not None:
        text = exchange.request.sent_text
        views["text"] = f"{text.system}\n\n{text.text}" if text.apart and text.system else text.text
    return _body_view(sent.method, sent.path, body, views)


def _views(body: bytes) -> dict[str, str]:
    """Returns a body as JSON, its values as they are written, or as hex where it is none."""
    try:
        return {"json": _UNICODE.sub(_unescaped, msgspec.json.format(body, indent=2).decode())}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {"hex": hex_lines(body[: MOST_SHOWN // 8])} if body else {}


def _unescaped(escapes: re.Match[str]) -> str:
    """Returns letters in place of their escapes, where they mean the same without."""
    meant: str = json.loads(f'"{escapes[0]}"')
    return meant if meant.isprintable() and not {'"', "\\"} & {*meant} else escapes[0]


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return ""


def _body_view(method: str, path: str, body: bytes, views: Mapping[str, str]) -> BodyView:
    cut = len(body) > MOST_SHOWN // 8 if "hex" in views else False
    whole = {name: view[:MOST_SHOWN] for name, view in views.items()}
    return BodyView(method, path, len(body), whole, cut or whole != views)


def _further(remade: Remade) -> dict[str, str]:
    """Returns the requests of further rounds, by their numbers."""
    if remade.adapter is None or remade.run is None:
        return {}
    bodies = [remade.adapter.describe(request.body) for request in remade.run.hidden]
    return {f"round {number}": _readable(body) for number, body in enumerate(bodies, 2)}


def _fields(remade: Remade, body: bytes) -> dict[str, str]:
    if remade.adapter is None or remade.run is None or remade.run.exchange is None:
        return {}
    return {"fields": _readable(remade.adapter.describe(body))}


def _readable(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def hex_lines(data: bytes) -> str:
    """Returns bytes as lines of their position, sixteen of them, and their characters."""
    return "\n".join(_hex_line(at, data[at : at + _LINE]) for at in range(0, len(data), _LINE))


def _hex_line(at: int, data: bytes) -> str:
    shown = "".join(chr(one) if 32 <= one < 127 else "." for one in data)
    return f"{at:08x}  {data.hex(' '):<47}  {shown}"
