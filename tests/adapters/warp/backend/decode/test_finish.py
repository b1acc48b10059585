from typing import Any

import pytest

from adapters.warp.backend.decode.finish import finish_error, read_usage
from adapters.warp.multi_agent_pb2 import StreamFinished
from gateway.core.errors import BackendRejected
from gateway.core.events import UsageReport


@pytest.mark.parametrize(
    ("finished", "status", "code"),
    [
        ({"quota_limit": {}}, 429, "insufficient_quota"),
        ({"context_window_exceeded": {}}, 400, "context_length_exceeded"),
        ({"llm_unavailable": {}}, 503, "upstream_overloaded"),
        ({"internal_error": {"message": "m"}}, 502, "upstream_error"),
        ({"other": {}}, 502, "upstream_error"),
        ({"invalid_api_key": {"provider": 2}}, 502, "upstream_auth_error"),
    ],
)
def test_every_failure_of_the_wire_is_an_error(finished: dict[str, Any], status: int, code: str) -> None:
    error = finish_error(StreamFinished(**finished))
    assert isinstance(error, BackendRejected)
    assert (error.status, error.code) == (status, code)


@pytest.mark.parametrize("finished", [{}, {"done": {}}, {"max_token_limit": {}}])
def test_the_rest_is_a_success(finished: dict[str, Any]) -> None:
    assert finish_error(StreamFinished(**finished)) is None


def test_every_reason_of_the_schema_is_known() -> None:
    for field in StreamFinished.DESCRIPTOR.oneofs_by_name["reason"].fields:
        finished = StreamFinished()
        getattr(finished, field.name).SetInParent()
        error = finish_error(finished)
        assert (error is None) == (field.name in ("done", "max_token_limit"))


@pytest.mark.parametrize(("number", "name"), [(1, "Anthropic"), (5, "Open Router"), (0, "Unknown"), (99, "Unknown")])
def test_a_refused_key_names_its_provider_and_asks_for_no_retry(number: int, name: str) -> None:
    error = finish_error(StreamFinished(invalid_api_key={"provider": number, "model_name": "secret-model"}))
    assert error is not None
    assert error.message == f"The backend's key for {name} was refused."
    assert error.headers == {"x-should-retry": "false"}


def test_what_the_backend_says_of_its_failure_is_not_passed_on() -> None:
    error = finish_error(StreamFinished(internal_error={"message": "no luck"}))
    assert error is not None
    assert error.message == "The backend failed."


EXACT = [
    {"model_id": "a", "total_input": 10, "output": 3, "input_cache_read": 4},
    {"model_id": "b", "total_input": 1, "output": 2},
]
CHARGES = {
    "usage_by_category": {"p": {"direct_api_inference_usage": {"m": {"token_count": {"input": 7, "output": 5}}}}}
}
TOTALS = {
    "total_input_tokens": 99,
    "warp_token_usage": {"a": {"total_tokens": 5}, "b": {"total_tokens": 6}},
    "byok_token_usage": {"a": {"total_tokens": 7}},
}


@pytest.mark.parametrize(
    ("finished", "usage"),
    [
        ({}, None),
        ({"conversation_usage_metadata": {"context_window_usage": 0.5}}, None),
        ({"conversation_usage_metadata": TOTALS}, UsageReport(total_tokens=18)),
        (
            {"token_usage": EXACT, "conversation_usage_metadata": TOTALS},
            UsageReport(11, 5, 16, extra={"prompt_tokens_details": {"cached_tokens": 4}}),
        ),
        ({"token_usage": [{"total_input": 10, "output": 3}]}, UsageReport(10, 3, 13)),
        ({"token_usage": [{"model_id": "a"}]}, None),
        ({"token_usage": [{"model_id": "a"}], "request_charges": CHARGES}, UsageReport(7, 5, 12)),
        ({"token_usage": EXACT[1:], "request_charges": CHARGES}, UsageReport(1, 2, 3)),
        ({"token_usage": [{"model_id": "a"}], "conversation_usage_metadata": TOTALS}, UsageReport(total_tokens=18)),
    ],
)
def test_usage_is_what_was_counted(finished: dict[str, Any], usage: UsageReport | None) -> None:
    assert read_usage(StreamFinished(**finished), continued=False) == usage


def test_the_total_of_a_continued_conversation_is_an_estimate_of_this_answer() -> None:
    finished = StreamFinished(conversation_usage_metadata=TOTALS)
    assert read_usage(finished, continued=True) == UsageReport(total_tokens=18, estimated=True)
