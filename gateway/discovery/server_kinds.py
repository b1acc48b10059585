"""Lists the kinds of servers and providers that `dragoman init` knows: those of `gateway/providers/`, and two more."""

from typing import Final

from gateway.providers.provider import MODELS_PATH, LockedReply, ServerKind
from gateway.providers.registry import PROVIDERS

DRAGOMAN: Final = ServerKind(
    "dragoman", "another Dragoman", None, "/readyz", {"status": str}, header=("x-request-id", "req_")
)
# Any server with OpenAI's list of models.
COMPATIBLE: Final = ServerKind(
    "openai-compatible",
    "a server of OpenAI's API",
    None,
    MODELS_PATH,
    {"data": list},
    locked=LockedReply({"error": dict}),
)

# The first one whose signs are there is taken.
SERVER_KINDS: Final = (
    DRAGOMAN,
    *(provider.server for provider in PROVIDERS if provider.server is not None),
    COMPATIBLE,
)
HOSTED_KINDS: Final = tuple(provider.hosted for provider in PROVIDERS if provider.hosted is not None)


def known_ports() -> tuple[int, ...]:
    """Returns the ports that the known servers take by themselves, each once."""
    return tuple(dict.fromkeys(kind.port for kind in SERVER_KINDS if kind.port is not None))
