"""Sends a batch of spans to the collector, and reads what its response says of them.

The SDK's exporter takes any session of `requests`. It ignores what a collector rejects, reads a response of any size,
takes a redirect for a success, and by default obeys the environment's proxies and password files.
"""

from typing import Any, Final

import requests
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from urllib3.exceptions import HTTPError

ANSWER_CAP: Final = 64 * 1024


class CollectorSession(requests.Session):
    """`problem` says why the last request failed; empty: it did not. `rejected` is the number of spans that the
    collector has rejected in its response."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.stream = True
        self.problem = ""
        self.rejected = 0

    def request(self, method: str, url: str | bytes, *args: Any, **options: Any) -> requests.Response:
        """Sends one request. Raises the errors of the parent class, HTTPError also for a redirect."""
        self.problem, self.rejected = "", 0
        try:
            response = super().request(method, url, *args, **options)
            with response:
                body = response.raw.read(ANSWER_CAP, decode_content=False)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            self.problem = type(error).__name__
            raise
        if not 200 <= response.status_code < 300:
            self.problem = f"status {response.status_code}"
        if 300 <= response.status_code < 400:
            raise requests.HTTPError(self.problem)
        self.rejected = decode_rejected(body)
        return response


def decode_rejected(body: bytes) -> int:
    """Returns the number of spans that the collector rejected, as its response states."""
    try:
        return max(0, ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans)
    except DecodeError:
        return 0
