"""Resolves the collector's URL, headers and resource from settings and the standard OTEL_ variables."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import msgspec

from gateway.core.errors import SettingsError
from gateway.server.upstream.credentials import redact_secrets
from gateway.server.upstream.transport import gateway_version
from gateway.settings import TracingSettings

DEFAULT: Final = "http://127.0.0.1:4318/v1/traces"
NAME: Final = "dragoman"
PROTOCOL: Final = "http/protobuf"


class Destination(msgspec.Struct, frozen=True):
    """A collector. `headers` may contain a key; `resource` are the attributes of this process."""

    url: str
    headers: Mapping[str, str]
    resource: Mapping[str, str]

    def __repr__(self) -> str:
        """Omits the values of headers."""
        return f"Destination({self.url!r}, headers={sorted(self.headers)})"

    def redact(self, text: str) -> str:
        """Returns the text without the collector's key."""
        for value in self.headers.values():
            text = redact_secrets(text, value, value.partition(" ")[2])
        return text


def destination_for(settings: TracingSettings, environ: Mapping[str, str]) -> Destination:
    """Returns the collector to use. Settings come first, then the variable for traces, then the general one. Raises
    SettingsError."""
    given = environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    headers = {name.lower(): value for name, value in _pairs(given)}
    if any(not _is_token(name) or not _is_value(value) for name, value in headers.items()):
        raise SettingsError("OTEL_EXPORTER_OTLP_HEADERS contains an invalid header")
    return Destination(_url(settings, environ), headers, _resource(settings, environ))


def _url(settings: TracingSettings, environ: Mapping[str, str]) -> str:
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    for where, url in (
        ("tracing.endpoint", settings.endpoint or ""),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()),
        # Only this variable is a base URL, to which the path of the signal is appended (OTLP exporter specification).
        ("OTEL_EXPORTER_OTLP_ENDPOINT", f"{base.rstrip('/')}/v1/traces" if base else ""),
    ):
        if url:
            _check(where, url)
            if where != "tracing.endpoint":
                _check_protocol(environ)
            return url
    return DEFAULT


def _check(where: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not (url.isascii() and url.isprintable()):
        raise SettingsError(f"{where} must be the http:// or https:// address of a collector")
    if "@" in parts.netloc:
        raise SettingsError(f"{where} must not contain a credential; use OTEL_EXPORTER_OTLP_HEADERS")


def _check_protocol(environ: Mapping[str, str]) -> None:
    for variable in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if protocol := environ.get(variable, "").strip():
            if protocol != PROTOCOL:
                raise SettingsError(
                    f"{variable} is {protocol!r}, but traces are sent as {PROTOCOL}: set tracing.endpoint"
                )
            return


def _resource(settings: TracingSettings, environ: Mapping[str, str]) -> dict[str, str]:
    given = dict(_pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", "")))
    name = settings.service_name or environ.get("OTEL_SERVICE_NAME") or given.get("service.name") or NAME
    own = {"service.version": gateway_version(), "service.instance.id": str(uuid4()), "telemetry.sdk.name": NAME}
    return {"telemetry.sdk.language": "python", **own, **given, "service.name": name}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Parses `name=value,name=value`, percent-encoded."""
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            yield unquote(name.strip()), unquote(value.strip())


def _is_token(name: str) -> bool:
    return name.isascii() and all(char.isalnum() or char in "!#$%&'*+-.^_`|~" for char in name)


def _is_value(value: str) -> bool:
    return value.isascii() and value.isprintable()
