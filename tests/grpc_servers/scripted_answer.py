"""Defines what a server answers to a call. The standard library suffices: programs of other environments import it."""

import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ScriptedAnswer:
    """The messages of a response, then its gRPC status with its text, a detail (a google.protobuf.Any) and trailers.

    `held`: behind its messages nothing more comes until the client leaves. `compressed`: the messages of a stream are
    compressed, whatever the client accepts; only the server of grpcio does that.
    """

    messages: tuple[bytes, ...] = ()
    status: int = 0
    text: str = ""
    detail: bytes = b""
    trailers: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    compressed: bool = False

    @property
    def status_details(self) -> bytes:
        """Return the value of `grpc-status-details-bin`: a google.rpc.Status whose field 3 is the detail."""
        return bytes([3 << 3 | 2, len(self.detail)]) + self.detail if self.detail else b""


def write_answers(path: Path, answers: Mapping[str, ScriptedAnswer]) -> None:
    """Write the answers for a program."""
    described = {name: vars(answer) for name, answer in answers.items()}
    path.write_text(json.dumps(described, default=lambda data: base64.b64encode(data).decode()), encoding="utf-8")


def read_answers(path: Path) -> dict[str, ScriptedAnswer]:
    """Read the answers as `write_answers` has written them."""
    described = json.loads(path.read_text(encoding="utf-8"))
    for fields in described.values():
        fields["messages"] = tuple(map(base64.b64decode, fields["messages"]))
        fields["detail"] = base64.b64decode(fields["detail"])
    return {name: ScriptedAnswer(**fields) for name, fields in described.items()}


def report(event: str, **fields: object) -> None:
    """Tell the test what happens here, as a line of JSON."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def report_request(answer: str, headers: Mapping[str, str], message: bytes, timeout_s: float | None) -> None:
    """Tell the test what a call has sent, and how long its client waits; None: for ever."""
    encoded = base64.b64encode(message).decode()
    report("request", answer=answer, headers=dict(headers), message=encoded, timeout_s=timeout_s)
