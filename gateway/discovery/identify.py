"""Asks addresses what they are: every question at once, with a limit for time and size, and without a key."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import httpx
import msgspec

from gateway.discovery.server_kinds import SERVER_KINDS
from gateway.providers.provider import MODELS_PATH, ServerKind

# A port of this machine that nothing listens on refuses at once; only a busy machine needs so long.
CONNECT_S: Final = 1.0
ANSWER_S: Final = 1.0
# For a server on another machine, and for a gateway that has just started: its list of models is its first answer.
REMOTE_S: Final = 5.0
_LARGEST: Final = 1 << 20
_PATHS: Final = tuple(dict.fromkeys((*(kind.path for kind in SERVER_KINDS), MODELS_PATH)))
_REFUSED: Final = (401, 403)


class Reply(msgspec.Struct, frozen=True):
    """The answer to one path: the status, the headers by their lower-case names, and the JSON object, if it is one."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]  # JSON


class Server(msgspec.Struct, frozen=True):
    """The server at an address: its kind (None: it is not known), the models that it lists, and whether it wants a
    key before it lists them."""

    url: str
    kind: ServerKind | None
    models: tuple[str, ...] = ()
    locked: bool = False

    @property
    def title(self) -> str:
        """Returns the name that a person knows."""
        return self.kind.title if self.kind is not None else "an unknown server"


async def identify(url: str, connect_s: float = CONNECT_S, answer_s: float = ANSWER_S) -> Server | None:
    """Returns the server that listens at an address without a path; None where nothing does. Times are in seconds.
    Raises nothing: a server that is slow or answers garbage is not known."""
    limits = httpx.Timeout(answer_s, connect=connect_s)
    # Reading the certificates of all authorities takes longer than an answer of this machine.
    verify = url.startswith("https:")
    async with httpx.AsyncClient(base_url=url, timeout=limits, trust_env=False, verify=verify) as client:
        found = await asyncio.gather(*(_ask(client, path, connect_s + answer_s) for path in _PATHS))
    if not any(listens for listens, _ in found):
        return None
    replies = {path: reply for path, (_, reply) in zip(_PATHS, found, strict=True) if reply is not None}
    listed = replies.get(MODELS_PATH)
    kind = recognise(replies)
    if kind is None:
        return Server(url, None)
    return Server(url, kind, _models(listed), listed is not None and listed.status in _REFUSED)


async def identify_ports(ports: Iterable[int], answer_s: float = ANSWER_S) -> tuple[Server, ...]:
    """Returns the servers that listen on these ports of this machine."""
    asked = (identify(f"http://127.0.0.1:{port}", answer_s=answer_s) for port in ports)
    found = await asyncio.gather(*asked)
    return tuple(server for server in found if server is not None)


async def _ask(client: httpx.AsyncClient, path: str, limit_s: float) -> tuple[bool, Reply | None]:
    """Returns whether anything listens, and its reply."""
    try:
        async with asyncio.timeout(limit_s), client.stream("GET", path) as response:
            return True, Reply(response.status_code, dict(response.headers), _object(await _read(response)))
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL):
        return False, None
    except (httpx.HTTPError, TimeoutError):
        return True, None


async def _read(response: httpx.Response) -> bytes:
    """Returns a body, or nothing of one that is too large."""
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _LARGEST:
            return b""
    return body


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def recognise(replies: Mapping[str, Reply]) -> ServerKind | None:
    """Returns the kind of a server by its replies to the paths; None for one that is not known."""
    for kind in SERVER_KINDS:
        reply = replies.get(kind.path)
        if reply is not None and _is_of(kind, reply, replies.get(MODELS_PATH)):
            return kind
    return None


def _is_of(kind: ServerKind, reply: Reply, models: Reply | None) -> bool:
    if kind.locked is not None and reply.status in _REFUSED:
        return _shows(reply.body, kind.locked.signs) and _has(reply, kind.locked.header)
    if reply.status != 200 or not _shows(reply.body, kind.signs) or not _has(reply, kind.header):
        return False
    return kind.owner is None or models is None or models.status in _REFUSED or kind.owner in _owners(models)


def _has(reply: Reply, header: tuple[str, str] | None) -> bool:
    return header is None or reply.headers.get(header[0], "").startswith(header[1])


def _shows(body: Mapping[str, Any], signs: Mapping[str, Any]) -> bool:
    for name, sign in signs.items():
        value = body.get(name)
        if not (isinstance(value, sign) if isinstance(sign, type) else value == sign):
            return False
    return True


def _entries(models: Reply | None) -> list[dict[str, Any]]:
    data = models.body.get("data") if models is not None else None
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _owners(models: Reply) -> set[str]:
    return {str(entry.get("owned_by")) for entry in _entries(models)}


def _models(models: Reply | None) -> tuple[str, ...]:
    names = [entry.get("id") for entry in _entries(models)]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name and name.isprintable()))
