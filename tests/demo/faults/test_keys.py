"""The checks of a key, on each wire and in each header that a wire has for it."""

from typing import Final

import grpc
import httpx
import pytest

from adapters.proto.demo.backend import METHOD
from gateway.demo.faults.fault import ALL_WIRES
from gateway.demo.player.key_check import RIGHT_KEY
from gateway.demo.serve import DemoBackend, serve_demo
from tests.demo.faults.requests import body_of, post
from tests.demo.http2_client import asked

# Whether each is accepted: no key, a wrong one, the right one.
ACCEPTED: Final = {
    "wrong_key_accepted": (False, True, True),
    "right_key_refused": (False, False, False),
}
CASES: Final = [(name, kind) for name in ACCEPTED for kind in ALL_WIRES]
_HEADERS: Final = {"messages": "x-api-key", "gemini": "x-goog-api-key"}


async def accepts(backend: DemoBackend, key: str) -> bool:
    """Whether a request with this key, or without any, is answered."""
    if backend.kind == "grpc":
        return await _accepts_grpc(backend, key)
    name = _HEADERS.get(backend.kind, "authorization")
    headers = {} if not key else {name: f"Bearer {key}" if name == "authorization" else key}
    if backend.kind == "agent":
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(f"{backend.base_url}/ai/multi-agent", headers=headers)
        return answer.status_code != 401
    return (await post(backend, body_of(backend.kind), headers=headers)).status_code == 200


async def _accepts_grpc(backend: DemoBackend, key: str) -> bool:
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    async with grpc.aio.insecure_channel(backend.base_url.removeprefix("http://")) as channel:
        try:
            async for _ in channel.unary_stream(METHOD)(asked("Hello")[5:], metadata=metadata):
                pass
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            return False
    return True


@pytest.mark.parametrize(("name", "kind"), CASES)
async def test_a_key_is_checked_as_the_defect_says(name: str, kind: str) -> None:
    async with serve_demo(kind, defect=name) as backend:
        assert (await accepts(backend, ""), await accepts(backend, "x"), await accepts(backend, RIGHT_KEY)) == ACCEPTED[
            name
        ]


@pytest.mark.parametrize("kind", ALL_WIRES)
async def test_a_backend_that_needs_a_key_accepts_the_right_one_alone(kind: str) -> None:
    async with serve_demo(kind, needs_key=True) as backend:
        accepted = [await accepts(backend, key) for key in ("", "x", RIGHT_KEY)]
    assert accepted == [False, False, True]


@pytest.mark.parametrize("kind", ALL_WIRES)
async def test_a_sound_backend_takes_any_key(kind: str) -> None:
    async with serve_demo(kind) as backend:
        assert await accepts(backend, "") and await accepts(backend, "x")


@pytest.mark.parametrize("kind", ["chat", "messages", "responses", "gemini"])
async def test_the_list_of_models_needs_the_key_too_and_the_record_does_not(kind: str) -> None:
    async with serve_demo(kind, needs_key=True) as backend, httpx.AsyncClient(trust_env=False) as client:
        path = "/v1/models" if kind == "messages" else "/models"
        refused = await client.get(backend.base_url + path)
        accepted = await client.get(backend.base_url + path, headers={"authorization": f"Bearer {RIGHT_KEY}"})
        record = await client.get(httpx.URL(backend.base_url).copy_with(path="/__demo/requests"))
    assert (refused.status_code, accepted.status_code, record.status_code) == (401, 200, 200)
    assert refused.json()["error"]["code"] == "invalid_api_key"
