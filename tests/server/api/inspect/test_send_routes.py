"""The page asks a backend the questions of the doctor only where the settings say so."""

from collections.abc import Mapping

import httpx

from gateway.core.conversation import Json
from gateway.diagnostics.doctor.examination import chosen
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_routes import settings
from tests.server.inspect.test_sent_requests import backend_requests


async def asked(gateway: RunningGateway, body: Mapping[str, Json]) -> httpx.Response:
    return await gateway.client.post("/inspect/api/doctor", json=body, timeout=120)


async def test_nothing_is_asked_unless_the_settings_say_so() -> None:
    async with running_gateway(settings()) as gateway:
        view = (await gateway.client.get("/inspect/api/doctor")).json()
        assert "demo-chat" in view["backends"] and view["questions"] > 10
        answer = await asked(gateway, {"backend": "demo-chat"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_sent")
        assert backend_requests(gateway) == 0


async def test_a_backend_is_asked_and_its_findings_are_told() -> None:
    entry: Json = {"adapter": "openai_chat", "base_url": "demo:chat?defect=no_done"}
    models: Json = {"demo-chat": {"backend": "b"}}
    own: dict[str, Json] = {**settings(send=True), "backends": {"b": entry}, "models": models}
    async with running_gateway(own) as gateway:
        answer = await asked(gateway, {"backend": "b"})
        assert answer.status_code == 200, answer.text
        section = answer.json()
        verdicts = {one["id"]: one["finding"]["verdict"] for one in section["findings"]}
        assert section["name"] == "b" and verdicts.keys() == {probe.id for probe in chosen(slow=False)}
        assert [check for check, verdict in verdicts.items() if verdict not in ("ok", "skipped")] == ["D224"]
        form = await gateway.client.post("/inspect/api/doctor", data={"backend": "b"})
        assert form.status_code == 415
        assert (await asked(gateway, {"backend": "nobody"})).json()["error"]["code"] == "unknown_backend"
        for wrong in ({"backend": 3}, {}):
            assert (await asked(gateway, wrong)).status_code == 400
