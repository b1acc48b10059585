"""Tests which session a request names. The heads are those that Claude Code 2.1.330 and Codex 0.169.0 sent to a server
that recorded them, cut to the headers of the session."""

import json
from typing import Final

import pytest

from gateway.core.session import LONGEST_ID, ReadSession, Session, read_session

SESSION: Final = "cbf304b6-0358-4668-893d-dd2b3f7c1811"
THREAD: Final = "01a21b15-db72-77f3-ae77-078d49205483"
TURN: Final = "01a21b15-db92-79d2-bb6c-d0a639847e75"
CLAUDE: Final = {b"x-claude-code-session-id": SESSION.encode()}
CODEX: Final = {
    b"session-id": SESSION.encode(),
    b"thread-id": SESSION.encode(),
    b"x-client-request-id": SESSION.encode(),
    b"x-codex-window-id": f"{SESSION}:0".encode(),
    b"x-codex-turn-metadata": json.dumps({"session_id": SESSION, "turn_id": TURN, "window_number": 0}).encode(),
}
CODEX_BODY: Final = {
    "prompt_cache_key": SESSION,
    "client_metadata": {
        "session_id": SESSION,
        "thread_id": THREAD,
        "turn_id": TURN,
        "x-codex-parent-thread-id": SESSION,
        "x-openai-subagent": "collab_spawn",
    },
}
CLAUDE_USER: Final = {"device_id": "ea6bd76e", "account_uuid": "", "session_id": SESSION}


def session_of(headers: dict[bytes, bytes], body: object = None) -> Session | None:
    found = read_session(headers, json.dumps(body).encode())
    assert not found.ignored and not found.notices
    return found.session


def test_claude_code_names_its_session_and_the_agent_that_asks() -> None:
    assert session_of(CLAUDE) == Session("claude_code", SESSION)
    below = {**CLAUDE, b"x-claude-code-agent-id": b"a02499863f86af87f"}
    assert session_of(below) == Session("claude_code", SESSION, "a02499863f86af87f")
    deeper = {**below, b"x-claude-code-parent-agent-id": b"a1"}
    assert session_of(deeper) == Session("claude_code", SESSION, "a02499863f86af87f", "a1")


def test_codex_names_its_session_its_thread_and_its_turn() -> None:
    assert session_of(CODEX) == Session("codex", SESSION, turn=TURN)
    below = {**CODEX, b"thread-id": THREAD.encode(), b"x-codex-parent-thread-id": SESSION.encode()}
    assert session_of(below) == Session("codex", SESSION, THREAD, turn=TURN)
    deeper = {**CODEX, b"thread-id": b"t2", b"x-codex-parent-thread-id": THREAD.encode()}
    assert session_of(deeper) == Session("codex", SESSION, "t2", THREAD, TURN)


def test_over_a_websocket_the_body_alone_names_the_turn_of_codex() -> None:
    head = {name: value for name, value in CODEX.items() if name != b"x-codex-turn-metadata"}
    assert session_of(head) == Session("codex", SESSION)
    assert session_of(head, CODEX_BODY) == Session("codex", SESSION, turn=TURN)


def test_a_body_says_the_same_where_a_proxy_has_dropped_the_headers() -> None:
    assert session_of({}, CODEX_BODY) == Session("codex", SESSION, THREAD, turn=TURN)
    user = {"metadata": {"user_id": json.dumps(CLAUDE_USER)}}
    assert session_of({}, user) == Session("claude_code", SESSION)
    assert session_of(CLAUDE, CODEX_BODY) == Session("claude_code", SESSION), "the head comes first"


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"metadata": {"user_id": "session_id"}},
        {"metadata": {"user_id": "[]", "session_id": 1}},
        {"metadata": ["session_id"]},
        {"client_metadata": {"session_id": 7}},
        {"prompt_cache_key": SESSION},
        {"messages": [{"role": "user", "content": 'Print {"session_id": 1}.'}]},
    ],
)
def test_other_bodies_name_none(body: object) -> None:
    assert session_of({}, body) is None


def test_a_body_that_is_no_json_names_none() -> None:
    for body in (b"session_id", b'{"metadata": {"session_id"', b'"session_id\xff"', b"[" * 100_000 + b"session_id"):
        assert read_session({}, body) == ReadSession()
    for value in (b"{", b'{"turn_id":"\xff"}', b'{"turn_id":' * 5_000, b'{"turn_id":5}'):
        assert session_of({**CODEX, b"x-codex-turn-metadata": value}) == Session("codex", SESSION), value[:20]


@pytest.mark.parametrize(
    "value",
    [
        b"x" * (LONGEST_ID + 1),
        b"two words",
        b"tab\t",
        "Zürich".encode(),
        b"\x7f",
        b"sk-proj-" + b"aB3" * 16,
        b"client-key",
    ],
)
def test_a_value_that_is_no_id_is_ignored_and_told(value: bytes) -> None:
    found = read_session({b"x-claude-code-session-id": value}, b"", ("client-key",))
    assert found.session is None and found.ignored == ("x-claude-code-session-id",)
    (notice,) = found.notices
    assert (notice.rule, notice.action) == ("SESSION_IGNORED", "ignored")
    assert value.decode("latin-1") not in notice.detail
    # Each id by itself.
    found = read_session({**CLAUDE, b"x-claude-code-agent-id": value}, b"", ("client-key",))
    assert found.session == Session("claude_code", SESSION) and found.ignored == ("x-claude-code-agent-id",)


def test_the_longest_id_is_one() -> None:
    assert session_of({b"x-claude-code-session-id": b"~" * LONGEST_ID}) == Session("claude_code", "~" * LONGEST_ID)
