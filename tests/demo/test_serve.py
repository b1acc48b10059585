import httpx
import pytest

from gateway.demo.serve import serve_demo


@pytest.mark.parametrize(("kind", "end"), [("agent", ""), ("chat", "/v1"), ("messages", ""), ("text", "")])
async def test_a_backend_listens_on_loopback_while_the_block_lasts(kind: str, end: str) -> None:
    async with serve_demo(kind) as backend, serve_demo(kind) as other:
        assert backend.base_url.startswith("http://127.0.0.1:") and backend.base_url.endswith(end)
        assert backend.base_url != other.base_url
        assert (backend.kind, backend.requests, backend.active, backend.aborted) == (kind, (), 0, 0)
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{backend.base_url}/nowhere")).status_code == 404
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(backend.base_url)


async def test_another_kind_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"'smoke'.*agent, chat, messages, responses, gemini, text, grpc"):
        async with serve_demo("smoke"):
            pass
