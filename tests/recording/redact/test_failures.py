"""What a backend refuses with holds no secret either: its code, the headers and trailers of gRPC and their details."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import pytest

from adapters.proto.demo.response import details, status
from adapters.proto.status_details_pb2 import BadRequest, QuotaFailure
from gateway.recording.lines import BytesLine, CloseLine, HeadLine, RedactionLevel, data_of
from gateway.recording.offline_run import run_offline
from gateway.recording.recording import Interaction, Recording, Step, write_recording
from gateway.recording.redact.redact import redact
from gateway.recording.remake import remade
from tests.recording.redact.canaries import CANARIES, core_of
from tests.recording.samples import goldens, interaction_of, names
from tests.tiers import sample

SEED: Final = b"0123456789abcdef"
LEVELS: Final[tuple[RedactionLevel, ...]] = ("none", "shape", "full")
SAID: Final = "Weltraumbahnhof"


def _answered(*steps: Step, **route: Any) -> Recording:
    """A recording of a plain request that a backend answers like this. (Any: the fields of a route.)"""
    template = interaction_of(goldens()[names().index("openai_chat_plain_answer")])
    assert template.route is not None
    inputs = Interaction(
        template.request, msgspec.structs.replace(template.route, **route), answer=template.answer, steps=steps
    )
    return Recording().with_interactions([remade(inputs, run_offline(inputs))])


def _refused_by_grpc(code: int, words: str, found: Mapping[str, bytes]) -> Recording:
    """A recording of a request that a backend refuses with a status of gRPC in its trailers, and details of it."""
    trailers = {**status(code, words), **details(code, words, found), "x-more": words}
    head = HeadLine(1, "backend", 1, 200, {"content-type": "application/grpc"})
    return _answered(head, CloseLine(1, 2, trailers), adapter="proto", options={"preset": "demo"})


def _violation(words: str) -> dict[str, bytes]:
    found = BadRequest(field_violations=[BadRequest.FieldViolation(field="turns", description=words)])
    return {"BadRequest": found.SerializeToString()}


def _trailers(recording: Recording) -> dict[str, str]:
    """The trailers, as what their values mean."""
    (interaction,) = recording.interactions()
    assert interaction.close is not None
    trailers = interaction.close.trailers
    packed = trailers["grpc-status-details-bin"]
    meant = base64.b64decode(packed + "=" * (-len(packed) % 4)).decode("latin-1")
    return {"grpc-message": unquote(trailers["grpc-message"]), "details": meant, "x-more": trailers["x-more"]}


@sample()
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", CANARIES)
def test_no_secret_is_left_in_the_trailers_of_grpc(kind: str, level: RedactionLevel) -> None:
    core = core_of(CANARIES[kind])
    recording = _refused_by_grpc(3, CANARIES[kind], _violation(CANARIES[kind]))
    redacted = redact(recording, level, SEED)
    assert [name for name, meant in _trailers(recording).items() if core not in meant] == []
    assert [name for name, meant in _trailers(redacted.recording).items() if core in meant] == []
    assert core.encode() not in write_recording(redacted.recording)
    assert redacted.differences == ()


@pytest.mark.parametrize("level", ["shape", "full"])
def test_no_word_is_left_in_an_error_of_grpc(level: RedactionLevel) -> None:
    recording = _refused_by_grpc(3, SAID, _violation(SAID))
    redacted = redact(recording, level, SEED).recording
    (before,), (after,) = recording.interactions(), redacted.interactions()
    assert before.end is not None and before.end.failure is not None and SAID in before.end.failure.message
    assert after.end is not None and after.end.failure is not None
    meant = _trailers(redacted)
    assert SAID.lower() not in (after.end.failure.message + meant["grpc-message"] + meant["details"]).lower()


@pytest.mark.parametrize("level", ["shape", "full"])
def test_the_details_of_an_error_of_grpc_still_say_what_they_said(level: RedactionLevel) -> None:
    found = QuotaFailure(violations=[QuotaFailure.Violation(subject="project:x", description="daily limit")])
    recording = _refused_by_grpc(8, "No more.", {"QuotaFailure": found.SerializeToString()})
    (interaction,) = recording.interactions()
    assert interaction.end is not None and interaction.end.code == "insufficient_quota"
    assert redact(recording, level, SEED).differences == ()


# Those that a backend's code may be.
_WORDS: Final = [kind for kind, canary in CANARIES.items() if re.fullmatch(r"[\w.-]{1,64}", canary)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", _WORDS)
def test_no_secret_is_left_in_the_outcome_or_the_name_of_the_model(kind: str, level: RedactionLevel) -> None:
    canary = CANARIES[kind]
    error = {"error": {"message": "No.", "type": "invalid_request_error", "code": canary, "param": canary}}
    head = HeadLine(1, "backend", 1, 400, {"content-type": "application/json"})
    body = BytesLine(1, "backend", 2, data_of(json.dumps(error).encode()))
    recording = _answered(head, body, CloseLine(1, 3), model=canary)
    (before,) = recording.interactions()
    assert before.end is not None and before.end.failure is not None and before.route is not None
    assert (before.end.code, before.end.failure.code, before.route.model) == (canary,) * 3
    assert core_of(canary).encode() not in write_recording(redact(recording, level, SEED).recording)


def test_half_a_character_is_no_text_to_keep() -> None:
    """Nobody can name it on a command line, and no JSON holds it."""
    head = HeadLine(1, "backend", 1, 400, {"content-type": "application/json"})
    words = b'{"error": {"message": "This model\'s maximum context length is 8 \xff tokens"}}'
    redacted = redact(_answered(head, BytesLine(1, "backend", 2, data_of(words)), CloseLine(1, 3)), "shape", SEED)
    assert redacted.differences and redacted.needed == ()
    assert write_recording(redacted.recording)
