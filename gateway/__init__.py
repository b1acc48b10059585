"""The names that a user of the library needs; each is imported when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.adapter import Adapter, BackendRequest, Capabilities, Decoder
    from gateway.errors import BackendError, GatewayError, InvalidRequest
    from gateway.events import Event
    from gateway.exchange import Exchange
    from gateway.explain import Explanation, plan
    from gateway.notices import Notice
    from gateway.policy import Policy
    from gateway.types import Conversation, Turn

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "BackendError",
    "BackendRequest",
    "Capabilities",
    "Conversation",
    "Decoder",
    "Event",
    "Exchange",
    "Explanation",
    "GatewayError",
    "InvalidRequest",
    "Notice",
    "Policy",
    "Turn",
    "__version__",
    "plan",
]

_HOME = {
    "Adapter": "gateway.adapter",
    "BackendError": "gateway.errors",
    "BackendRequest": "gateway.adapter",
    "Capabilities": "gateway.adapter",
    "Conversation": "gateway.types",
    "Decoder": "gateway.adapter",
    "Event": "gateway.events",
    "Exchange": "gateway.exchange",
    "Explanation": "gateway.explain",
    "GatewayError": "gateway.errors",
    "InvalidRequest": "gateway.errors",
    "Notice": "gateway.notices",
    "Policy": "gateway.policy",
    "Turn": "gateway.types",
    "plan": "gateway.explain",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
