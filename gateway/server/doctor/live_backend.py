"""Asks a backend the questions of the probes, in the way of every request of a client."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any, Final

import msgspec

from gateway.adapter import BackendRequest, Capabilities
from gateway.core.conversation import JsonObject
from gateway.core.errors import BackendError, BackendTimeout, GatewayError, InvalidRequest
from gateway.core.events import Event
from gateway.diagnostics.doctor.question import Answer, Key, ModelNames, Question, Reached, Read
from gateway.diagnostics.doctor.suggestion import merged, with_changes
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.recording.recording import Interaction
from gateway.registry import load_dialect
from gateway.server.doctor.connection import reach
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.capture_observer import CapturedResponse
from gateway.server.inspect.captured_bytes import CapturedBytes
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import complete
from gateway.server.upstream.credentials import BASIC, Credential, SigningKey, StaticCredential
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.model_list import fetch_models
from gateway.server.upstream.transport import Transport
from gateway.settings import BackendSettings, ModelSettings

# A question is short: a backend that is still silent after this time does not answer.
LIMIT_S: Final = 120.0
# A server may be silent about functions alone. Behind a first such question without an answer, the others wait so long,
# or so many times as long as the longest answer took: a slow machine answers within that.
REPEATED_S: Final = 20.0
_PATIENCE: Final = 4
WRONG_KEY: Final = "dragoman-doctor-wrong-key"
_PATH: Final = "/v1/chat/completions"
_MOST_BYTES: Final = 4 * 2**20


class LiveBackend:
    """A ProbedBackend over real connections. `route` is the entry of the model, and `model` its name at the backend.

    `interactions` are the requests so far, as parts of a recording.
    """

    def __init__(self, transport: Transport, backend: Backend, route: ModelSettings, model: str) -> None:
        self.settings: BackendSettings = backend.settings
        self.capabilities: Capabilities = backend.adapter.capabilities
        self.model = model
        self.remedies: dict[str, Any] = {}
        self.refusals: dict[str, str] = {}
        self.interactions: list[Interaction] = []
        self._transport = transport
        self._route = route
        self._dialect = load_dialect()
        self._limit = min(backend.timeouts.total, LIMIT_S)
        self._limit_with_tools = self._limit
        self._longest_answer = 0.0
        self._backends: dict[Key, Backend] = {
            "right": backend,
            "wrong": _with_credential(backend, _wrong_credential(backend)),
        }
        self._answers: dict[bytes, Answer] = {}
        self._lists: dict[Key, ModelNames] = {}
        self._reached: Reached | None = None

    @property
    def origin(self) -> Origin:
        """The server that the backend's URL names."""
        return self._backends["right"].url("/").address

    def redact(self, text: str) -> str:
        """Returns the text without a secret of the backend."""
        return self._backends["right"].redact(text)

    async def reach(self) -> Reached:
        """Opens a connection to each address of the host, once."""
        if self._reached is None:
            self._reached = await reach(self.origin, self.settings.timeouts.connect)
        return self._reached

    async def list_models(self, key: Key = "right") -> ModelNames:
        """Fetches the list of models, once with each key."""
        if key not in self._lists:
            self._lists[key] = await self._fetch(self._backends[key])
        return self._lists[key]

    async def _fetch(self, backend: Backend) -> ModelNames:
        try:
            return ModelNames(await fetch_models(backend, await backend.credential.headers()))
        except InvalidRequest:
            return ModelNames(listed=False)
        except GatewayError as error:
            return ModelNames(error=error)

    async def ask(self, question: Question) -> Answer:
        """Sends a question, once with the remedies that are known by then."""
        changes = merged(self.remedies, question.changes)
        question = msgspec.structs.replace(question, changes=changes)
        name = msgspec.json.encode(question)
        if name not in self._answers:
            self._answers[name] = await self._send(question)
        return self._answers[name]

    async def ask_at_once(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        """Sends questions at the same time, whatever was asked before."""
        changed = [msgspec.structs.replace(one, changes=merged(self.remedies, one.changes)) for one in questions]
        return tuple(await asyncio.gather(*map(self._send, changed)))

    async def _send(self, question: Question) -> Answer:
        backend = self._backends[question.key]
        number = len(self.interactions) + 1
        capture = Capture(f"doctor-{number}", "POST", CapturedBytes(_MOST_BYTES))
        head = RequestHead(_PATH)
        body = msgspec.json.encode({"model": self.model, **question.fields})
        capture.begin(self._dialect, head)
        capture.read_request(body)
        route = self._changed(question)
        capture.choose_route(self.model, route, backend)
        began = monotonic()
        exchange: Exchange | None = None
        events: list[Event] = []
        failure: GatewayError | None = None
        try:
            conversation = self._dialect.decode(read_document(body), head).conversation
            conversation = backend.with_request_id(conversation)
            exchange = Exchange(backend.adapter, conversation, route.policy, label=backend.state_label)
            if question.added:
                exchange.request = _with_fields(exchange.request, question.added)
            capture.prepare(exchange)
            events = await complete(
                self._transport,
                backend,
                exchange,
                self._limit_with_tools if _has_tools(question) else self._limit,
                lambda one: _watched(one, capture, question.leave_after),
            )
        except _Left:
            pass
        except GatewayError as error:
            capture.fail(error)
            events = error.take_events() if isinstance(error, BackendError) else []
            failure = error
        capture.end()
        notices = () if exchange is None else tuple(exchange.notices)
        for notice in notices:
            capture.note(notice)
        status, code = (200, "") if failure is None else (failure.status, failure.code or "")
        interaction = capture.interaction(status, code, "", x=number)
        self.interactions.append(interaction)
        sent = None if exchange is None else exchange.request
        took = monotonic() - began
        self._learn(question, failure, took)
        return Answer(tuple(events), notices, _reads(interaction), failure, sent, took)

    def _learn(self, question: Question, failure: GatewayError | None, took: float) -> None:
        if failure is None:
            self._longest_answer = max(self._longest_answer, took)
        elif isinstance(failure, BackendTimeout) and _has_tools(question):
            self._limit_with_tools = min(self._limit, max(REPEATED_S, _PATIENCE * self._longest_answer))

    def _changed(self, question: Question) -> ModelSettings:
        """Returns the model's entry with the policy that the question is sent by."""
        policy = self._route.policy
        policy = msgspec.structs.replace(
            policy,
            profile=with_changes(policy.profile, question.changes) if question.changes else policy.profile,
            repair="off" if question.as_is else policy.repair,
        )
        return msgspec.structs.replace(self._route, policy=policy)


def _has_tools(question: Question) -> bool:
    return bool(question.fields.get("tools"))


def _wrong_credential(backend: Backend) -> Credential:
    """Returns a credential that no backend knows, in the form of the right one."""
    settings, right = backend.settings, backend.credential
    if isinstance(right, SigningKey):
        id, colon, _ = right.value.rpartition(":")
        return SigningKey(f"{id}{colon}{WRONG_KEY}")
    scheme = settings.api_key_scheme
    value = f"dragoman:{WRONG_KEY}" if scheme is not None and scheme.lower() == BASIC else WRONG_KEY
    return StaticCredential(settings.api_key_header, value, scheme)


def _with_credential(backend: Backend, credential: Credential) -> Backend:
    other = Backend(backend.name, backend.settings, backend.max_event, credential)
    other.base_url = backend.base_url
    return other


def _with_fields(request: BackendRequest, added: JsonObject) -> BackendRequest:
    """Returns a request whose body is a JSON object, with more fields."""
    body = msgspec.json.decode(request.body, type=dict)
    return msgspec.structs.replace(request, body=msgspec.json.encode({**body, **added}))


def _reads(interaction: Interaction) -> tuple[Read, ...]:
    """Returns the reads of the response, with the seconds since the request was ready."""
    sent = 0.0 if interaction.sent is None else interaction.sent.t
    return tuple(Read((line.t - sent) / 1000, line.data.content) for line in interaction.reads)


class _Left(Exception):
    """The client of a question that leaves early has left."""


class _LeavingResponse(CapturedResponse):
    """A response whose client leaves after some reads."""

    __slots__ = ("_left",)

    def __init__(self, response: BackendResponse, capture: Capture, reads: int) -> None:
        super().__init__(response, capture)
        self._left = reads

    async def read(self, most: int = 0) -> bytes:
        if self._left == 0:
            self._capture.cut("client_gone")
            raise _Left
        self._left -= 1
        return await super().read(most)


def _watched(response: BackendResponse, capture: Capture, leave_after: int) -> BackendResponse:
    if leave_after:
        return _LeavingResponse(response, capture, leave_after)
    return CapturedResponse(response, capture)
