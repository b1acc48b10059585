"""The inspector's page: who gets it, with which headers, and which files of its folder are served."""

from pathlib import Path
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.server.api.inspect import page_routes
from gateway.testing.gateway import running_gateway
from tests.server.api.inspect.test_routes import settings

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
DOCUMENT: Final = '<!doctype html><script type="module" src="inspect/assets/app.js"></script>'


@pytest.fixture(autouse=True)
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of its own, in place of the real one."""
    folder = tmp_path / "page"
    (folder / "vendor").mkdir(parents=True)
    for name in ("app.js", "page.css", "icon.svg", "vendor/part.mjs", "vendor/manifest.json", "vendor/LICENSE.txt"):
        (folder / name).write_text(f"/* {name} */")
    (folder / "index.html").write_text(DOCUMENT)
    (tmp_path / "outside.js").write_text("secret")
    monkeypatch.setattr(page_routes, "files", lambda package: tmp_path)
    return folder


async def test_the_page_and_its_assets() -> None:
    async with running_gateway(settings()) as gateway:
        answer = await gateway.client.get("/inspect")
        assert (answer.status_code, answer.text) == (200, DOCUMENT)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        types = {"app.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
        for name, media_type in {**types, "vendor/part.mjs": "text/javascript"}.items():
            found = await gateway.client.get(f"/inspect/assets/{name}")
            assert found.status_code == 200 and found.text == f"/* {name} */"
            assert found.headers["content-type"].partition(";")[0] == media_type
            assert found.headers["content-security-policy"] == answer.headers["content-security-policy"] == POLICY
            assert found.headers["x-content-type-options"] == "nosniff"
            assert found.headers["cross-origin-resource-policy"] == "same-origin"
            assert "set-cookie" not in found.headers and "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize(
    "name",
    [
        *("nothing.js", "", "vendor", "vendor/", "vendor/manifest.json", "vendor/LICENSE.txt"),
        *("../outside.js", "..%2foutside.js", "%2e%2e/outside.js", "/etc/passwd"),
    ],
)
async def test_nothing_else_of_the_disk_is_served(name: str) -> None:
    async with running_gateway(settings()) as gateway:
        address = gateway.client.base_url.copy_with(raw_path=f"/inspect/assets/{name}".encode())
        answer = await gateway.client.get(address)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_url")


async def test_a_client_that_has_a_file_does_not_get_it_again(page: Path) -> None:
    async with running_gateway(settings()) as gateway:
        tag = (await gateway.client.get("/inspect")).headers["etag"]
        for known in (tag, f'W/{tag}, "other"'):
            answer = await gateway.client.get("/inspect", headers={"if-none-match": known})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
        assert (await gateway.client.get("/inspect", headers={"if-none-match": '"other"'})).status_code == 200
    (page / "index.html").write_text("another")
    async with running_gateway(settings()) as gateway:
        assert (await gateway.client.get("/inspect")).headers["etag"] != tag


async def test_a_slash_at_the_end_leads_to_the_page() -> None:
    async with running_gateway(settings()) as gateway:
        answer = await gateway.client.get("/inspect/", follow_redirects=True)
        assert answer.url.path == "/inspect" and answer.text == DOCUMENT


async def test_the_page_needs_no_key_and_what_it_asks_for_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    async with running_gateway(settings(enabled="on")) as gateway:
        for path in ("/inspect", "/inspect/assets/app.js"):
            assert (await gateway.client.get(path)).status_code == 200
        for path in ("/inspect/api/settings", "/inspect/api/requests", "/inspect/api", "/inspect/assetsx"):
            assert (await gateway.client.get(path)).status_code == 401


@pytest.mark.parametrize(
    ("closed", "enabled", "advice"),
    [
        (
            {"allowed_hosts": ["gateway.example"]},
            "loopback",
            "Set DRAGOMAN_ADMIN_KEY and restart. Without an admin key",
        ),
        ({"api_keys_env": "KEYS"}, "loopback", "Set DRAGOMAN_ADMIN_KEY and restart. Without an admin key"),
        ({}, "off", 'Set inspector.enabled to "loopback" or "on" and restart.'),
    ],
)
async def test_there_is_no_page_where_nobody_may_look(
    closed: dict[str, Json], enabled: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYS", "client-key")
    async with running_gateway(settings(closed, enabled=enabled)) as gateway:
        for path in ("/inspect", "/inspect/", "/inspect/assets/app.js"):
            answer = await gateway.client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "inspector_off")
            assert advice in answer.json()["error"]["message"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_no_other_origin_gets_the_page(site: str) -> None:
    async with running_gateway(settings()) as gateway:
        answer = await gateway.client.get("/inspect", headers={"sec-fetch-site": site})
        assert answer.status_code == 403
