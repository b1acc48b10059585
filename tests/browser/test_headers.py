"""The page's headers as a browser obeys them: nothing runs in it or leaves it that is not its own."""

from typing import Any, Final

import pytest

from gateway.testing.gateway import RunningGateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER, REBOUND

pytestmark = BROWSER

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

# What would run or leave if it could -> whether it did.
TRIES: Final = {
    "a timer of text": "() => { try { setTimeout('window.ran = 1'); return true } catch { return false } }",
    "innerHTML": "() => { try { document.body.innerHTML += '<b></b>'; return true } catch { return false } }",
    "a policy of trusted types": """() => {
      try { trustedTypes.createPolicy("mine", {createHTML: it => it}); return true } catch { return false }
    }""",
    "a script": """() => { try {
      const script = document.createElement("script");
      script.textContent = "window.ran = 1";
      document.body.append(script);
    } catch {} return window.ran === 1 }""",
    "an attribute that runs": """() => {
      const button = document.createElement("button");
      try { button.setAttribute("onclick", "window.ran = 1") } catch {}
      button.click();
      return window.ran === 1;
    }""",
    "a style sheet": """() => {
      const style = document.createElement("style");
      style.textContent = "body { --ran: 1 }";
      document.head.append(style);
      return getComputedStyle(document.body).getPropertyValue("--ran") !== "";
    }""",
    "a request elsewhere": f"() => fetch('http://{REBOUND}:9/').then(() => true, () => false)",
    "a picture of elsewhere": f"""() => new Promise(done => {{
      const picture = Object.assign(new Image(), {{onload: () => done(true), onerror: () => done(false)}});
      picture.src = "http://{REBOUND}:9/x.png";
    }})""",
    "a form": """() => {
      const form = Object.assign(document.createElement("form"), {action: "/v1/models", target: "_self"});
      document.body.append(form);
      form.submit();
      return new Promise(done => setTimeout(() => done(location.pathname !== "/inspect")));
    }""",
}
# How the browser says that it was kept from something.
REFUSED: Final = ("Content Security Policy", "Trusted", "Failed to fetch", "ERR_")


@pytest.mark.parametrize("name", TRIES)
async def test_the_policy_is_obeyed(name: str, gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        assert await viewer.page.evaluate(TRIES[name]) is False
        viewer.excuse(*REFUSED)
        viewer.asked = [asked for asked in viewer.asked if REBOUND not in asked]


async def test_everything_of_the_page_has_its_headers(gateway: RunningGateway, opened: Open) -> None:
    answers: list[Any] = []
    async with opened(gateway.base_url) as viewer:
        viewer.page.on("response", lambda answer: answers.append(answer))
        await InspectorPage(viewer).open()
        heads = {answer.url.removeprefix(gateway.base_url): await answer.all_headers() for answer in answers}
    assert len(heads) > 20
    for path, headers in heads.items():
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["cross-origin-resource-policy"] == "same-origin", path
        assert not {"set-cookie", "access-control-allow-origin"} & headers.keys(), path
        if "/api/" in path:
            assert headers["cache-control"] == "no-store", path
        else:
            assert headers["content-security-policy"] == POLICY, path
            assert headers["referrer-policy"] == "no-referrer" and headers["etag"], path


async def test_the_page_asks_for_nothing_but_its_own_files_and_routes(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        own = (f"GET {gateway.base_url}/inspect/assets/", f"GET {gateway.base_url}/inspect/api/")
        assert [asked for asked in viewer.asked[1:] if not asked.startswith(own)] == []
        assert (
            await viewer.page.evaluate(
                "() => document.querySelectorAll('[style*=url], script:not([src]), style').length"
            )
            == 0
        )
