"""Builds backends from settings: adapter, address, credential; demo backends start in this process."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urljoin

import msgspec

from gateway.adapter import Adapter, BackendRequest, SigningAdapter, UnsignedRequest
from gateway.core.backend_status import NO_RETRY
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, InvalidRequest, SettingsError
from gateway.core.policy import Policy
from gateway.registry import load_adapter
from gateway.server.access.admission import backend_concurrency
from gateway.server.log.request_id import new_uuid
from gateway.server.upstream.credentials import (
    Credential,
    SigningKey,
    check_signing,
    credential_for,
    header_secrets,
    redact_secrets,
    signing_key,
)
from gateway.server.upstream.demo_backends import DemoBackends, read_demo_address
from gateway.server.upstream.http.headers import Headers, check_header
from gateway.server.upstream.http.origin import Url, read_url, split_url
from gateway.server.upstream.http.tls import BACKEND_CONTEXTS, file_faults
from gateway.server.upstream.http1.request_head import Lines
from gateway.server.upstream.http2.request_head import RequestFields
from gateway.server.upstream.transport import encode_head, encode_http2_head
from gateway.settings import LIMITS, BackendSettings, ModelSettings, Settings, Timeouts, similar
from gateway.settings.model_names import ANY, ModelNames, exact_names

DEMO = "demo:"
DEMOS = ("agent", "chat", "messages", "responses", "gemini", "text", "grpc")
# An adapter has one head, or one for streams and one for whole responses.
HEADS = 4
# Headers of every request, or of one wire, that a credential would replace.
_OF_REQUEST: Final = re.compile(
    r"accept|accept-encoding|connection|content-.*|host|timeout|user-agent|x-grpc-web|(grpc|connect)-.*"
)


# The version of HTTP, method, path, the adapter's headers and the credential's: the inputs of a head besides the
# settings.
_MadeOf: TypeAlias = tuple[bool, str, str, Mapping[str, str], Mapping[str, str]]


class Backend:
    """One backend entry. `base_url` of a demo backend is known only while it runs."""

    def __init__(
        self, name: str, settings: BackendSettings, max_event: int, credential: Credential | None = None
    ) -> None:
        self.name = name
        self.settings = settings
        self.max_event = max_event
        self.base_url = settings.base_url
        check_address(f"backends.{name}", settings.base_url)
        check_headers(f"backends.{name}", settings)
        check_tls(f"backends.{name}", settings)
        self.state_label = settings.state_label
        self.adapter = load_adapter(name, settings, max_event)
        self.signs = isinstance(self.adapter, SigningAdapter)
        check_routes(f"backends.{name}", settings, self.adapter)
        self.credential: Credential = credential or _credential(f"backends.{name}", settings, signs=self.signs)
        self.timeouts: Timeouts = settings.timeouts
        self.concurrency = backend_concurrency(name, settings.max_concurrent)
        self.headers = {key.lower(): value.strip(" \t") for key, value in settings.headers.items()}
        self._secrets = tuple(header_secrets(self.headers.values()))
        self._urls: dict[str, Url] = {}
        self._heads: list[tuple[_MadeOf, Lines | RequestFields]] = []

    @property
    def account(self) -> tuple[str, ...]:
        """Whose account the backend sees: its credential's identity, and the headers that may hold another one."""
        return (self.credential.identity, *(f"{name}: {self.headers[name]}" for name in sorted(self.headers)))

    def with_request_id(self, conversation: Conversation) -> Conversation:
        """Returns the conversation with an id that no other request has, if the backend's requests hold one."""
        if not self.adapter.capabilities.request_id:
            return conversation
        return msgspec.structs.replace(conversation, request_id=new_uuid())

    def url(self, path: str) -> Url:
        """Returns the URL of a path below base_url; built once. `/../` at its beginning leads to the folder above."""
        url = self._urls.get(path)
        if url is None:
            below = self.base_url.rstrip("/")
            joined = urljoin(f"{below}/", path[1:]) if path.startswith("/../") else below + path
            url = self._urls[path] = read_url(joined, self.settings.tls)
        return url

    def head(self, request: BackendRequest, credential: Mapping[str, str]) -> Lines | RequestFields:
        """Returns the head of a request: the adapter's headers, overridden by those of the settings, overridden by the
        credential. Requests that differ only in their body share one encoded head. Raises ValueError for headers that
        cannot be sent."""
        wanted = (request.http2, request.method, request.path, request.headers, credential)
        for made_of, head in self._heads:
            if made_of == wanted:
                return head
        return self._encode(request, credential)

    def passed_head(self, method: str, path: str, headers: Mapping[str, str], credential: Mapping[str, str]) -> Lines:
        """Returns the head of a request that is passed as it is; it shares nothing with other heads. Raises ValueError
        for headers that cannot be sent."""
        return encode_head(method, self.url(path), {**headers, **self.headers, **credential})

    def _encode(self, request: BackendRequest, credential: Mapping[str, str]) -> Lines | RequestFields:
        headers = {**request.headers, **self.headers, **credential}
        encode = encode_http2_head if request.http2 else encode_head
        url = self.url(request.path)
        signer = partial(self.sign, request.method, url) if self.signs else None
        encoded = encode(request.method, url, headers, signer)
        # Copies, since their owners may change them. A replaced credential does not recur.
        made_of = (request.http2, request.method, request.path, dict(request.headers), dict(credential))
        self._heads = [(made_of, encoded), *(head for head in self._heads if head[0][4] == credential)][:HEADS]
        return encoded

    def sign(self, method: str, url: Url, headers: Mapping[str, str], body: bytes) -> Headers:
        """Returns the headers of the signature that the adapter makes now, for a request with these headers, `host`
        among them. Raises BackendError where the key cannot sign, and where the request has such a header already."""
        assert isinstance(self.adapter, SigningAdapter) and isinstance(self.credential, SigningKey)
        path, _, query = url.path.partition("?")
        unsigned = UnsignedRequest(method, path, query, headers, body)
        try:
            signed = self.adapter.sign(unsigned, self.credential.value, datetime.now(UTC))
            for name, value in signed.items():
                check_header(name, value)
        except ValueError as error:
            raise _unsigned("The gateway's key for this backend cannot sign its requests.") from error
        for name in signed:
            if name.lower() in headers:
                raise _unsigned(f"The header {name!r} is part of the signature, and the request has it already.")
        return [(name.lower(), value) for name, value in signed.items()]

    def redact(self, text: str) -> str:
        """Returns the text without the credential, and without any value of `headers`, which may be a secret."""
        text = self.credential.redact(text)
        return redact_secrets(text, *self._secrets) if self._secrets else text

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credential, and the values of `headers`."""
        return (*self.credential.secrets, *self._secrets)


class Backends:
    """All backends, and the backend of each model name."""

    def __init__(self, settings: Settings, before: "Backends | None" = None) -> None:
        self._backends = {
            name: _backend(name, settings, before.known(name) if before else None) for name in settings.backends
        }
        self._routes = {name: entry.on(self._native(entry)) for name, entry in settings.models.items()}
        self._entries = ModelNames(self._routes)
        self.models = exact_names(settings.models)

    @property
    def adapters(self) -> Mapping[str, Adapter]:
        """The adapter of each backend entry."""
        return {name: backend.adapter for name, backend in self._backends.items()}

    def listed_name(self, model: str) -> str:
        """Returns the name by which the settings know the model that a client names."""
        return self._entries.known_name(model)

    def redact(self, text: str) -> str:
        """Returns the text without a secret of any backend."""
        for backend in self._backends.values():
            text = backend.redact(text)
        return text

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets of all backends."""
        return tuple(secret for backend in self._backends.values() for secret in backend.secrets)

    def route(self, model: str) -> tuple[ModelSettings, Backend]:
        """Returns the entry and backend of a model name. Raises InvalidRequest 404 `model_not_found`."""
        found = self.find(model)
        if found is None:
            near = similar(model, self.models)
            advice = f" Did you mean {near!r}?" if near is not None else f" Known models: {_list(self.models)}."
            raise InvalidRequest(
                f"Unknown model {model[:200]!r}.{advice}",
                status=404,
                code="model_not_found",
                param="model",
            )
        return found

    def find(self, model: str) -> tuple[ModelSettings, Backend] | None:
        """Returns the entry and backend of a model name, or None."""
        entry = self._entries.find(model)
        return None if entry is None else (entry, self._backends[entry.backend])

    @property
    def entries(self) -> Mapping[str, ModelSettings]:
        """The entry of each model, as applied to its backend."""
        return self._routes

    @property
    def any(self) -> tuple[ModelSettings, Backend] | None:
        """The entry and backend of every name that the settings do not list."""
        entry = self._routes.get(ANY)
        return None if entry is None else (entry, self._backends[entry.backend])

    @property
    def limits(self) -> str:
        """The limits that apply to each model's history, as one log line; models with the same limits are grouped."""
        models: dict[str, list[str]] = {}
        for name, entry in self._routes.items():
            models.setdefault(_limits(entry.policy), []).append(name)
        return "; ".join(f"{', '.join(names)}: {limits}" for limits, names in models.items())

    def _native(self, entry: ModelSettings) -> bool:
        return self._backends[entry.backend].adapter.capabilities.native

    def known(self, name: str) -> Backend | None:
        """Returns the backend of an entry."""
        return self._backends.get(name)

    async def start(self, demo_backends: DemoBackends) -> None:
        """Starts the demo backends that the settings ask for."""
        for backend in self._backends.values():
            if backend.base_url.startswith(DEMO):
                backend.base_url = await demo_backends.url(backend.base_url.removeprefix(DEMO))


def _backend(name: str, settings: Settings, old: Backend | None) -> Backend:
    """Returns the old backend for an unchanged entry; a backend for a changed entry keeps a token that is already
    issued."""
    entry = settings.backends[name]
    max_event = int(settings.limits.max_event_mb * 2**20)
    if old is None:
        return Backend(name, entry, max_event)
    if (old.settings, old.max_event) == (entry, max_event):
        return old
    bought = entry.refresh is not None and old.settings.refresh == entry.refresh
    return Backend(name, entry, max_event, old.credential if bought else None)


def _credential(where: str, settings: BackendSettings, *, signs: bool) -> Credential:
    if not signs:
        return credential_for(settings)
    check_signing(where, settings)
    try:
        return signing_key(settings)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error.message}") from error


def _unsigned(message: str) -> BackendError:
    return BackendError(message, code="upstream_auth_error", headers=NO_RETRY)


def check_address(where: str, base_url: str) -> None:
    """Raises SettingsError for a `base_url` that names no backend."""
    if base_url.startswith(DEMO):
        return _check_demo(where, base_url.removeprefix(DEMO))
    try:
        parts = split_url(base_url)
        if "@" in parts.netloc:
            raise ValueError("must not contain a credential; name its variable in api_key_env")
        if parts.query or parts.fragment:
            raise ValueError("must not contain a query or a fragment")
        read_url(base_url)
    except ValueError as error:
        raise SettingsError(f"{where}.base_url {error}") from error


def _check_demo(where: str, address: str) -> None:
    demo = read_demo_address(address)
    if demo.kind not in DEMOS:
        *first, last = [f"'{DEMO}{kind}'" for kind in DEMOS]
        raise SettingsError(f"{where}.base_url: the demo backends are {', '.join(first)} and {last}")
    if demo.defect is not None:
        from gateway.demo.faults.catalogue import find_fault

        try:
            find_fault(demo.defect, demo.kind)
        except ValueError as error:
            raise SettingsError(f"{where}.base_url: {error}") from error


def check_tls(where: str, settings: BackendSettings) -> None:
    """Raises SettingsError for files that no connection to the backend can use. Reads them."""
    if settings.tls is None:
        return
    if not settings.base_url.startswith("https://"):
        raise SettingsError(f"{where}.tls: base_url must begin with https://")
    try:
        BACKEND_CONTEXTS.check(settings.tls)
    except SettingsError as error:
        raise SettingsError(f"{where}.tls.{error.message}") from error


def tls_faults(where: str, settings: BackendSettings) -> Iterator[SettingsError]:
    """Yields an error for each file of TLS that cannot be used. Reads them."""
    for error in () if settings.tls is None else file_faults(settings.tls):
        yield SettingsError(f"{where}.tls.{error.message}")


def check_routes(where: str, settings: BackendSettings, adapter: Adapter) -> None:
    """Raises SettingsError for routes to a backend that cannot be sent a client's request as it is."""
    if settings.routes and not adapter.capabilities.native:
        raise SettingsError(f"{where}.routes: the adapter {settings.adapter!r} is not one of an API that clients speak")
    if settings.routes and isinstance(adapter, SigningAdapter):
        raise SettingsError(f"{where}.routes: each request to this backend is signed, and a passed one cannot be")


def check_headers(where: str, settings: BackendSettings) -> None:
    """Raises SettingsError for headers that cannot be sent, and for a name of the credential's that none can have."""
    for name, value in settings.headers.items():
        _check_header(f"{where}.headers", name, value)
    place, name = f"{where}.api_key_header", settings.api_key_header
    _check_header(place, name, "")
    if _OF_REQUEST.fullmatch(name.lower()):
        raise SettingsError(f"{place}: {name!r} is a header that the gateway sets; name the one that holds the key")
    if name.lower().endswith("-bin"):
        raise SettingsError(f"{place}: {name!r} is binary metadata of gRPC, as which no key is sent")


def _check_header(place: str, name: str, value: str) -> None:
    try:
        check_header(name, value)
    except ValueError as error:
        raise SettingsError(f"{place}: {error}") from error


def _limits(policy: Policy) -> str:
    counts = [f"{name}={limit}" for name in LIMITS if (limit := getattr(policy, name)) is not None]
    step = [f"trim_step={policy.trim_step}"] if counts else []
    length = policy.max_tool_result_chars
    return " ".join([*counts, *step, *([] if length is None else [f"max_tool_result_chars={length}"])]) or "none"


def _list(names: Iterable[str]) -> str:
    return ", ".join(list(names)[:20]) or "none"
