"""The whole of settings.json as frozen values, with the defaults of every key."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

from gateway.notices import Level
from gateway.policy import Policy
from gateway.profiles import PROFILES, Profile

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Port: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where and how clients are served. Times in seconds.

    `api_keys_env` names the variable that holds the clients' keys, separated by commas, `api_keys_file` a file with
    `name:key` lines. Without any key the gateway is open, and binds to loopback addresses only. `allowed_hosts` are
    the names, besides localhost, under which browsers and clients may address a gateway bound to loopback (a foreign
    name there is DNS rebinding).
    `max_connections` null: as many as the file descriptor limit allows. `max_requests` are served at once by each
    worker; more are refused at once with a 503. `store_file` is where the use of API keys is counted for all workers;
    null: when there are several, in a file that goes with them. `reload` reads the settings again when they change.
    """

    host: str = "127.0.0.1"
    port: Port = 8000
    workers: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    store_file: str | None = None
    reload: bool = True
    api_keys_env: str | None = "DRAGOMAN_API_KEYS"
    api_keys_file: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_connections: Count | None = None
    max_requests: Count | None = 1000
    max_body_mb: Positive = 32
    head_timeout_s: Positive = 10
    first_event_gate_s: Positive = 15
    keep_alive_s: Positive = 15
    write_timeout_s: Positive = 60
    drain_s: NotNegative = 10


class KeySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the holder of one client key may do; null: anything. `concurrent_streams` counts all running requests."""

    models: tuple[str, ...] | None = None
    requests_per_minute: Count | None = None
    concurrent_streams: Count | None = None


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a backend may send: one event, one whole response."""

    max_event_mb: Positive = 4
    max_response_mb: Positive = 64


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the log goes besides stderr, and from which level on. `file` null: stderr only.

    `bodies` adds what clients ask to the DEBUG lines: conversations on disk, so it is never on by itself.
    """

    level: Level = "info"
    file: str | None = "logs/gateway.log"
    max_mb: Positive = 16
    backups: Annotated[int, msgspec.Meta(ge=0)] = 3
    bodies: bool = False


class TracingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where OpenTelemetry traces of chat requests go, under which name, and what share of them.

    Null: what the standard variables say (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`;
    `OTEL_SERVICE_NAME`), else a collector on this machine and `dragoman`. `sample` is asked only for requests whose
    client has not decided already (W3C `traceparent`).
    """

    endpoint: str | None = None
    service_name: str | None = None
    sample: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Deadlines towards a backend, in seconds. `idle` counts progress of the answer, not bytes."""

    connect: Positive = 2
    first_byte: Positive = 60
    idle: Positive = 60
    total: Positive = 600


class RefreshCredential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bearer token that is bought with a refresh token (RFC 6749, section 6).

    `refresh_token_env` names the variable with the first refresh token, `store` the file (mode 0600) that keeps a
    rotated one. `token_field` is the field of the reply that becomes the bearer token.
    """

    token_url: str
    refresh_token_env: str
    store: str | None = None
    token_field: str = "access_token"

    def __repr__(self) -> str:
        """Without the query of the address: with some issuers it holds a key."""
        return f"RefreshCredential({self.token_url.partition('?')[0]!r}, {self.refresh_token_env!r})"


class BackendSettings(msgspec.Struct, frozen=True):
    """One backend. `options` are the adapter's own keys, checked by the adapter's `Options` type at start.

    `profile` names the provider's rules for every model served here. `max_concurrent` is how many requests it is
    given at once (by each worker).
    """

    adapter: str
    base_url: str
    profile: str | None = None
    api_key_env: str | None = None
    api_key_header: str = "authorization"
    refresh: RefreshCredential | None = None
    headers: Mapping[str, str] = {}
    timeouts: Timeouts = Timeouts()
    max_concurrent: Count | None = None
    options: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        """Without the values of headers, which may be keys."""
        return f"BackendSettings({self.adapter!r}, {self.base_url!r}, headers={sorted(self.headers)})"


class ModelSettings(msgspec.Struct, frozen=True):
    """What a client's model name stands for: a backend, the name there (None: unchanged) and the route's policy."""

    backend: str
    name: str | None
    policy: Policy


class Settings(msgspec.Struct, frozen=True):
    """The whole of settings.json."""

    policy: Policy = Policy()
    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings | None = None
    keys: Mapping[str, KeySettings] = {}
    profiles: Mapping[str, Profile] = msgspec.field(default_factory=lambda: PROFILES)
    backends: Mapping[str, BackendSettings] = {}
    models: Mapping[str, ModelSettings] = {}

    def route(self, model: str) -> ModelSettings | None:
        """The entry for a model name, or the `"*"` entry, or None."""
        return self.models.get(model) or self.models.get("*")
