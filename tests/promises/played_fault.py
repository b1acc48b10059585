"""One fault of a backend as it was played, and what a client, the counters and the log must show of it."""

import json
import re
from typing import Final

import httpx
import pytest

from gateway.testing.gateway import RunningGateway
from tests.promises.table import Promise
from tests.promises.wire_gateway import finishes, frames, text_of
from tests.server.samples import value_of

LINE: Final = re.compile(
    r"upstream_failure request_id=(\S+) backend=(\S+) model=\S+ phase=(\S+) code=(\S+) upstream_status=\S+ "
    r"attempt=(\d) ms=[\d.]+ "
)


class Played:
    """One fault, to one kind of client, at one time."""

    def __init__(self, row: Promise, fault: str, streams: bool, begun: bool) -> None:
        self.row = row
        self.fault = fault
        self.streams = streams
        self.begun = begun
        self.model = f"{'stream' if streams else 'whole'}-{'late' if begun else 'early'}-{fault.replace(' ', '_')}"
        self.code = row.late if begun and row.late else row.early.code
        self.phase = "stream" if begun else row.phase

    def check(self, response: httpx.Response) -> None:
        if self.streams and (self.begun or (self.row.phase == "stream" and response.status_code == 200)):
            self._check_frame(response)
        else:
            self._check_status(response)
        assert response.headers["x-request-id"]
        assert "nginx" not in response.text

    def _check_frame(self, response: httpx.Response) -> None:
        assert response.status_code == 200
        *data, last = frames(response.text)
        error = json.loads(last)["error"]
        # Only a connection that is not trusted is no failure that may pass.
        passes = self.row.early.type == "upstream_error" and self.code != "upstream_tls_error"
        assert (error["type"], error["code"]) == ("server_error" if passes else self.row.early.type, self.code)
        assert error["message"].startswith("Provider returned error") is (self.code != "upstream_tls_error")
        assert set(error) >= {"message", "type", "param", "code"}
        assert text_of(data).lstrip().startswith("one" if self.begun else "two")
        assert finishes(data) == []
        assert response.text.count('"error"') == 1
        assert response.text.endswith("\n\n") and "[DONE]" not in response.text

    def _check_status(self, response: httpx.Response) -> None:
        told = self.row.early
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert (response.status_code, error["type"], error["code"]) == (told.status, told.type, self.code)
        assert set(error) >= {"message", "type", "param", "code"}
        shown = {name: response.headers.get(name, "") for name in ("retry-after", "x-should-retry")}
        assert shown == {"retry-after": "", "x-should-retry": "", **told.headers}


def check_counters(gateway: RunningGateway, played: Played) -> None:
    """The fault is counted once."""
    metrics = gateway.app.gateway_state.metrics
    assert value_of(metrics, "gateway_upstream_errors_total", played.model, played.code, played.phase) == 1
    early = not played.begun
    for name in played.row.counted:
        assert value_of(metrics, name, played.model) == (
            0 if name == "gateway_ttfb_timeouts_total" and not early else 1
        )


def check_log(caplog: pytest.LogCaptureFixture, played: Played, request_id: str) -> None:
    """The fault is one line."""
    lines = [
        (record.levelname, *found.groups())
        for record in caplog.records
        if (found := LINE.match(record.getMessage())) and found[2] == played.model
    ]
    told = (played.row.level.upper(), request_id, played.model, played.phase, played.code, str(played.row.attempts))
    assert lines == [told]
