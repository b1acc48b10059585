"""No question of the doctor may cost an unlimited answer: each has a bound, in the field of its wire."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest

from adapters.proto.demo import generation_pb2 as pb
from gateway.diagnostics.doctor.long_probes import MOST_WRITTEN
from gateway.diagnostics.doctor.requests import BOUND, MOST_TOKENS, NEWER_BOUND
from tests.server.doctor.examined import ENTRIES, examined

# The bound in a body as each wire sends it; None: there is none. (Any: JSON of several wires.)
BOUND_OF: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "chat": lambda body: json.loads(body).get("max_tokens"),
    "messages": lambda body: json.loads(body).get("max_tokens"),
    "responses": lambda body: json.loads(body).get("max_output_tokens"),
    "gemini": lambda body: json.loads(body).get("generationConfig", {}).get("maxOutputTokens"),
    "text": lambda body: json.loads(body).get("n_predict"),
    "grpc": lambda body: pb.GenerateRequest.FromString(body[5:]).limits.max_tokens or None,
}
# Wires that have no field for it.
UNBOUNDED: Final = {"agent"}


def test_every_wire_is_looked_at() -> None:
    assert BOUND_OF.keys() | UNBOUNDED == ENTRIES.keys()


def assert_bounded(bounds: Sequence[object]) -> None:
    """Each question has a bound; only that of D283, which wants a long answer, may have a higher one than the others.

    Raises AssertionError.
    """
    found = [bound for bound in bounds if isinstance(bound, int) and bound > 0]
    assert len(found) == len(bounds)
    assert [bound for bound in found if bound > MOST_TOKENS] in ([], [max(found)])
    assert max(found) <= MOST_WRITTEN


@pytest.mark.parametrize("kind", ENTRIES)
async def test_every_question_has_a_bound_and_so_has_every_request_to_a_backend(kind: str) -> None:
    interactions = (await examined(kind)).interactions
    asked = [json.loads(one.body) for one in interactions if one.body]
    sent = [one.sent.body.content for one in interactions if one.sent and one.sent.body]
    assert len(asked) > 30 and len(sent) > 30
    assert_bounded([question.get(BOUND) for question in asked])
    if kind not in UNBOUNDED:
        assert_bounded([BOUND_OF[kind](body) for body in sent])


async def test_a_backend_that_wants_the_newer_name_gets_it_in_all_questions_but_the_first() -> None:
    found = await examined("chat", "demo:chat?defect=refuses_max_tokens")
    sent = [json.loads(one.sent.body.content) for one in found.interactions if one.sent and one.sent.body]
    assert len(sent) > 30
    assert [number for number, body in enumerate(sent) if BOUND in body] == [0]
    assert all(NEWER_BOUND in body for body in sent[1:])
    profile, name = found.section.suggestions
    assert profile.value == {"base": "none", "request_rules": {"limit": NEWER_BOUND}}
    assert name.path[-1] == "profile"
