import json

import httpx
import pytest

from adapters.warp.demo.scenarios import SCENARIOS, TOOLS
from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from tests.demo.wires import messages_of, notation, post, question, read

P = "I CT AM(server_event) AM(user_query) UP(server_message_data)"
TEXT = "AM(agent_output) AP(agent_output.text)*"
BEGUN = f"{P} B {TEXT} C"

WIRES = {
    "plain_text": f"{P} B {TEXT} C TD F(done)",
    "reasoning_text": (
        f"{P} B AM(agent_reasoning) AP(agent_reasoning.reasoning)* UP(agent_reasoning.finished_duration) "
        f"{TEXT} C F(done)"
    ),
    "max_tokens": f"{P} B {TEXT} C F(max_token_limit)",
    "finished_without_reason": "I CT F()",
    "text_without_reason": f"{P} B {TEXT} C F()",
    "empty_finish": f"{P} F(done)",
    "usage_only_total": f"{P} B {TEXT} C F(done)",
    "usage_exact": f"{P} B {TEXT} C F(done)",
    "unicode": f"{P} B {TEXT} C F(done)",
    "long_unicode": f"{P} B {TEXT} C F(done)",
    "encodings": f"{P} B {TEXT} C F(done)",
    "echo": f"{P} B {TEXT} C F(done)",
    "concurrent": f"{P} B {TEXT} C F(done)",
    "single_mcp_call": f"{P} B AM(agent_output) AM(call_mcp_tool) C F(done)",
    "parallel_calls": f"{P} B AM(call_mcp_tool,call_mcp_tool) C F(done)",
    "parallel_calls_two_events": f"{P} B AM(call_mcp_tool)* C F(done)",
    "parallel_calls_same_tool": f"{P} B AM(call_mcp_tool,call_mcp_tool) C F(done)",
    "call_then_result": f"{P} B AM(agent_output) AM(call_mcp_tool) C F(done)",
    "native_tool": f"{P} B AM(run_shell_command) C F(done)",
    "native_tool_and_text": f"{P} B {TEXT} AM(server) AM(subagent) AM(run_shell_command) C F(done)",
    "server_tool": f"{P} B AM(server) {TEXT} C F(done)",
    "numbers": f"{P} B AM(call_mcp_tool) C F(done)",
    "duplicate_tool_id": f"{P} B AM(call_mcp_tool,call_mcp_tool) C F(done)",
    "missing_tool_id": f"{P} B AM(call_mcp_tool) C F(done)",
    "empty_tool_name": f"{P} B AM(call_mcp_tool) C F(done)",
    "missing_args": f"{P} B AM(call_mcp_tool) C F(done)",
    "empty_args": f"{P} B AM(call_mcp_tool) C F(done)",
    "rollback_retry": (f"{P} B AM(agent_output) AP(agent_output.text) AM(call_mcp_tool) R B {TEXT} C F(done)"),
    "rollback_to_call": f"{P} B AM(call_mcp_tool) R B AM(call_mcp_tool) C F(done)",
    "rollback_end": f"{P} B AM(agent_output) AP(agent_output.text) R F(llm_unavailable)",
    "committed_twice": f"{P} B AM(agent_output) C B AM(agent_output) C F(done)",
    "never_committed": f"{P} B AM(agent_output) F(done)",
    "moved": f"{P} B {TEXT} C MV(3) B {TEXT} C F(done)",
    "moved_in_transaction": f"{P} B {TEXT} MV(3) {TEXT} C F(done)",
    "moved_back": f"{P} B {TEXT} C B MV(3) R B MV(3) {TEXT} C F(done)",
    "moved_range_unknown": f"{P} B {TEXT} MV(2) {TEXT} C F(done)",
    "moved_task_unknown": f"{P} B {TEXT} MV(3) {TEXT} C F(done)",
    "cited": f"{P} B AM(agent_output) C F(done)",
    "context_window": f"{P} B {TEXT} C F(done)",
    "newer_native_tools": f"{P} B {TEXT} AM(wait_for_events) AM(start_recording) AM(stop_recording) C F(done)",
    "unknown_variant": f"{P} B E? ? AM(?) AM(agent_output) C F(done)",
    "mask_edge": (
        f"{P} B AM(agent_output) AP(agent_output.nothing) AP(agent_output.text) UP(agent_output.text)* C "
        "UP(agent_output.text) F(done)"
    ),
    "subtask": f"{P} B AM(agent_output) CT AM(agent_output) AP(agent_output.text) AM(agent_output) C F(done)",
    "events_after_finish": f"{P} B {TEXT} C F(done) AM(agent_output) F(done)",
    "quota_in_stream": f"{P} F(quota_limit)",
    "quota_after_text": f"{BEGUN} F(quota_limit)",
    "context_exceeded": f"{P} F(context_window_exceeded)",
    "llm_unavailable": f"{P} F(llm_unavailable)",
    "internal_error": f"{P} F(internal_error)",
    "other": f"{P} F(other)",
    "invalid_api_key": f"{P} F(invalid_api_key)",
    "disconnect_eof": BEGUN,
    "disconnect_in_transaction": f"{P} B AM(agent_output) AP(agent_output.text)",
}
# What is checked by tests of its own, because it ends in no ordinary end or is no stream.
ELSEWHERE = {
    "metadata", "client_cancel", "held_open", "disconnect_reset", "disconnect_fin", "disconnect_before_actions",
    "stall", "stall_first", "bad_base64", "truncated_base64", "bad_protobuf", "http_401_refresh", "stall_headers",
}  # fmt: skip
STATUSES = {
    "quota_http": 429, "quota_http_text": 429, "http_401": 401, "http_429_retry_after": 429,
    "http_429_retry_date": 429, "http_429_endless": 429, "http_403_html": 403, "http_500_then_ok": 500,
    "http_503_then_ok": 503, "http_404": 404, "http_404_url": 404, "http_413": 413,
    "wrong_content_type": 200, "empty_body": 200,
}  # fmt: skip


def test_every_scenario_is_checked() -> None:
    assert set(SCENARIOS) == WIRES.keys() | ELSEWHERE | STATUSES.keys()


async def wire_of(backend: DemoBackend, text: str) -> bytes:
    async with httpx.AsyncClient() as client:
        answer = await post(client, f"{backend.base_url}/ai/multi-agent", question(text, TOOLS))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream;charset=utf-8"
    return answer.content


async def test_every_stream_is_the_wire_that_its_name_states() -> None:
    async with serve_demo("agent") as backend:
        for name, expected in WIRES.items():
            events = messages_of(await wire_of(backend, f"Please go on. [[scenario:{name}]]"))
            assert notation(events) == expected, name


@pytest.mark.parametrize(
    "name",
    [name for name, scenario in SCENARIOS.items() if name in WIRES and not scenario.expect.fails],
)
async def test_what_is_expected_is_what_a_reader_sees(name: str) -> None:
    expect = SCENARIOS[name].expect
    async with serve_demo("agent") as backend:
        seen = read(messages_of(await wire_of(backend, f"Please go on. [[scenario:{name}]]")))
    calls: list[tuple[str, Json]] = [(called, json.loads(arguments)) for called, arguments in expect.calls]
    if expect.text is not None:
        assert seen.text == expect.text
    assert (seen.reasoning, seen.calls, seen.finished) == (expect.reasoning, calls, True)
    assert expect.finish == ("tool_calls" if calls else "length" if seen.reason == "max_token_limit" else "stop")


async def test_an_echo_is_the_query_to_the_byte() -> None:
    query = "User: a\u2028b \n\n  [[scenario:echo chunk=7]]\t\n"
    async with serve_demo("agent") as backend:
        assert read(messages_of(await wire_of(backend, query))).text == query


async def test_metadata_is_no_content() -> None:
    async with serve_demo("agent") as backend:
        seen = read(messages_of(await wire_of(backend, "[[scenario:metadata]]")))
    assert seen.text == SCENARIOS["metadata"].expect.text


@pytest.mark.parametrize(
    ("name", "data"), [("bad_base64", b"%%%"), ("truncated_base64", b"EhgKFhoUC"), ("bad_protobuf", b"_w==")]
)
async def test_a_broken_event_stands_between_good_ones(name: str, data: bytes) -> None:
    async with serve_demo("agent") as backend:
        wire = await wire_of(backend, f"[[scenario:{name}]]")
    before, found, after = wire.partition(b"event:data\ndata:" + data + b"\n\n")
    assert found
    assert notation(messages_of(before)) == BEGUN
    assert notation(messages_of(after)) == "F(done)"


@pytest.mark.parametrize("name", ["disconnect_reset", "disconnect_fin", "disconnect_before_actions"])
async def test_a_cut_connection_gives_what_came_before_and_no_proper_end(name: str) -> None:
    received = b""
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        request = question(f"[[scenario:{name}]]")
        body = request.SerializeToString()
        headers = {"content-type": "application/x-protobuf"}
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            async with client.stream(
                "POST", f"{backend.base_url}/ai/multi-agent", content=body, headers=headers
            ) as answer:
                async for part in answer.aiter_raw():
                    received += part
    assert notation(messages_of(received)) == ("I" if name == "disconnect_before_actions" else BEGUN)


@pytest.mark.parametrize(("name", "status"), STATUSES.items())
async def test_http_failures_come_with_their_status(name: str, status: int) -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        url = f"{backend.base_url}/ai/multi-agent"
        first = await post(client, url, question(f"[[scenario:{name}]]"))
        second = await post(client, url, question(f"[[scenario:{name}]]"))
    assert first.status_code == status
    assert second.status_code == (200 if SCENARIOS[name].turns else status)


async def test_headers_and_bodies_of_http_failures() -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        url = f"{backend.base_url}/ai/multi-agent"
        quota = await post(client, url, question("[[scenario:quota_http]]"))
        slow = await post(client, url, question("[[scenario:http_429_retry_after]]"))
        page = await post(client, url, question("[[scenario:http_403_html]]"))
    assert quota.headers["x-warp-error-code"] == "OUT_OF_CREDITS" and "userDisplayMessage" in quota.json()
    assert slow.headers["retry-after"] == "2" and "x-warp-error-code" not in slow.headers
    assert page.headers["content-type"] == "text/html" and page.text.startswith("<!doctype html>")


async def test_a_refresh_lets_the_next_request_in() -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        url = f"{backend.base_url}/ai/multi-agent"
        body = question("[[scenario:http_401_refresh]]").SerializeToString()
        headers = {"content-type": "application/x-protobuf", "authorization": "Bearer old"}
        assert (await client.post(url, content=body, headers=headers)).status_code == 401
        form = {"grant_type": "refresh_token", "refresh_token": "r0"}
        tokens = (await client.post(f"{backend.base_url}/proxy/token?key=k", data=form)).json()
        assert tokens["refresh_token"] != "r0" and tokens["expires_in"] == "3600"
        headers["authorization"] = f"Bearer {tokens['id_token']}"
        assert (await client.post(url, content=body, headers=headers)).status_code == 200
        assert (await client.post(f"{backend.base_url}/proxy/token", data=form)).status_code == 400
        wrong = await client.post(f"{backend.base_url}/proxy/token", data={**form, "grant_type": "password"})
        assert (wrong.status_code, wrong.json()["error"]["message"]) == (400, "INVALID_GRANT_TYPE")
        refused = await client.post(f"{backend.base_url}/proxy/token", data={**form, "refresh_token": "revoked"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, 400)


async def test_usage_is_a_total_or_exact() -> None:
    async with serve_demo("agent") as backend:
        total = messages_of(await wire_of(backend, "[[scenario:usage_only_total]]"))[-1].finished
        exact = messages_of(await wire_of(backend, "[[scenario:usage_exact]]"))[-1].finished
    assert not total.token_usage and total.conversation_usage_metadata.warp_token_usage["auto"].total_tokens == 42
    assert (exact.token_usage[0].total_input, exact.token_usage[0].output) == (30, 12)


async def test_ids_are_distinct_missing_or_the_same_as_the_name_says() -> None:
    async with serve_demo("agent") as backend:
        ids = {
            name: read(messages_of(await wire_of(backend, f"[[scenario:{name}]]"))).ids
            for name in ("parallel_calls", "parallel_calls_two_events", "duplicate_tool_id", "missing_tool_id")
        }
    assert len(set(ids["parallel_calls"])) == len(set(ids["parallel_calls_two_events"])) == 2
    assert ids["duplicate_tool_id"] == ["same-id", "same-id"]
    assert ids["missing_tool_id"] == [""]


async def test_the_second_turn_of_a_conversation_has_steps_of_its_own() -> None:
    async with serve_demo("agent") as backend:
        history = (
            "User: go [[scenario:call_then_result]]\n\nAssistant: Let me\nTool calls: Called Execute with args: {}\n\n"
            "Tool result (k1): {}\n\nUser: Please analyze the tool results above and provide your response."
        )
        seen = read(messages_of(await wire_of(backend, history)))
        other = read(messages_of(await wire_of(backend, history.replace("call_then_result", "single_mcp_call"))))
    assert (seen.text, seen.calls) == ("The file holds what the result says.", [])
    assert (other.text, other.calls) == ("Execute says: {}", [])
