"""The live half of the kit: each adapter against the demo backend that speaks its wire, over a real socket."""

import msgspec
import pytest

from adapters.warp import WarpAdapter
from gateway.demo import serve_demo
from gateway.testing.live import LIVE_CHECKS, LiveCase, LiveCheck

BACKENDS = {
    "agent": ("agent", LiveCase(WarpAdapter, "")),
    "agent-structured": ("agent", LiveCase(WarpAdapter, "", options={"encoding": "structured"})),
}


@pytest.mark.parametrize("check", LIVE_CHECKS)
@pytest.mark.parametrize("name", BACKENDS)
async def test_an_adapter_speaks_with_its_backend(name: str, check: LiveCheck) -> None:
    kind, case = BACKENDS[name]
    async with serve_demo(kind) as backend:
        await check(msgspec.structs.replace(case, base_url=backend.base_url))
