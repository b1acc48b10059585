"""The exchanges in the laws of requests: any adapter and policy, any bytes of a backend, and what a client reads."""

from collections.abc import Mapping
from typing import Final

import msgspec
from hypothesis import note
from hypothesis import strategies as st

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.text.backend import TextAdapter, TextOptions
from adapters.text.backend.presets import PRESETS
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Adapter
from gateway.core.errors import BackendError, InvalidRequest
from gateway.core.events import Event
from gateway.core.policy import FlattenOptions, LoopGuard, Policy, RecentToolResults
from gateway.core.provider_state import state_label
from gateway.diagnostics.explain import explain
from gateway.dialect import ClientRequest, Dialect
from gateway.exchange import Exchange
from gateway.history.transcript.styles import STYLES
from gateway.providers.registry import PROFILES
from gateway.testing.dialect_case import HEAD, DialectCase
from gateway.tool_calls.parsers.formats import FORMATS
from tests.fuzz.strategies import TEXTS, WILD, encoded

LIMIT: Final = 1 << 20

ADAPTERS: Final[Mapping[str, Adapter]] = {
    "openai chat": OpenAIChatAdapter(OpenAIChatOptions(), LIMIT),
    "warp": WarpAdapter(WarpOptions(), LIMIT),
    "warp, structured": WarpAdapter(WarpOptions(encoding="structured", accept_hex=True), LIMIT),
    "warp, loose": WarpAdapter(
        WarpOptions(strict_frames=False, rollback="stream", native_tools="expose", empty_answer="error"), LIMIT
    ),
    **{f"text: {wire}": TextAdapter(TextOptions(wire=wire), LIMIT) for wire in sorted(PRESETS)},
    **{f"text: {name}": TextAdapter(TextOptions(wire="plain", tool_format=name), LIMIT) for name in sorted(FORMATS)},
}
POLICIES: Final = st.builds(
    Policy,
    max_tool_results=st.none() | st.integers(0, 3),
    max_history_messages=st.none() | st.integers(0, 4),
    max_tool_result_chars=st.none() | st.integers(0, 20),
    trim_step=st.integers(1, 3),
    tool_result_overflow=st.sampled_from(["elide", "drop"]),
    repair=st.sampled_from(["repair", "repair", "strict", "off"]),
    orphaned_results=st.sampled_from(["note", "drop"]),
    flatten=st.builds(FlattenOptions, style=st.sampled_from(sorted(STYLES))),
    wrapper_failure=st.sampled_from(["error", "pass"]),
    images=st.sampled_from(["refuse", "placeholder"]),
    profile=st.sampled_from(list(PROFILES.values())),
    recent_tool_results=st.builds(RecentToolResults, enabled=st.booleans(), redact=st.sampled_from([(), ("a+",)])),
    loop_guard=st.builds(LoopGuard, repeats=st.integers(0, 2), action=st.sampled_from(["notice", "nudge", "no_tools"])),
)
SAID: Final = (
    TEXTS | st.sampled_from(["<tool_call>", '{"name": "f", "arguments": {', "}}", "User: ", "Action: f\n"]) | WILD
)
CHOICES: Final = st.lists(
    st.fixed_dictionaries(
        {}, optional={"text": SAID, "finish_reason": SAID, "delta": st.fixed_dictionaries({"content": SAID})}
    ),
    max_size=2,
)
# What backends write, more or less.
CHUNKS: Final = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            ("content", "response", "token", "generated_text", "text", "error", "usage", "stop_type"), SAID
        ),
        **dict.fromkeys(("stop", "done"), st.booleans() | WILD),
        "message": st.fixed_dictionaries({"content": SAID}) | WILD,
        "choices": CHOICES | WILD,
    },
).map(encoded)
WIRES: Final = st.binary(max_size=80) | st.lists(
    st.sampled_from([b"data: ", b"\n\n", b"\n", b"[DONE]", b"event: x", b"CgA=", b"EgA=", b"GgA="])
    | CHUNKS.map(lambda chunk: b"data: %b\n\n" % chunk)
    | CHUNKS.map(lambda chunk: b"%b\n" % chunk)
    | st.binary(max_size=20),
    max_size=12,
).map(b"".join)


# That of the backend that answers.
LABEL: Final = state_label("adapter", "host", "KEY")
# State of it, of another backend, of an unknown one, and none.
STATES: Final = st.sampled_from([f"{LABEL}s", f"{state_label('adapter', 'host', 'OTHER_KEY')}s", "s", LABEL, ""])


def check_exchanges(
    adapters: Mapping[str, Adapter],
    dialect: Dialect,
    case: DialectCase,
    request: ClientRequest,
    policy: Policy,
    wire: bytes,
) -> None:
    """Answer a request through each adapter, whose backend sends `wire`: a client of the dialect reads an answer or an
    error. It takes less time than drawing the request, so each request goes through all adapters."""
    assert msgspec.json.encode(explain(request.conversation, policy, dialect=dialect))
    for name, adapter in adapters.items():
        note(name)
        assert msgspec.json.encode(explain(request.conversation, policy, adapter, "backend", dialect))
        try:
            exchange = Exchange(adapter, request.conversation, policy, label=LABEL)
        except InvalidRequest as error:
            assert 400 <= error.status < 500
            assert dialect.encode_error(error).body
        else:
            _check_answer(exchange, dialect, case, request, wire)


def _check_answer(exchange: Exchange, dialect: Dialect, case: DialectCase, request: ClientRequest, wire: bytes) -> None:
    encoder = dialect.stream_encoder(request, HEAD)
    events: list[Event] = []
    data = b""
    try:
        for events_now in (exchange.feed(wire), exchange.close()):
            events += events_now
            data += encoder.feed(events_now)
    except BackendError as error:
        failed = case.read_stream(data + encoder.feed(error.take_events()) + encoder.fail(error))
        assert failed.finish is None and failed.error is not None
        return
    streamed = case.read_stream(data + encoder.close())
    whole = case.read_whole(dialect.encode_answer(request, HEAD, events))
    assert (streamed.text, streamed.calls, streamed.finish) == (whole.text, whole.calls, whole.finish)
    assert streamed.finish is not None
