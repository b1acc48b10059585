"""The requests that the tests look at, and the settings of the gateways that keep them."""

from typing import Final

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway
from tests.server.api.inspect.test_routes import settings as settings

# A question whose answer breaks off after two chunks.
TRUNCATED: Final[list[Json]] = [{"role": "user", "content": "Hello [[demo:truncated after=2]]"}]


def history(model: str) -> list[Json]:
    """Returns a conversation that a client has broken: a result without its call, and a call without its result."""
    call: Json = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    return [
        {"role": "system", "content": f"You answer for {model}."},
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_9", "content": "lost"},
        {"role": "user", "content": "And in Oslo?"},
    ]


async def sent(gateway: RunningGateway, **fields: Json) -> str:
    """Sends a request and returns its id."""
    return (await gateway.chat(**fields)).headers["x-request-id"]
