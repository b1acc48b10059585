"""The questions that probes ask a backend, and the answers."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from gateway.adapter import BackendModel, BackendRequest
from gateway.core.answer import read_answer
from gateway.core.conversation import EMPTY, JsonObject, ToolCall
from gateway.core.errors import BackendError, GatewayError
from gateway.core.events import Event, Finish, UsageReport
from gateway.core.notices import Notice
from gateway.diagnostics.doctor.finding import Changes

# Which credential a request carries: that of the settings, or a wrong one.
Key: TypeAlias = Literal["right", "wrong"]


class Question(msgspec.Struct, frozen=True):
    """One request: the fields of a chat completions request, without its model.

    It is prepared like that of a client. `as_is`: without a repair of its history. `changes` replace fields of the
    model's profile. `leave_after`: the client leaves after so many reads of the answer; 0: it stays. `added` are fields
    of the body that is sent, which the gateway itself never sends; only a body of JSON can have them.
    """

    fields: JsonObject
    as_is: bool = False
    changes: Changes = EMPTY
    key: Key = "right"
    leave_after: int = 0
    added: JsonObject = EMPTY


class Read(msgspec.Struct, frozen=True):
    """Bytes that arrived at once, `t` seconds after the request was made."""

    t: float
    data: bytes


class Answer(msgspec.Struct, frozen=True):
    """The answer to a question: its events, the bytes they came in, and the error that ended it, None for none. `sent`
    is the request as it was sent, None for one that was not, and `seconds` how long the answer took."""

    events: tuple[Event, ...] = ()
    notices: tuple[Notice, ...] = ()
    reads: tuple[Read, ...] = ()
    error: GatewayError | None = None
    sent: BackendRequest | None = None
    seconds: float = 0.0

    @property
    def body(self) -> bytes:
        """The body of the response."""
        return b"".join(read.data for read in self.reads)

    @property
    def text(self) -> str:
        """The text of the answer."""
        return read_answer(self.events).text

    @property
    def reasoning(self) -> str:
        """The reasoning before it."""
        return read_answer(self.events).reasoning

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order, each with its state for the provider in `extra`."""
        return tuple(call.block for call in read_answer(self.events).calls)

    @property
    def usage(self) -> UsageReport | None:
        """The token counts that the backend reported."""
        return read_answer(self.events).usage

    @property
    def finish(self) -> Finish | None:
        """The end of the answer."""
        return read_answer(self.events).finish

    @property
    def refusal(self) -> BackendError | None:
        """The error of a backend that refuses the request itself; None for an answer and for any other error."""
        error = self.error
        return error if isinstance(error, BackendError) and error.status in (400, 404, 409, 413, 422) else None

    @property
    def rule(self) -> str:
        """The rule of the history by which the backend refused the request, as far as its words are known."""
        return str(self.refusal.extra.get("rule", "")) if self.refusal is not None else ""

    @property
    def words(self) -> str:
        """The backend's words about the error, or the gateway's."""
        return words_of(self.error)


def words_of(error: GatewayError | None) -> str:
    """Returns the backend's words about an error, or the gateway's; an empty text for none."""
    if error is None:
        return ""
    return (error.words if isinstance(error, BackendError) else "") or error.message


class ModelNames(msgspec.Struct, frozen=True):
    """The models that a backend lists, or the error. `listed`: its wire has a list of models."""

    models: tuple[BackendModel, ...] = ()
    listed: bool = True
    error: GatewayError | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple([model.name for model in self.models])


class Address(msgspec.Struct, frozen=True):
    """One address of the backend's host, and why no connection to it could be opened; empty: it could."""

    family: str
    address: str
    fault: str = ""


class Reached(msgspec.Struct, frozen=True):
    """The result of connecting to the backend's host. `tls` is the version of TLS, empty where the URL has none, and
    `expires_days` how long its certificate is valid."""

    host: str
    addresses: Sequence[Address] = ()
    fault: str = ""
    tls: str = ""
    expires_days: int | None = None
