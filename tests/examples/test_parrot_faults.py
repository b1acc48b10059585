import asyncio

from gateway.core.conversation import Json
from gateway.testing.faults import FAULTS, ResponseEvents, playing
from gateway.testing.gateway import running_gateway

# On a wire with tool calls, `lost_call` is an end that announces a call which is not there.
EVENTS = ResponseEvents(
    "text/event-stream",
    begin=b'data: {"text": "one"}\n\n',
    text=b'data: {"text": " two"}\n\n',
    end=b'data: {"tokens": 5}\n\n',
    failure=b'data: {"error": "no more"}\n\n',
)


def test_a_parrot_that_falls_silent() -> None:
    async def ask() -> None:
        async with playing(FAULTS["silence in the body"], EVENTS, begun=True) as backend:
            entry: dict[str, Json] = {
                "adapter": "tests.examples.parrot:ParrotAdapter",
                "base_url": backend.base_url,
                "timeouts": {"idle": 0.2},
            }
            async with running_gateway(
                {"backends": {"parrot": entry}, "models": {"m": {"backend": "parrot"}}}
            ) as gateway:
                response = await gateway.chat()
            assert response.status_code == 504
            assert response.json()["error"]["code"] == "upstream_timeout"
            assert len(backend.seen) == 1

    asyncio.run(ask())
