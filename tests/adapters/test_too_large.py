"""Law of every wire: content before a too large event is returned, for any cut of the bytes."""

import pkgutil
from typing import Any

import pytest

from gateway.core.errors import BackendProtocolError
from gateway.core.events import Event
from gateway.testing.adapter_case import Case
from gateway.testing.events import fold
from gateway.testing.replay import cuttings
from tests.promises.wires import WIRES

LIMIT = 512


def _said(case: Case, cutting: list[bytes]) -> tuple[str, str | None]:
    """The text, and the code of the error behind it."""
    decoder = case.build(LIMIT).decoder(case.prepared())
    events: list[Event] = []
    try:
        for piece in cutting:
            events += decoder.feed(piece)
    except BackendProtocolError as error:
        return fold([*events, *error.take_events()]).text, error.code
    return fold(events).text, None


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_whole_comes_before_an_event_that_is_too_large(wire: str) -> None:
    options: dict[str, Any] = dict(WIRES[wire].entry)  # Any: options are not typed before they are checked
    spoken = WIRES[wire].spoken
    case = Case(wire, pkgutil.resolve_name(options.pop("adapter")), b"", options=options)
    endless = spoken.begin + spoken.text + spoken.opening + b"A" * 2 * LIMIT
    for cutting in cuttings(endless):
        assert _said(case, cutting) == ("one two", "upstream_event_too_large")
