"""Text of clients, models and backends stays text: no dialog, no element, no request, in any field of any view."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER, REBOUND
from tests.browser.viewer import Viewer

pytestmark = BROWSER

# Each element that one of them would make has the attribute data-made, each script that would run sets window.made.
RUN: Final = "window.made=1;alert(1)"
CORPUS: Final = (
    f"<script data-made>{RUN}</script>",
    f"</script><script data-made>{RUN}</script>",
    f'"><img data-made src=x onerror="{RUN}">',
    f"'><svg data-made onload={RUN}>",
    f"<img data-made src=http://{REBOUND}/made.png>",
    f'<iframe data-made srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<a data-made href="javascript:{RUN}">link</a>',
    f"javascript:{RUN}",
    f"[link](javascript:{RUN}) ![picture](http://{REBOUND}/made.png)",
    f"http://{REBOUND}/made",
    f"<style data-made>@import 'http://{REBOUND}/made.css'</style>",
    f"<base data-made href=//{REBOUND}/><form data-made action=//{REBOUND}/><button>",
    f"<object data-made data='data:text/html,<script>{RUN}</script>'></object>",
    f"<!--<img data-made src=x onerror={RUN}>-->",
    f'<math><mtext><table><mglyph><style><!--</style><img data-made title="--&gt;&lt;img src=1 onerror={RUN}&gt;">',
    f"&lt;script data-made&gt;{RUN}&lt;/script&gt; &#60;b data-made&#62; &amp;amp;",
    "{{constructor.constructor('window.made=1')()}} ${window.made=1} <%= window.made=1 %>",
    "__proto__ constructor toString",
    f"<details data-made open ontoggle={RUN}><template data-made><slot data-made>",
    f"<x-made data-made autofocus tabindex=1 onfocus={RUN}>",
    "\u202egnissem\u202c a\u0000b\u200bc\u2028d\ufeff \x1b[31mred\x7f",
    "]]><![CDATA[ <?xml?> \\u003cb\\u003e \\x3cb\\x3e %3Cb%3E",
)
EVERYTHING: Final = "\n".join(CORPUS)
ADMIN: Final = "admin-key-of-the-test"
CLIENT: Final = "client-key-of-the-test"
# Names are short, and some signs are not allowed in them.
NAME: Final = f"<img data-made src=x onerror={RUN}>"
ANSWERED: Final = "the answer"


def request(stream: bool) -> dict[str, Json]:
    """A request with the corpus in every field where text may stand."""
    arguments = json.dumps({"command": EVERYTHING, NAME: EVERYTHING})
    call: dict[str, Json] = {"id": NAME, "type": "function", "function": {"name": NAME, "arguments": arguments}}
    messages: list[Json] = [
        {"role": "system", "content": EVERYTHING},
        {"role": "user", "content": [{"type": "text", "text": EVERYTHING}], "name": NAME},
        {"role": "assistant", "content": EVERYTHING, "reasoning_content": EVERYTHING, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": NAME, "content": EVERYTHING},
        {"role": "tool", "tool_call_id": f"lost {NAME}", "content": EVERYTHING},
        {"role": "assistant", "content": None, "tool_calls": [{**call, "id": f"open {NAME}"}]},
    ]
    messages += [{"role": "user", "content": text} for text in CORPUS]
    function: Json = {"name": NAME, "description": EVERYTHING, "parameters": {"type": "object", "title": EVERYTHING}}
    return {
        "model": NAME,
        "stream": stream,
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
        "stop": [NAME],
        "user": EVERYTHING,
        "metadata": {"note": EVERYTHING},
        NAME: EVERYTHING,
    }


def said() -> Iterator[bytes]:
    """A stream that says the corpus, one line a read, in its reasoning, and in a call."""
    yield HEAD
    for text in CORPUS:
        yield _event({"delta": {"content": text}})
    yield _event({"delta": {"reasoning_content": EVERYTHING}})
    function: Json = {"name": NAME, "arguments": json.dumps({"command": EVERYTHING})}
    yield _event({"delta": {"tool_calls": [{"index": 0, "id": NAME, "type": "function", "function": function}]}})
    yield _event({"delta": {}, "finish_reason": "tool_calls"})
    yield chunk(b"data: [DONE]\n\n") + END


def _event(choice: dict[str, Json]) -> bytes:
    document = {"id": NAME, "model": NAME, "system_fingerprint": NAME, "choices": [{"index": 0, **choice}]}
    return chunk(b"data: %s\n\n" % json.dumps(document).encode())


def refused() -> bytes:
    error = {"message": EVERYTHING, "type": NAME, "code": NAME, "param": NAME}
    return answer("400 Bad Request", json.dumps({"error": error}).encode(), b"content-type: application/json")


async def _script(connection: Connection) -> None:
    """Streams for a stream, refuses everything else."""
    await connection.send(*(said() if b'"stream":true' in connection.body.replace(b" ", b"") else [refused()]))


@asynccontextmanager
async def hostile_gateway(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    """A gateway whose model has a hostile name, too, which is looked at with an admin key."""
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", ADMIN)
    keys = folder / "keys"
    # The name of a key is a word; no other is taken.
    keys.write_text(f"client:{CLIENT}\n")
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(_script))
        gateway = await stack.enter_async_context(
            running_gateway(
                {
                    "server": {"api_keys_file": str(keys)},
                    "inspector": {"enabled": "on", "contents": "always"},
                    "backends": {"b": {"adapter": "openai_chat", "base_url": backend.base_url}},
                    "models": {NAME: {"backend": "b"}},
                }
            )
        )
        gateway.client.headers["authorization"] = f"Bearer {CLIENT}"
        yield gateway


async def nothing_made(viewer: Viewer) -> None:
    """No text has become anything else so far."""
    made: Any = await viewer.page.evaluate(
        "() => [window.made ?? 0, document.querySelectorAll('[data-made]').length, document.scripts.length]"
    )
    assert made == [0, 0, 1]
    assert viewer.foreign() == [] and viewer.dialogs == []


async def _look_everywhere(page: InspectorPage, request_id: str) -> dict[str, str]:
    """Opens every view of a request, revealed, and returns the texts of each."""
    await page.open(request_id)
    await nothing_made(page.viewer)
    await page.reveal()
    shown: dict[str, str] = {}
    for view in ("Messages", "Sent", "Answer", "Since previous", "What if"):
        panel = await page.show(view)
        if view == "What if":
            await page.page.get_by_role("button", name="Show", exact=True).click()
            await panel.get_by_role("group", name="Messages by stage").wait_for()
        await page.open_all()
        shown[view] = await panel.evaluate("one => one.textContent")
        await nothing_made(page.viewer)
    shown["head"] = await page.request(request_id).evaluate("one => one.textContent")
    return shown


async def _copies(page: InspectorPage) -> None:
    async for _ in page.copies():
        await nothing_made(page.viewer)
    await page.page.keyboard.press("Escape")


@pytest.mark.parametrize("stream", [True, False], ids=["said", "refused"])
async def test_every_text_stays_text(
    stream: bool, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hostile_gateway(tmp_path, monkeypatch) as gateway, opened(gateway.base_url) as viewer:
        await gateway.client.post("/v1/chat/completions", json=request(stream))
        response = await gateway.client.post("/v1/chat/completions", json=request(stream))
        assert response.status_code == (200 if stream else 400), response.text
        request_id = response.headers["x-request-id"]
        page = InspectorPage(viewer)
        await viewer.page.goto(f"{gateway.base_url}/inspect#key={ADMIN}")
        assert NAME in await page.row(request_id).inner_text()
        await nothing_made(viewer)
        shown = await _look_everywhere(page, request_id)
        for text in CORPUS:
            assert text in shown["Messages"], text
            assert json.dumps(text, ensure_ascii=False)[1:-1] in shown["Sent"] or text in shown["Sent"], text
            assert not stream or text in shown["Answer"], text
        assert NAME in shown["head"]
        await _copies(page)
