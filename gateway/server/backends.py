"""Settings -> backends ready to be called: adapter, address, credential; the demo ones are started in this process."""

import difflib
import importlib
from collections.abc import Iterable, Mapping
from typing import cast
from urllib.parse import urlsplit

from gateway.adapter import Adapter, BackendRequest
from gateway.errors import InvalidRequest, SettingsError
from gateway.server.admission import backend_slots
from gateway.server.credentials import Credential, blot, credential_for, header_secrets
from gateway.server.demos import Demos
from gateway.server.http.address import Url, read_url
from gateway.server.http.request import Lines, check_header
from gateway.server.transport import encode_head
from gateway.settings import BackendSettings, ModelSettings, Settings, Timeouts, check_options

DEMO = "demo:"
DEMOS = ("agent", "chat", "text")
# An adapter has one head, or one for streams and one for whole answers.
HEADS = 4


class Backend:
    """One backend entry. `base_url` of a demo backend is known only while it runs."""

    def __init__(
        self, name: str, settings: BackendSettings, max_event: int, credential: Credential | None = None
    ) -> None:
        self.name = name
        self.settings = settings
        self.max_event = max_event
        self.base_url = settings.base_url
        self.adapter = load_adapter(name, settings, max_event)
        self.credential: Credential = credential or credential_for(settings)
        self.timeouts: Timeouts = settings.timeouts
        self.slots = backend_slots(name, settings.max_concurrent)
        self._headers = {key.lower(): value for key, value in settings.headers.items()}
        self._secrets = tuple(header_secrets(settings.headers.values()))
        self._urls: dict[str, Url] = {}
        # Method, path, the adapter's headers and the credential's: what a head was made of besides the settings.
        self._heads: list[tuple[tuple[str, str, Mapping[str, str], Mapping[str, str]], Lines]] = []

    def url(self, path: str) -> Url:
        """The address of a path below base_url; built once."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = read_url(self.base_url.rstrip("/") + path)
        return url

    def lines(self, request: BackendRequest, credential: Mapping[str, str]) -> Lines:
        """The head of a request: the adapter's own headers, the settings' above them, the credential above all. That
        of a request which differs from another in its body alone is not built anew. Raises ValueError for headers
        that cannot be sent."""
        wanted = (request.method, request.path, request.headers, credential)
        for made_of, lines in self._heads:
            if made_of == wanted:
                return lines
        return self._encode(request, credential)

    def _encode(self, request: BackendRequest, credential: Mapping[str, str]) -> Lines:
        headers = {**request.headers, **self._headers, **credential}
        lines = encode_head(request.method, self.url(request.path), headers)
        # Copies, since whoever made them may change them. A credential that was replaced will not come again.
        made_of = (request.method, request.path, dict(request.headers), dict(credential))
        self._heads = [(made_of, lines), *(head for head in self._heads if head[0][3] == credential)][:HEADS]
        return lines

    def redact(self, text: str) -> str:
        """The text without the credential, and without any value of `headers`, which may be one."""
        text = self.credential.redact(text)
        return blot(text, *self._secrets) if self._secrets else text


class Backends:
    """All backends, and which of them a model name stands for."""

    def __init__(self, settings: Settings, before: "Backends | None" = None) -> None:
        self._settings = settings
        self._backends = {
            name: _backend(name, settings, before.known(name) if before else None) for name in settings.backends
        }
        self.models = tuple(name for name in settings.models if name != "*")

    @property
    def adapters(self) -> Mapping[str, Adapter]:
        """The adapter of each backend entry."""
        return {name: backend.adapter for name, backend in self._backends.items()}

    def redact(self, text: str) -> str:
        """The text without a secret of any backend."""
        for backend in self._backends.values():
            text = backend.redact(text)
        return text

    def route(self, model: str) -> tuple[ModelSettings, Backend]:
        """The entry and backend of a model name. Raises InvalidRequest 404 `model_not_found`."""
        entry = self._settings.route(model)
        if entry is None:
            nearest = difflib.get_close_matches(model[:200], self.models, n=1, cutoff=0.3)
            advice = f" Did you mean {nearest[0]!r}?" if nearest else f" Known models: {_list(self.models)}."
            raise InvalidRequest(
                f"The model {model[:200]!r} does not exist here.{advice}",
                status=404,
                code="model_not_found",
                param="model",
            )
        return entry, self._backends[entry.backend]

    def known(self, name: str) -> Backend | None:
        """The backend of an entry."""
        return self._backends.get(name)

    async def start(self, demos: Demos) -> None:
        """Have the demo backends that the settings ask for."""
        for backend in self._backends.values():
            if backend.base_url.startswith(DEMO):
                backend.base_url = await demos.url(backend.base_url.removeprefix(DEMO))


def _backend(name: str, settings: Settings, old: Backend | None) -> Backend:
    """An entry that has not changed stays the backend it was; one that has keeps at least a token that was bought."""
    entry = settings.backends[name]
    max_event = int(settings.limits.max_event_mb * 2**20)
    if old is None:
        return Backend(name, entry, max_event)
    if (old.settings, old.max_event) == (entry, max_event):
        return old
    bought = entry.refresh is not None and old.settings.refresh == entry.refresh
    return Backend(name, entry, max_event, old.credential if bought else None)


def load_adapter(name: str, settings: BackendSettings, max_event: int) -> Adapter:
    """The adapter that an import string `module:Class` names, with the entry's own options checked.

    Raises SettingsError."""
    where = f"backends.{name}"
    module_name, _, attribute = settings.adapter.partition(":")
    if not module_name or not attribute:
        raise SettingsError(f"{where}.adapter must be written module:Class; it is {settings.adapter!r}")
    try:
        kind = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, SyntaxError) as error:
        raise SettingsError(f"{where}.adapter: {settings.adapter!r} cannot be imported: {error}") from error
    except AttributeError as error:
        raise SettingsError(f"{where}.adapter: there is no {attribute!r} in {module_name!r}") from error
    if not hasattr(kind, "Options"):
        raise SettingsError(f"{where}.adapter: {settings.adapter!r} is no adapter")
    _check_address(where, settings.base_url)
    _check_headers(where, settings.headers)
    return cast(Adapter, kind(check_options(settings.options, kind.Options, where), max_event))


def _check_address(where: str, base_url: str) -> None:
    if base_url.startswith(DEMO):
        if base_url.removeprefix(DEMO) not in DEMOS:
            raise SettingsError(f"{where}.base_url: the demo backends are 'demo:agent', 'demo:chat' and 'demo:text'")
        return
    try:
        parts = urlsplit(base_url)
        if "@" in parts.netloc:
            raise ValueError("must hold no credential; name its variable in api_key_env")
        if parts.query or parts.fragment:
            raise ValueError("must hold neither a query nor a fragment")
        read_url(base_url)
    except ValueError as error:
        raise SettingsError(f"{where}.base_url {error}") from error


def _check_headers(where: str, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        try:
            check_header(name, value)
        except ValueError as error:
            raise SettingsError(f"{where}.headers: {error}") from error


def _list(names: Iterable[str]) -> str:
    return ", ".join(list(names)[:20]) or "none"
