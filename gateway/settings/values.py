"""Defines the whole of settings.json as frozen values, with the defaults of every key."""

from collections.abc import Container, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from gateway.core.model_facts import UNKNOWN, ModelFacts
from gateway.core.notices import Level
from gateway.core.policy import Policy
from gateway.core.provider_state import state_label
from gateway.core.requirements import Requirement
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.settings.check import ADDRESS, SCHEME, VARIABLE
from gateway.settings.model_names import ModelNames

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
# Stores count in numbers that are exact up to 2**53.
Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
Money: TypeAlias = Annotated[float, msgspec.Meta(ge=0.000001, le=1_000_000_000)]
Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Limit: TypeAlias = int | msgspec.UnsetType | None
VariableName: TypeAlias = Annotated[str, msgspec.Meta(pattern=VARIABLE)]
Port: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65535)]

# Marks a setting that is bound, opened or passed on at the start: a reload does not change it.
RESTART: Final = msgspec.Meta(extra={"reload": "restart"})


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The server's address, and how it serves clients. Times in seconds.

    `api_keys_env` names the variable that holds the clients' keys, separated by commas, `api_keys_file` a file with
    `name:key` lines. Without any key the gateway is open, and binds to loopback addresses only. `allowed_hosts` are the
    names, besides localhost, by which browsers and clients may address a gateway bound to loopback (a foreign name
    there is DNS rebinding). `max_connections` null: as many as the file descriptor limit allows. Each worker serves
    `max_requests` at the same time and refuses more at once with a 503. `reload` reads the settings again when
    they change. `claude_ids`: in the list of the Messages API each id begins like one of Claude, which is what Claude
    Code shows of a list.
    """

    host: Annotated[str, RESTART] = "127.0.0.1"
    port: Annotated[Port, RESTART] = 8000
    workers: Annotated[int, msgspec.Meta(ge=1, le=256), RESTART] = 1
    reload: Annotated[bool, RESTART] = True
    api_keys_env: VariableName | None = "DRAGOMAN_API_KEYS"
    api_keys_file: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_connections: Annotated[Count | None, RESTART] = None
    max_requests: Count | None = 1000
    max_body_mb: Positive = 32
    header_timeout_s: Annotated[Positive, RESTART] = 10
    first_event_gate_s: Positive = 15
    sse_ping_s: Positive = 15
    write_timeout_s: Positive = 60
    graceful_shutdown_timeout_s: Annotated[NotNegative, RESTART] = 10
    claude_ids: bool = False


class CompressSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and when the oldest part of a long history is replaced by a summary.

    `trigger`, `target`, `tail` and `least_gain` are shares of the model's `context_length`: a request above `trigger`
    is worth a summary, which leaves about `target`, keeps at least `tail` of the newest turns, and must save
    `least_gain`. `model` is the model that writes summaries; null: that of the conversation. `sightings` is how many
    requests must carry the same old turns before they are summarised. `max_running` limits the summaries that one
    worker writes at the same time, `tokens_per_day` what those of one client key may cost, and `deadline_s` the time
    of one. `json_schema`: the writing model's backend is asked to enforce the form of a summary.
    """

    enabled: bool = False
    model: str | None = None
    trigger: Share = 0.6
    target: Share = 0.3
    tail: Share = 0.15
    least_gain: Share = 0.15
    sightings: Count = 2
    max_running: Count = 2
    tokens_per_day: Count | None = 2_000_000
    deadline_s: Positive = 120
    json_schema: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for shares that leave nothing to summarise."""
        if not self.tail < self.target < self.trigger:
            raise ValueError(
                f"tail, target and trigger must grow in this order; they are {self.tail}, {self.target}, {self.trigger}"
            )


class VisionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model that describes pictures for the models whose `images` is `describe`; null: there is none."""

    model: str | None = None


class KeyCompressSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether histories of one client key are summarised, where their model allows it, and what their summaries may
    cost in tokens a day (null: `compress.tokens_per_day`)."""

    enabled: bool = True
    tokens_per_day: Count | None = None


class KeeperSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the state that a provider wants back of its answers is kept for clients that drop it.

    A state lives for `ttl_s` seconds after its last use. `max_mb` bounds what a memory keeps of them.
    """

    enabled: bool = False
    ttl_s: Positive = 86_400
    max_mb: Annotated[Positive, RESTART] = 64


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one client key may spend in a minute, a day and a month (UTC); null: no limit. Tokens are those of prompts
    and answers together; money is in the currency of the models' prices, to the millionth of its unit."""

    tokens_per_minute: Tokens | None = None
    tokens_per_day: Tokens | None = None
    tokens_per_month: Tokens | None = None
    money_per_day: Money | None = None
    money_per_month: Money | None = None

    @property
    def counts_money(self) -> bool:
        """Whether money is limited, so that every model needs a price."""
        return self.money_per_day is not None or self.money_per_month is not None


class KeySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The permissions and limits of one client key; null: no limit. `concurrent_streams` counts all running requests.

    `state`: what may be remembered of its requests; `off`: nothing, `memory`: in the memory of a worker only, `shared`:
    in the store of the settings. `keeper` false: of that, no state of its answers. `require`: what no request may lose
    (docs/requirements.md).
    """

    models: tuple[str, ...] | None = None
    requests_per_minute: Count | None = None
    concurrent_streams: Count | None = None
    budget: BudgetSettings = BudgetSettings()
    state: Literal["off", "memory", "shared"] = "shared"
    compress: KeyCompressSettings = KeyCompressSettings()
    keeper: bool = True
    require: tuple[Requirement, ...] = ()


class StateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the gateway keeps what it remembers (docs/state.md).

    `store`: `memory`, the memory of each worker; `sqlite:PATH`, a file that all processes of a machine share; the URL
    of a Valkey or Redis server, `valkey://`, `redis://`, or with TLS `valkeys://`, `rediss://`, that several machines
    share. Null is `memory`. `password_env` names the variable with the server's password; null: the one in the URL.
    `key_env` names the variable with the keys that encrypt contents, separated by commas: the first one writes, all of
    them read. `folder` is the folder of this machine with the key that is made where there is none; null: the one of
    the environment. `encrypt` null: a server requires a key, a file is encrypted when there is one; false: never.
    `prefix_mb` bounds what each worker keeps of the beginnings of conversations; 0: nothing.
    `deadline_ms` is how long a request waits for all that it reads from the store. `max_mb` bounds what the memory of
    each worker or the file keeps; a server has its own limit.
    """

    store: Annotated[str | None, RESTART] = None
    password_env: Annotated[VariableName | None, RESTART] = None
    key_env: Annotated[VariableName, RESTART] = "DRAGOMAN_STATE_KEY"
    folder: Annotated[str | None, RESTART] = None
    encrypt: Annotated[bool | None, RESTART] = None
    deadline_ms: Positive = 20
    max_mb: Annotated[Positive, RESTART] = 256
    prefix_mb: NotNegative = 64


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits on a backend's response: the size of one event and of the whole response."""

    max_event_mb: Positive = 4
    max_response_mb: Annotated[Positive, RESTART] = 64


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The log file besides stderr, and the lowest level. `file` null: stderr only.

    `bodies` adds the request bodies to the DEBUG lines: it stores conversations on disk, so it is off by default.
    """

    level: Level = "info"
    file: Annotated[str | None, RESTART] = "logs/gateway.log"
    max_mb: Annotated[Positive, RESTART] = 16
    backups: Annotated[int, msgspec.Meta(ge=0), RESTART] = 3
    bodies: bool = False


class InspectorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the gateway keeps its latest requests in memory and shows them below /inspect (docs/recordings.md).

    `enabled` `loopback`: to everybody on this machine, where the gateway is bound to loopback, has no client keys and
    no `allowed_hosts`; `on`: to those with the admin key, which is then required. `admin_key_env` names the variable
    with that key; where it is set, it is always asked for. `contents` says of which requests the bytes are kept: of
    those that begin while somebody watches, of all, or of none. `keep` is the number of summaries, `keep_mb` the memory
    of all contents of each worker and `request_mb` that of one request. `caches` says of which requests the prompt is
    compared with the one before, as a provider's cache does: of those that begin while somebody watches or whose bytes
    are kept, of all, or of none. `reveal`: who may look may also ask for the words. `send`: who may look may also send
    a request again, which costs what it costs. `record` is a folder in which every request is saved, redacted; it
    stores conversations on disk.
    """

    enabled: Annotated[Literal["off", "loopback", "on"], RESTART] = "loopback"
    admin_key_env: Annotated[VariableName, RESTART] = "DRAGOMAN_ADMIN_KEY"
    contents: Annotated[Literal["never", "watched", "always"], RESTART] = "watched"
    keep: Annotated[Count, RESTART] = 10000
    keep_mb: Annotated[Positive, RESTART] = 64
    request_mb: Annotated[Positive, RESTART] = 4
    caches: Annotated[Literal["never", "watched", "always"], RESTART] = "watched"
    reveal: Annotated[bool, RESTART] = True
    send: Annotated[bool, RESTART] = False
    record: Annotated[str | None, RESTART] = None


class TracingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The endpoint of OpenTelemetry traces of chat requests, the service name, and the sampled share.

    Null: the standard variables (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`;
    `OTEL_SERVICE_NAME`), else a collector on this machine and `dragoman`. `sample` applies only to requests whose
    client has not decided already (W3C `traceparent`).
    """

    endpoint: Annotated[str | None, RESTART] = None
    service_name: Annotated[str | None, RESTART] = None
    sample: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1


class ResponsesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the responses of the Responses API, and Google's interactions, are stored for clients that continue them;
    a model may have its own `store`.

    A response lives for `ttl_s` seconds after it, or after the last one that continues it, is complete. `max_mb` bounds
    what each worker keeps of them in memory.
    """

    store: bool = True
    ttl_s: Positive = 86_400
    max_mb: Annotated[Positive, RESTART] = 128


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Timeouts for a backend, in seconds. `idle` counts progress of the response, not bytes. `ping`: a connection of
    HTTP/2 on which nothing has arrived for so long while a request runs is asked for a sign of life; null: never.
    Many servers end a connection that asks more often than they allow."""

    connect: Positive = 2
    first_byte: Positive = 60
    idle: Positive = 60
    total: Positive = 600
    ping: Annotated[float, msgspec.Meta(ge=30)] | None = None


class RefreshCredential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bearer token that is requested with a refresh token (RFC 6749, section 6).

    `refresh_token_env` names the variable with the first refresh token, `store` the file (mode 0600) that keeps a
    rotated one. `token_field` is the field of the token response that becomes the bearer token.
    """

    token_url: Annotated[str, msgspec.Meta(pattern=ADDRESS)]
    refresh_token_env: VariableName
    store: str | None = None
    token_field: str = "access_token"

    def __repr__(self) -> str:
        """Omits the query of the address: with some issuers it holds a key."""
        return f"RefreshCredential({self.token_url.partition('?')[0]!r}, {self.refresh_token_env!r})"


class TlsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files of TLS to one backend, all in PEM form; paths are relative to the working directory.

    `ca_file`: the certificates that are trusted in place of the system's. `cert_file`: the certificate that is shown to
    the backend, with those between it and its root, and `key_file` its private key, which has no passphrase; null: it
    is in `cert_file`.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a key without its certificate."""
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("key_file belongs to cert_file, which is missing")


class BackendSettings(msgspec.Struct, frozen=True):
    """One backend. `options` are the adapter's own keys, checked by the adapter's `Options` type at start.

    `api_key_scheme` is the authentication scheme (RFC 9110, section 11.1) before the key in its header; null: `Bearer`
    in `authorization`, none elsewhere. `Basic` (RFC 7617) encodes the key, which is `USER:PASSWORD`.
    `profile` names the provider's rules for all its models, and `max_tool_results` and `max_history_messages` are their
    limits. `max_concurrent` is the limit of concurrent requests to it (by each worker).
    `routes` are requests that are passed to it as they are, by method and path, each with the path below `base_url`
    (docs/passed-routes.md), and `routes_without_model` those of them that it gets where the request names no model.
    """

    adapter: str
    base_url: str
    profile: str | None = None
    max_tool_results: Limit = msgspec.UNSET
    max_history_messages: Limit = msgspec.UNSET
    api_key_env: VariableName | None = None
    api_key_header: str = "authorization"
    api_key_scheme: Annotated[str, msgspec.Meta(pattern=SCHEME)] | None = None
    refresh: RefreshCredential | None = None
    headers: Mapping[str, str] = {}
    tls: TlsSettings | None = None
    timeouts: Timeouts = Timeouts()
    max_concurrent: Count | None = None
    routes: Mapping[str, str] = {}
    routes_without_model: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        """Raises ValueError for a scheme without a key: a refreshed token is always a bearer token."""
        if self.api_key_scheme is not None and (self.api_key_env is None or self.refresh is not None):
            raise ValueError("api_key_scheme belongs to api_key_env, and a token of refresh is a bearer token")

    @property
    def credential_variable(self) -> str:
        """Returns the environment variable of the credential; empty where there is none."""
        return (self.refresh.refresh_token_env if self.refresh is not None else self.api_key_env) or ""

    @property
    def state_label(self) -> str:
        """Returns the label of the opaque state that this backend makes. Entries with the same adapter, host and
        credential share one, because they are one account."""
        host = urlsplit(self.base_url).netloc or self.base_url
        return state_label(self.adapter, host, self.credential_variable)

    def __repr__(self) -> str:
        """Omits the values of headers, which may be keys."""
        return f"BackendSettings({self.adapter!r}, {self.base_url!r}, headers={sorted(self.headers)})"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens of a model cost, as the operator pays: of the prompt (`input`), of the part of it that the
    provider read from its cache (`cached_input` null: as much), and of the answer (`output`)."""

    input: NotNegative
    output: NotNegative
    cached_input: NotNegative | None = None
    currency: str = "USD"


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another model of the settings that may answer in the place of the one that a client names (docs/candidates.md).

    `weight` is its share of the conversations that it would answer as well, where the model itself has 1; null: it
    answers only where that one fails.
    """

    model: str
    weight: Positive | None = None


class ModelSettings(msgspec.Struct, frozen=True):
    """The route of a client's model name: a backend, the name there (None: unchanged) and the policy.

    `inherited` names the limits of the policy that neither the model's entry nor its backend's sets. `context_length`
    is the number of tokens that clients get on request; None: they get none. `compress` is that of the file with the
    changes of the model's entry; where it is enabled, `context_length` is set. `responses` and `keeper` likewise.
    `price` null: the inspector shows no costs. `facts` are what the lists of models tell clients of it, instead of what
    its backend says. `require`: what no request to it may lose. `candidates` answer where its own backend fails, and
    `longer` is the model for what its window is too small for.
    """

    backend: str
    name: str | None
    policy: Policy
    inherited: frozenset[str] = frozenset()
    context_length: int | None = None
    compress: CompressSettings = CompressSettings()
    responses: ResponsesSettings = ResponsesSettings()
    keeper: KeeperSettings = KeeperSettings()
    price: Price | None = None
    facts: ModelFacts = UNKNOWN
    require: tuple[Requirement, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    longer: str | None = None

    def on(self, native: bool) -> "ModelSettings":
        """Returns the entry as applied to its backend: a native one has only the limits that are set for it."""
        if not (native and self.inherited):
            return self
        policy = msgspec.structs.replace(self.policy, **dict.fromkeys(self.inherited))
        return msgspec.structs.replace(self, policy=policy, inherited=frozenset())


class Settings(msgspec.Struct, frozen=True):
    """The whole of settings.json."""

    policy: Policy = Policy()
    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings | None = None
    inspector: InspectorSettings = InspectorSettings()
    state: StateSettings = StateSettings()
    keys: Mapping[str, KeySettings] = {}
    compress: CompressSettings = CompressSettings()
    responses: ResponsesSettings = ResponsesSettings()
    keeper: KeeperSettings = KeeperSettings()
    vision: VisionSettings = VisionSettings()
    profiles: Mapping[str, Profile] = msgspec.field(default_factory=lambda: PROFILES)
    backends: Mapping[str, BackendSettings] = {}
    models: Mapping[str, ModelSettings] = {}

    def route(self, model: str) -> ModelSettings | None:
        """Returns the entry for a model name, else that of the longest pattern for it, or None."""
        names = ModelNames(self.models)
        return names.find(names.known_name(model))

    def on(self, native: Container[str]) -> "Settings":
        """Returns the settings with each model's entry as applied to its backend; `native` has the names of the
        backends whose adapter is native."""
        models = {name: entry.on(entry.backend in native) for name, entry in self.models.items()}
        return msgspec.structs.replace(self, models=models)
