"""What a scenario of the agent wire is: its steps for each request of a conversation, and what a client should see."""

import msgspec

from gateway.demo.playback import Response
from gateway.demo.steps import Step


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """What an OpenAI client should see.

    `text` (None: it depends on the request), `reasoning` and `calls` (name, arguments as JSON) are the whole answer
    and `finish` its reason. Where `fails` is set there is an error instead: `status` as long as nothing has been sent
    on, `code` in the error object (None: not settled by the wire), `text` being what may have been sent on before.
    """

    text: str | None = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str | None = "stop"
    fails: bool = False
    status: int | None = None
    code: str | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """`turns` holds the steps by how many rounds of tool results the request already has; after them the script
    answers. `instead` holds whole HTTP answers that are given, one per request, before the steps get their turn,
    over and over. `needs_refresh` answers 401 to every bearer that `/proxy/token` has not handed out. `waits` marks
    those that end only when the client leaves or loses its patience.
    """

    about: str
    expect: Expect
    turns: tuple[tuple[Step, ...], ...] = ()
    instead: tuple[Response, ...] = ()
    needs_refresh: bool = False
    waits: bool = False


def failure(status: int | None, code: str | None = None, text: str = "") -> Expect:
    """An expected error, after the given text at most."""
    return Expect(text=text, finish=None, fails=True, status=status, code=code)
