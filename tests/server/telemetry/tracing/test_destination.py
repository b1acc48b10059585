"""Tests the precedence of settings and standard variables for the destination of spans."""

import pytest

from gateway.core.errors import SettingsError
from gateway.server.telemetry.tracing.destination import destination_for
from gateway.settings import TracingSettings

NOTHING = TracingSettings()
ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("settings", "environ", "url"),
    [
        (NOTHING, {}, "http://127.0.0.1:4318/v1/traces"),
        (NOTHING, {ALL: "https://c:1/base/"}, "https://c:1/base/v1/traces"),
        (NOTHING, {ALL: "http://c", TRACES: "http://d/x"}, "http://d/x"),
        (TracingSettings("http://e/x"), {ALL: "http://c", TRACES: "http://d/x"}, "http://e/x"),
        (NOTHING, {ALL: " "}, "http://127.0.0.1:4318/v1/traces"),
    ],
)
def test_the_address(settings: TracingSettings, environ: dict[str, str], url: str) -> None:
    assert destination_for(settings, environ).url == url


@pytest.mark.parametrize(
    ("settings", "environ", "name"),
    [
        (NOTHING, {}, "dragoman"),
        (NOTHING, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,x=b%20c"}, "a"),
        (NOTHING, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b"}, "b"),
        (TracingSettings(service_name="c"), {"OTEL_SERVICE_NAME": "b"}, "c"),
    ],
)
def test_the_name(settings: TracingSettings, environ: dict[str, str], name: str) -> None:
    assert destination_for(settings, environ).resource["service.name"] == name


def test_attributes_and_headers_of_the_environment() -> None:
    environ = {
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=a%2Cb, broken ,x=1=2",
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20a-secret-key, x-team = mine",
    }
    destination = destination_for(NOTHING, environ)
    assert destination.resource["deployment.environment.name"] == "a,b"
    assert destination.resource["x"] == "1=2" and "broken" not in destination.resource
    assert destination.headers == {"authorization": "Bearer a-secret-key", "x-team": "mine"}
    assert "a-secret-key" not in repr(destination)
    assert destination.redact("say a-secret-key aloud") == "say [redacted] aloud"
    environ["OTEL_EXPORTER_OTLP_TRACES_HEADERS"] = "a=b"
    assert destination_for(NOTHING, environ).headers == {"a": "b"}


def test_every_process_is_told_apart() -> None:
    one, other = destination_for(NOTHING, {}), destination_for(NOTHING, {})
    assert one.resource["service.instance.id"] != other.resource["service.instance.id"]


@pytest.mark.parametrize(
    "url", ["c:4317", "ftp://c", "http://", "http://c:x", "http://c:0", "http://c\u00e4", "http://c\n"]
)
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^tracing\.endpoint must be"):
        destination_for(TracingSettings(url), {})
    if url.strip() == url:
        with pytest.raises(SettingsError, match=f"^{TRACES} must be"):
            destination_for(NOTHING, {TRACES: url})


def test_an_address_for_another_protocol_is_not_asked() -> None:
    environ = {ALL: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', but"):
        destination_for(NOTHING, environ)
    assert destination_for(TracingSettings("http://c:4318"), environ).url == "http://c:4318"
    environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    assert destination_for(NOTHING, environ).url == "http://c:4317/v1/traces"


def test_a_key_in_the_address_or_half_a_header_is_refused() -> None:
    with pytest.raises(SettingsError, match="must not contain a credential"):
        destination_for(TracingSettings("http://a:b@c/v1/traces"), {})
    for header in ("a=b%0d%0ac: d", "a%20b=c", "a=%e4"):
        with pytest.raises(SettingsError, match="contains an invalid header"):
            destination_for(NOTHING, {"OTEL_EXPORTER_OTLP_HEADERS": header})
