"""The answers that every server plays over every carrier, and what a client of the gateway receives for each."""

from collections.abc import Mapping
from typing import Final

import msgspec
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration

from adapters.proto.status_details_pb2 import RetryInfo
from tests.adapters.proto.backend.services import TALK, answer
from tests.grpc_servers.scripted_answer import ScriptedAnswer

STREAM: Final = "acme.talk.v1.Talk/Speak"
UNARY: Final = "acme.talk.v1.Talk/SpeakOnce"
METHODS: Final = ("/" + STREAM, "/" + UNARY)
SAID: Final = "Good morning, 日本."
# Larger than any window or buffer on the way, and less than what the gateway takes by default.
LONG: Final = "Long. " * 500_000


class Case(msgspec.Struct, frozen=True):
    """An answer, and the text or the status and code that the client receives. `words` are part of the error."""

    answer: ScriptedAnswer
    method: str = STREAM
    text: str = ""
    status: int = 200
    code: str = ""
    words: str = ""


_DONE: Final = answer("talk", {"soFar": SAID, "ending": "ENDING_DONE"})
_LONG: Final = answer("talk", {"soFar": LONG, "ending": "ENDING_DONE"})
_MANY: Final = [answer("talk", {"soFar": "x" * length}) for length in range(1, 400)]
_WORDS: Final = "not now, 日本: 100%"
# The status and code for each status of gRPC, and whether the client may read the backend's words.
_STATUSES: Final[Mapping[int, tuple[int, str, bool]]] = {
    1: (502, "upstream_error", False),
    2: (502, "upstream_error", False),
    3: (400, "invalid_value", True),
    4: (504, "upstream_timeout", False),
    5: (404, "model_not_found", True),
    6: (409, "conflict", True),
    7: (502, "upstream_auth_error", False),
    8: (429, "rate_limit_exceeded", True),
    9: (400, "invalid_value", True),
    10: (409, "conflict", True),
    11: (400, "invalid_value", True),
    12: (502, "upstream_error", False),
    13: (502, "upstream_error", False),
    14: (503, "upstream_overloaded", False),
    15: (502, "upstream_invalid_response", False),
    16: (502, "upstream_auth_error", False),
}


def _refused(number: int, method: str) -> Case:
    status, code, quoted = _STATUSES[number]
    refusal = ScriptedAnswer(status=number, text=_WORDS)
    return Case(refusal, method, status=status, code=code, words=_WORDS if quoted else "")


CASES: Final[Mapping[str, Case]] = {
    "whole": Case(ScriptedAnswer(tuple(TALK)), text=SAID),
    "once": Case(ScriptedAnswer((_DONE,)), UNARY, text=SAID),
    "long": Case(ScriptedAnswer((_LONG,)), text=LONG),
    "long-once": Case(ScriptedAnswer((_LONG,)), UNARY, text=LONG),
    "many": Case(
        ScriptedAnswer((*_MANY, answer("talk", {"soFar": "x" * 400, "ending": "ENDING_DONE"}))), text="x" * 400
    ),
    "trailers": Case(ScriptedAnswer((_DONE,), trailers={"acme-cost": "7"}), text=SAID),
    "unfinished": Case(ScriptedAnswer(tuple(TALK[:2])), status=502, code="upstream_stream_truncated"),
    "empty": Case(ScriptedAnswer(), status=502, code="upstream_invalid_response"),
    "interrupted": Case(ScriptedAnswer(tuple(TALK[:2]), 14, _WORDS), status=503, code="upstream_overloaded"),
    "late-fault": Case(ScriptedAnswer(tuple(TALK), 13, _WORDS), status=502, code="upstream_error"),
    **{f"stream-{number}": _refused(number, STREAM) for number in _STATUSES},
    **{f"once-{number}": _refused(number, UNARY) for number in _STATUSES},
}


HELD: Final[Mapping[str, ScriptedAnswer]] = {
    "held": ScriptedAnswer(tuple(TALK[:1]), held=True),
    "silent": ScriptedAnswer(held=True),
}
# The client hears after how long it may ask again.
PATIENCE_S: Final = 7
DELAYED: Final = "delayed"
COMPRESSED: Final = "compressed"
_DELAY: Final = AnyMessage(
    type_url="type.googleapis.com/google.rpc.RetryInfo",
    value=RetryInfo(retry_delay=Duration(seconds=PATIENCE_S)).SerializeToString(),
)
ANSWERS: Final[Mapping[str, ScriptedAnswer]] = {
    **{name: case.answer for name, case in CASES.items()},
    **HELD,
    COMPRESSED: ScriptedAnswer((_LONG,), compressed=True),
    DELAYED: ScriptedAnswer(status=8, text=_WORDS, detail=_DELAY.SerializeToString()),
}
