import httpx
import pytest

from gateway.demo.player.playback import Response
from gateway.demo.serve import serve_demo
from tests.demo.wires import PROTOBUF, question


def asked(marker: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": f"hi [[demo:{marker}]]"}]}


async def test_a_body_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.demo.player.endpoint._LARGEST_BODY", 100)
    async with serve_demo("text") as backend, httpx.AsyncClient() as client:
        assert (await client.post(f"{backend.base_url}/completion", content=b"x" * 100)).status_code == 400
        assert (await client.post(f"{backend.base_url}/completion", content=b"x" * 101)).status_code == 413
        assert (len(backend.requests), backend.aborted, backend.active) == (1, 0, 0)


async def test_other_methods_and_paths_are_refused() -> None:
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        assert (await client.get(f"{backend.base_url}/chat/completions")).status_code == 405
        assert (await client.get(f"{backend.base_url}/chat/completions/")).status_code == 404
        looked = await client.head(f"{backend.base_url}/models")
        assert (looked.status_code, looked.content) == (200, b"")


@pytest.mark.parametrize("code", [204, 304])
async def test_a_status_without_a_body_has_none(code: int) -> None:
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        for _ in range(2):
            answer = await client.post(f"{backend.base_url}/chat/completions", json=asked(f"status code={code}"))
            assert (answer.status_code, answer.content) == (code, b"")


@pytest.mark.parametrize("status", [0, 199, 600])
def test_no_answer_has_another_status(status: int) -> None:
    with pytest.raises(ValueError, match=f"{status} is not a response status"):
        Response((), status)


async def test_the_first_of_two_knobs_counts() -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        url = f"{backend.base_url}/ai/multi-agent?newline=crlf&newline=lf"
        answer = await client.post(url, content=question("hi").SerializeToString(), headers=PROTOBUF)
    assert b"\r\n\r\n" in answer.content


async def test_a_form_of_another_type_is_no_form() -> None:
    form = "grant_type=refresh_token&refresh_token=a"
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        for media_type, status in (("application/json", 400), ("application/x-www-form-urlencoded", 200)):
            sent = await client.post(
                f"{backend.base_url}/proxy/token", content=form, headers={"content-type": media_type}
            )
            assert sent.status_code == status
