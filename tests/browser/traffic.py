"""The requests that the tests look at, and the gateways that keep them."""

from collections.abc import Mapping
from typing import cast

from gateway.core.conversation import Json
from gateway.demo.settings import DEMO_SETTINGS


def settings(server: Mapping[str, Json] | None = None, **inspector: Json) -> dict[str, Json]:
    """Returns the settings of a gateway with the demo backends whose inspector keeps all contents."""
    return {
        **cast("dict[str, Json]", DEMO_SETTINGS),
        "server": {"api_keys_env": None, **(server or {})},
        "inspector": {"contents": "always", **inspector},
    }
