"""Reads which session of an agent a request belongs to, by the ids that its client sends.

The names are those that Claude Code 2.1.330 and Codex 0.169.0 send (tests/clients/test_sessions.py); what stands in the
head comes first, since a body says the same. An id is a name and nothing else: no limit, no route and no metric depends
on one, and equal ids of two client keys are two sessions.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from gateway.core.notices import Notice
from gateway.core.secrets import without_secrets

# Who named the session: a client, or the gateway by the beginning of the conversation.
Source: TypeAlias = Literal["claude_code", "codex", "conversation"]
LONGEST_ID: Final = 128
_ID: Final = re.compile(rf"[!-~]{{1,{LONGEST_ID}}}")
# What every body with an id holds: others are not read.
_MARK: Final = b"session_id"


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """The session of a request. `agent` is the sub-agent that asks, empty for the agent that the user talks to, and
    `parent` the agent that began it, empty for that one; `turn` is what the client calls its answer to one message of
    the user, in any number of requests. Empty: the client does not say."""

    source: Source
    id: str
    agent: str = ""
    parent: str = ""
    turn: str = ""


class ReadSession(msgspec.Struct, frozen=True):
    """The session that a client names, or None. `ignored` are the headers and fields whose value is no id."""

    session: Session | None = None
    ignored: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """One notice for each value that is ignored; it names the place, never the value."""
        what = f"an id has at most {LONGEST_ID} visible ASCII characters, and is no key"
        return tuple(Notice("state", "ignored", "SESSION_IGNORED", f"Ignoring {name}: {what}") for name in self.ignored)


class _Ids(msgspec.Struct, frozen=True):
    """What one place says, as it stands there. The names are those of the headers and fields."""

    source: Source
    session: tuple[str, str]
    agent: tuple[str, str] = ("", "")
    parent: tuple[str, str] = ("", "")
    turn: tuple[str, str] = ("", "")


class _Turn(msgspec.Struct):
    turn_id: str = ""


class _Metadata(msgspec.Struct):
    """`metadata` of the Messages API; Claude Code writes JSON into its only field."""

    user_id: str | None = None


class _User(msgspec.Struct):
    session_id: str = ""


class _ClientMetadata(msgspec.Struct):
    """`client_metadata` of the Responses API, as Codex writes it."""

    session_id: str = ""
    thread_id: str = ""
    turn_id: str = ""
    parent: str = msgspec.field(default="", name="x-codex-parent-thread-id")


class _Body(msgspec.Struct):
    metadata: _Metadata | None = None
    client_metadata: _ClientMetadata | None = None


_TURN: Final = msgspec.json.Decoder(_Turn)
_USER: Final = msgspec.json.Decoder(_User)
_BODY: Final = msgspec.json.Decoder(_Body)
# What msgspec raises for JSON of another form, that is no UTF-8, or that is nested too deep.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_session(headers: Mapping[bytes, bytes], body: bytes, secrets: Sequence[str] = ()) -> ReadSession:
    """Returns the session that the head of a request names, or else its body; the names of headers are in lower case.
    Over a WebSocket the head is that of the connection, and Codex names the turn in the body alone. `secrets` are
    values that are no ids, whoever sends them."""
    ids = _of_head(headers)
    if ids is None:
        ids = _of_body(body)
    elif ids.source == "codex" and b"x-codex-turn-metadata" not in headers and (said := _of_body(body)) is not None:
        ids = replace(ids, turn=said.turn)
    if ids is None:
        return ReadSession()
    ignored: list[str] = []

    def checked(place: tuple[str, str]) -> str:
        name, value = place
        if value and not (_ID.fullmatch(value) and _is_clean(value, tuple(secrets))):
            ignored.append(name)
            return ""
        return value

    session, agent, parent, turn = map(checked, (ids.session, ids.agent, ids.parent, ids.turn))
    if not session:
        return ReadSession(None, tuple(ignored))
    # Codex names the thread of the user by the session.
    agent, parent = ("" if one == session else one for one in (agent, parent))
    return ReadSession(Session(ids.source, session, agent, parent, turn), tuple(ignored))


# An agent sends the same ones hundreds of times, and each look takes longer than all the rest.
@lru_cache(maxsize=256)
def _is_clean(value: str, secrets: tuple[str, ...]) -> bool:
    return without_secrets(value, secrets) == value


def _of_head(headers: Mapping[bytes, bytes]) -> _Ids | None:
    def named(name: str) -> tuple[str, str]:
        return name, headers.get(name.encode(), b"").decode("latin-1")

    if b"x-claude-code-session-id" in headers:
        return _Ids(
            "claude_code",
            named("x-claude-code-session-id"),
            named("x-claude-code-agent-id"),
            named("x-claude-code-parent-agent-id"),
        )
    if b"session-id" in headers and b"thread-id" in headers:
        about = headers.get(b"x-codex-turn-metadata", b"")
        return _Ids(
            "codex",
            named("session-id"),
            named("thread-id"),
            named("x-codex-parent-thread-id"),
            ("x-codex-turn-metadata", _turn_id(about)),
        )
    return None


def _turn_id(about: bytes) -> str:
    try:
        return _TURN.decode(about).turn_id
    except _UNREADABLE:
        return ""


def _of_body(body: bytes) -> _Ids | None:
    if _MARK not in body:
        return None
    try:
        found = _BODY.decode(body)
        if found.metadata is not None and found.metadata.user_id:
            return _Ids("claude_code", ("metadata.user_id", _USER.decode(found.metadata.user_id).session_id))
    except _UNREADABLE:
        return None
    if (about := found.client_metadata) is None:
        return None
    return _Ids(
        "codex",
        ("client_metadata.session_id", about.session_id),
        ("client_metadata.thread_id", about.thread_id),
        ("client_metadata.x-codex-parent-thread-id", about.parent),
        ("client_metadata.turn_id", about.turn_id),
    )
