"""Runs a gateway whose backends have defects, one model for each."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from gateway.core.conversation import Json
from gateway.demo.settings import DEMO_SETTINGS
from gateway.testing.gateway import RunningGateway, running_gateway

# The model of the backend without a defect.
SOUND: Final = "sound"


@asynccontextmanager
async def gateway_of(kind: str, defects: Iterable[str]) -> AsyncIterator[RunningGateway]:
    """Run a gateway with a model for each of these defects, and for the sound backend."""
    demo: Any = DEMO_SETTINGS
    name = "auto" if kind == "agent" else f"demo-{kind}"
    addresses = {SOUND: f"demo:{kind}", **{defect: f"demo:{kind}?defect={defect}" for defect in defects}}
    settings: dict[str, Json] = {
        "profiles": demo["profiles"],
        "backends": {
            model: {**demo["backends"][f"demo-{kind}"], "base_url": address} for model, address in addresses.items()
        },
        "models": {model: {"backend": model, "name": name} for model in addresses},
    }
    async with running_gateway(settings) as gateway:
        yield gateway
