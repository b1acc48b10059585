"""In four situations the first screen of an opened request says what happened, why, and what was changed: nobody has to
scroll, press a button or know a rule by its code."""

from typing import Final

import pytest

from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.situations import PIECE, PIECES, REFUSAL, ROUNDS, SITUATIONS
from tests.browser.viewer import Look

pytestmark = BROWSER

LOOKS: Final = {
    "wide": Look(width=1280, height=800),
    "wide-dark": Look(width=1280, height=800, color_scheme="dark"),
    "phone": Look(width=390, height=844),
    "phone-dark": Look(width=390, height=844, color_scheme="dark"),
}
REPAIRED: Final = (
    "CALL_ARGS_TYPE changed arguments is an object, not JSON text",
    "CALLS_UNANSWERED added the call 'call_1' of 'weather' has no result; an error result is added",
    "TOOL_ID_UNKNOWN changed ",
)
# What must be read on the first screen: what happened, why, and what was changed.
WORDS: Final = {
    "codex": (
        "The backend demo-agent answered with",
        f"{ROUNDS} × TOOL_RESULT_SHORTENED shortened ",
        f"TOOL_RESULTS_LIMITED shortened Limiting tool results from {ROUNDS} to 9",
        f"HISTORY_LIMITED dropped Limiting history messages from {ROUNDS} to 49",
        "FIELD_NOT_SENT dropped the backend has no field for strict (30) of tools",
    ),
    "failing": (
        "The backend acme refused the request with the status 429.",
        f"The backend says: {REFUSAL}",
        "What to do",
        "The gateway changed nothing that needs a look.",
    ),
    "broken": ("The backend demo-chat answered with", *REPAIRED),
    "streaming": (
        f"The backend acme is answering: {PIECES * len(PIECE):,} characters of text so far.",
        "stream",
        *REPAIRED,
    ),
}
# The words of the opened request of which every line is in view: inside the window and each box that scrolls.
_IN_VIEW: Final = """() => {
  const words = [];
  const walker = document.createTreeWalker(document.querySelector(".request"), NodeFilter.SHOW_TEXT);
  const isIn = (rect, box) =>
    rect.top >= box.top && rect.bottom <= box.bottom && rect.left >= box.left - 1 && rect.right <= box.right + 1;
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (!node.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(rect => rect.width > 0);
    if (rects.length === 0) continue;
    const boxes = [{top: 0, left: 0, bottom: innerHeight, right: innerWidth}];
    for (let one = node.parentElement; one !== null; one = one.parentElement)
      if (getComputedStyle(one).overflow !== "visible") boxes.push(one.getBoundingClientRect());
    if (rects.every(rect => boxes.every(box => isIn(rect, box)))) words.push(node.textContent);
  }
  return words.join(" ");
}"""


async def first_screen(page: InspectorPage) -> str:
    """Returns the words of the opened request that are read without scrolling."""
    await page.settled()
    words: str = await page.page.evaluate(_IN_VIEW)
    return " ".join(words.split())


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("name", SITUATIONS)
async def test_the_first_screen_answers(name: str, look: Look, opened: Open) -> None:
    async with SITUATIONS[name]() as situation, opened(situation.gateway.base_url, look) as viewer:
        page = InspectorPage(viewer)
        await page.open(situation.request_id)
        await page.panel()
        words = await first_screen(page)
        assert [one for one in WORDS[name] if one not in words] == [], words
