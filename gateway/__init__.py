"""The names that a user of the library needs; each is imported when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

from gateway.moved import install

if TYPE_CHECKING:
    from gateway.adapter import Adapter, BackendRequest, Capabilities, Decoder
    from gateway.core.conversation import Conversation, Turn
    from gateway.core.errors import BackendError, GatewayError, InvalidRequest
    from gateway.core.events import Event
    from gateway.core.notices import Notice
    from gateway.core.policy import Policy
    from gateway.diagnostics.explain_request import plan
    from gateway.diagnostics.explanation import Explanation
    from gateway.exchange import Exchange

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
    "BackendError": "gateway.core.errors",
    "BackendRequest": "gateway.adapter",
    "Capabilities": "gateway.adapter",
    "Conversation": "gateway.core.conversation",
    "Decoder": "gateway.adapter",
    "Event": "gateway.core.events",
    "Exchange": "gateway.exchange",
    "Explanation": "gateway.diagnostics.explanation",
    "GatewayError": "gateway.core.errors",
    "InvalidRequest": "gateway.core.errors",
    "Notice": "gateway.core.notices",
    "Policy": "gateway.core.policy",
    "Turn": "gateway.core.conversation",
    "plan": "gateway.diagnostics.explain_request",
}

# Who still imports a module by its old path finds it.
install()


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
