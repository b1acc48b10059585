"""Defines a scenario of the agent wire: its steps for each request, and the response that a client should receive."""

import msgspec

from adapters.warp.demo.steps import Step
from gateway.demo.player.playback import Response


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """The response that an OpenAI client should receive.

    `text` (None: it depends on the request), `reasoning` and `calls` (name, arguments as JSON) are the whole response
    and `finish` its reason. If `fails` is set, there is an error instead: `status` as long as nothing has been sent to
    the client, `code` in the error object (None: not defined by the wire), and `text` is what may have been sent before
    it. `kind` is the kind of this fault in `gateway.demo.faults.kinds` (empty: none, or one that only this wire has).
    """

    text: str | None = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str | None = "stop"
    fails: bool = False
    status: int | None = None
    code: str | None = None
    kind: str = ""


class WarpScenario(msgspec.Struct, frozen=True, kw_only=True):
    """`turns` holds the steps by the number of rounds of tool results in the request; after them the script responds.
    `instead` holds whole HTTP responses that are sent, one per request, before the steps, in a cycle. `needs_refresh`
    responds with 401 to every bearer token that `/proxy/token` did not issue. `waits` marks the scenarios that end only
    when the client disconnects or times out."""

    about: str
    expect: Expect
    turns: tuple[tuple[Step, ...], ...] = ()
    instead: tuple[Response, ...] = ()
    needs_refresh: bool = False
    waits: bool = False


def failure(kind: str, status: int | None, code: str | None = None, text: str = "") -> Expect:
    """Builds an expected error of this kind, after the given text at most."""
    return Expect(text=text, finish=None, fails=True, status=status, code=code, kind=kind)
