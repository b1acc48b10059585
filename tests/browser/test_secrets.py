"""Secrets that were said in a request are in nothing of the page: no view, revealed or not, no copy, no address."""

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.recording.redact.canaries import CANARIES, core_of

pytestmark = BROWSER

SAID = "\n".join(CANARIES.values())
CORES = {core_of(canary) for canary in CANARIES.values()}


def _conversation() -> list[Json]:
    function: Json = {"name": "write_file", "arguments": SAID}
    return [
        {"role": "system", "content": SAID},
        {"role": "user", "content": SAID},
        {
            "role": "assistant",
            "content": SAID,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": SAID},
        {"role": "tool", "tool_call_id": "call_9", "content": SAID},
        {"role": "user", "content": f"Repeat: {SAID}"},
    ]


def _left(text: str) -> set[str]:
    return {core for core in CORES if core in text}


async def _views(page: InspectorPage) -> str:
    """The texts of all views of the opened request."""
    texts = []
    for view in ("Messages", "Sent", "Answer", "Since previous", "What if"):
        await page.show(view)
        if view == "What if":
            await page.page.get_by_role("button", name="Show", exact=True).click()
            await page.page.get_by_role("group", name="Messages by stage").wait_for()
        await page.open_all()
        texts.append(await page.whole_text())
    return "\n".join(texts)


async def test_no_view_and_no_copy_has_a_secret(gateway: RunningGateway, opened: Open) -> None:
    for _ in range(2):
        answer = await gateway.client.post(
            "/v1/chat/completions",
            params={"key": CANARIES["google"]},
            json={"model": "demo-text", "messages": _conversation(), "stream": True},
            headers={"x-api-key": CANARIES["anthropic"], "cookie": CANARIES["jwt"], "user-agent": CANARIES["github"]},
        )
        assert answer.status_code == 200
    request_id = answer.headers["x-request-id"]
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        answers: list[str] = []
        viewer.page.on("response", lambda response: answers.append(response.url))
        await page.open(request_id)
        assert _left(await _views(page)) == set()
        await page.show("Messages")
        await page.reveal()
        shown = await _views(page)
        assert _left(shown) == set() and "[key:openai:" in shown and "Repeat: " in shown
        async for copied in page.copies():
            assert copied and _left(copied) == set() and _left(await page.whole_text()) == set()
        assert _left("\n".join([*answers, *viewer.asked])) == set()
