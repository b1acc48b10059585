"""What a provider's prompt cache lost stands in the list, in the opened request and beside the difference."""

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import sent, settings

pytestmark = BROWSER

PRICE: Json = {"input": 3, "output": 15, "cached_input": 0.5, "currency": "EUR"}


def talk(day: str, *more: Json) -> list[Json]:
    system: Json = {"role": "system", "content": f"You are an agent. Today is {day}."}
    return [system, {"role": "user", "content": "Read the settings. " * 200}, *more]


async def test_a_date_in_the_system_prompt_is_seen_at_once(opened: Open) -> None:
    known = settings()
    models: Json = {"demo-chat": {"backend": "demo-chat", "price": PRICE}}
    async with running_gateway({**known, "models": models}) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        more: list[Json] = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]
        await sent(gateway, model="demo-chat", messages=talk("Monday"))
        request_id = await sent(gateway, model="demo-chat", messages=talk("Tuesday", *more))
        await page.row(request_id).get_by_text("cache client system").wait_for()
        await page.row(request_id).click()
        lost = page.request(request_id).get_by_role("region", name="Prompt cache")
        said = await lost.inner_text()
        assert said.startswith("Prompt cache lost The client changed the system text (block 0): about ")
        assert "read anew. Cost: ~0.00" in said and said.endswith(" EUR.")
        panel = await page.show("Since previous")
        verdict = await panel.get_by_role("region", name="Prompt cache").inner_text()
        assert verdict.startswith("Cache broken The client changed the system text (block 0): about ")
