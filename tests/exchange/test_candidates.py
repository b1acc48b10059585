"""The order of candidates, what keeps a request with its account, and what a failed try may be followed by."""

from collections import Counter
from types import SimpleNamespace
from typing import Final

import msgspec
import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from adapters.openai_responses.client.decode import decode_document
from gateway.core.backend_status import status_error
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import (
    BackendError,
    BackendProtocolError,
    BackendTimeout,
    BackendTruncated,
    BackendUnavailable,
    GatewayError,
    InvalidRequest,
    InvalidToolCall,
    ServerShutdown,
)
from gateway.core.notices import Action, Notice, NoticeRule
from gateway.core.policy import Policy
from gateway.core.provider_state import state_label
from gateway.dialects.document import read_document
from gateway.exchange import candidates
from gateway.exchange.candidates import (
    Cause,
    Considered,
    Loss,
    Model,
    bound_to_account,
    by_least_loss,
    chosen_by_weight,
    consider,
    error_to_report,
    longer_than,
    loss_of,
    switch_cause,
)
from gateway.server.access.admission import backend_concurrency

ADAPTER: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
LABEL: Final = state_label("openai_chat", "host", "KEY")
NOTHING: Final = loss_of([])


def model(name: str, weight: float | None = None, window: int | None = None, label: str = LABEL) -> Model:
    return Model(name, name, name, ADAPTER, Policy(), label, window, weight)


def able(name: str, loss: Loss = NOTHING, weight: float | None = None, window: int | None = None) -> Considered:
    return Considered(model(name, weight, window), loss)


def notice(rule: NoticeRule, action: Action = "dropped") -> Notice:
    return Notice("encode", action, rule, rule)


# Each loses less than the next one.
LOSSES: Final[tuple[Loss, ...]] = (
    loss_of([]),
    loss_of([notice("BRIDGE_ADDED", "added")]),
    loss_of([notice("TURN_NOT_SENT")]),
    loss_of([notice("TURN_NOT_SENT"), notice("ITEM_REPEATED")]),
    loss_of([notice("CALL_ID_RENAMED", "changed")]),
    loss_of([notice("EFFORT_NOT_SENT")]),
    loss_of([notice("TOOL_NOT_SENT")]),
    loss_of([notice("TOOL_NOT_SENT"), notice("TOOL_NOT_SENT")]),
    loss_of([notice("EFFORT_NOT_SENT"), notice("CALL_ID_RENAMED", "changed")]),
    loss_of([], over_window=True),
    loss_of([notice("TOOL_NOT_SENT")], over_window=True),
)


def test_the_order_of_losses_is_that_of_the_page() -> None:
    assert LOSSES[0] == LOSSES[1]
    assert list(LOSSES[1:]) == sorted(reversed(LOSSES[1:]))
    assert len(set(LOSSES)) == len(LOSSES) - 1


def test_the_order_of_the_settings_decides_between_equal_ones() -> None:
    considered = [
        able("a", LOSSES[4]),
        able("b", LOSSES[2]),
        Considered(model("c"), refusal="no"),
        able("d", LOSSES[2]),
    ]
    assert [found.name for _, found in by_least_loss(considered)] == ["b", "d", "a"]


def test_a_plan_says_what_a_model_loses() -> None:
    request = conversation([{"role": "user", "content": "word " * 100}], temperature=0.5)
    assert consider(model("a"), request, LABEL, None).loss == NOTHING
    small = consider(model("a", window=20), request, LABEL, None).loss
    assert small is not None and small.over_window
    refused = conversation([{"role": "tool", "tool_call_id": "x", "content": "y"}], repair="strict")
    strict = Model("a", "a", "a", ADAPTER, Policy(repair="strict"), LABEL, None)
    assert consider(strict, refused, LABEL, None).refusal


def test_what_is_for_an_account_is_for_all_models_of_it() -> None:
    request = conversation([{"role": "user", "content": "Hello"}])
    assert consider(model("a"), request, LABEL, "a file").loss == NOTHING
    other = consider(model("b", label=state_label("openai_chat", "host", "OTHER")), request, LABEL, "a file")
    assert (other.loss, other.refusal) == (None, "a file is for another account")


def conversation(messages: list[Json], **fields: Json) -> Conversation:
    return decode(msgspec.json.encode({"model": "m", "messages": messages, **fields}))


def responses(item: Json) -> Conversation:
    """A request of the Responses API with an item, or with a part of a message."""
    part = isinstance(item, dict) and item["type"] == "input_file"
    items: list[Json] = [{"role": "user", "content": [item]}] if part else [{"role": "user", "content": "x"}, item]
    body = msgspec.json.encode({"model": "m", "input": items})
    return decode_document(read_document(body)).conversation


def signed(signature: str) -> Conversation:
    state: Json = {"google": {"thought_signature": signature}}
    call: Json = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": state,
    }
    return conversation(
        [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ]
    )


@pytest.mark.parametrize(
    ("request_", "bound"),
    [
        (conversation([{"role": "user", "content": "file_id container"}]), None),
        (conversation([{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]), "file_id"),
        (conversation([{"role": "user", "content": "x"}], container={"id": "c"}), "container"),
        (conversation([{"role": "user", "content": "x"}], container=None), None),
        (
            conversation(
                [{"role": "user", "content": "x"}],
                tools=[
                    {
                        "type": "function",
                        "function": {"name": "f", "parameters": {"properties": {"file_id": {"type": "string"}}}},
                    }
                ],
            ),
            None,
        ),
        (
            conversation(
                [
                    {"role": "user", "content": "x"},
                    {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
                    {"role": "user", "content": "x"},
                ]
            ),
            "audio",
        ),
        (conversation([{"role": "user", "content": "x"}], audio={"voice": "alloy", "format": "wav"}), None),
        (responses({"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1"}), "container_id"),
        (responses({"type": "input_file", "file_id": "file-1"}), "file_id"),
        (signed(LABEL + "abc"), None),
        (signed("abc"), "state without a label"),
    ],
)
def test_what_only_one_account_has_is_found(request_: Conversation, bound: str | None) -> None:
    found = bound_to_account(request_)
    assert found is None if bound is None else found is not None and bound in found


def test_a_stranger_gets_no_state_and_that_counts_as_a_loss() -> None:
    stranger = model("b", label=state_label("openai_chat", "host", "OTHER"))
    considered = consider(stranger, signed(LABEL + "abc"), LABEL, None)
    assert considered.loss is not None and considered.loss.names == ("reasoning",)
    assert consider(model("a"), signed(LABEL + "abc"), LABEL, None).loss == NOTHING


def test_equal_models_share_the_conversations_by_their_weights() -> None:
    models = [able("a", weight=1), able("b", weight=3), able("c"), able("d", LOSSES[4], weight=9)]
    names = [chosen(models, at) for at in range(2000)]
    counts = Counter(names)
    assert set(counts) == {"a", "b"}
    assert 0.7 < counts["b"] / 2000 < 0.8
    # Each keeps its model when another one comes or goes, unless it is that one's.
    grown = [chosen([*models, able("e", weight=1)], at) for at in range(2000)]
    assert {new for old, new in zip(names, grown, strict=True) if new != old} == {"e"}
    assert chosen_by_weight([able("c")], b"x") is None


@pytest.mark.parametrize("digest", [b"\0" * 8, b"\xff" * 8])
def test_every_digest_has_a_share(digest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "blake2b", lambda *_, **__: SimpleNamespace(digest=lambda: digest))
    assert chosen([able("a", weight=1), able("b", weight=2)], 0) == "b"


def chosen(models: list[Considered], at: int) -> str:
    found = chosen_by_weight(models, b"conversation %d" % at)
    assert found is not None
    return found[1].name


def test_a_long_prompt_goes_to_the_longer_model_or_to_one_that_may_be_longer() -> None:
    models = [able("a", window=100), able("b", window=200), able("c"), able("d", window=50)]
    assert [one.model.name for one in longer_than(models, 100, "d")] == ["d"]
    assert [one.model.name for one in longer_than(models, 100, None)] == ["b", "c"]
    assert [one.model.name for one in longer_than(models, None, "x")] == ["a", "b", "c", "d"]
    assert longer_than([Considered(model("l"), refusal="no")], 100, "l") == []


def _full() -> GatewayError:
    limit = backend_concurrency("b", 0)
    with pytest.raises(GatewayError) as full:
        limit.check()
    return full.value


FAILURES: Final[list[tuple[GatewayError, Cause | None]]] = [
    (BackendUnavailable("x"), "connect"),
    (BackendUnavailable("x", code="upstream_tls_error", headers={"x-should-retry": "false"}), "connect"),
    (BackendTimeout("x"), "timeout"),
    (status_error(408, {}), "timeout"),
    (status_error(504, {}), "timeout"),
    (status_error(429, {}), "rate_limit"),
    (status_error(429, {}, code="insufficient_quota"), "rate_limit"),
    (status_error(402, {}), "rate_limit"),
    (status_error(500, {}), "server_error"),
    (status_error(502, {}), "server_error"),
    (status_error(503, {}), "overloaded"),
    (status_error(529, {}), "overloaded"),
    (_full(), "overloaded"),
    (BackendTruncated("x"), "server_error"),
    (BackendProtocolError("x"), "server_error"),
    (InvalidToolCall("x"), "server_error"),
    (status_error(400, {}, message="prompt is too long: 9 tokens > 4 maximum"), "context_length"),
    (status_error(400, {}, message="max_tokens: 9 > 4, which is the maximum allowed number of output tokens"), None),
    *((status_error(status, {}), None) for status in (301, 400, 401, 403, 404, 405, 409, 413, 422)),
    (ServerShutdown("x"), None),
    (InvalidRequest("x"), None),
    (GatewayError("x", status=429, kind="rate_limit", code="insufficient_quota"), None),
]


@pytest.mark.parametrize(("error", "cause"), FAILURES)
def test_only_these_failures_are_followed_by_another_try(error: GatewayError, cause: Cause | None) -> None:
    assert switch_cause(error) == cause


def test_the_error_on_which_a_client_can_act_is_told() -> None:
    spent: BackendError = status_error(402, {})
    busy, late = status_error(503, {}), BackendTimeout("x", headers={"x-should-retry": "false"})
    assert error_to_report([busy, late]) is busy
    assert error_to_report([spent, late, busy]) is late
    assert error_to_report([spent, status_error(400, {})]) is spent
