"""Defines what a server answers to a call. The standard library suffices: programs of other environments import it."""

import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ScriptedAnswer:
    """The messages of a response, then its gRPC status with its text and trailers.

    `held`: behind its messages nothing more comes until the client leaves.
    """

    messages: tuple[bytes, ...] = ()
    status: int = 0
    text: str = ""
    trailers: Mapping[str, str] = field(default_factory=dict)
    held: bool = False


def write_answers(path: Path, answers: Mapping[str, ScriptedAnswer]) -> None:
    """Write the answers for a program."""
    described = {
        name: {**vars(answer), "messages": [base64.b64encode(message).decode() for message in answer.messages]}
        for name, answer in answers.items()
    }
    path.write_text(json.dumps(described), encoding="utf-8")


def read_answers(path: Path) -> dict[str, ScriptedAnswer]:
    """Read the answers as `write_answers` has written them."""
    described = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: ScriptedAnswer(**{**fields, "messages": tuple(map(base64.b64decode, fields["messages"]))})
        for name, fields in described.items()
    }


def report(event: str, **fields: object) -> None:
    """Tell the test what happens here, as a line of JSON."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def report_request(answer: str, headers: Mapping[str, str], message: bytes) -> None:
    """Tell the test what a call has sent."""
    report("request", answer=answer, headers=dict(headers), message=base64.b64encode(message).decode())
