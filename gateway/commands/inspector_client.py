"""Asks a running gateway for what only its operator may see."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx

API: Final = "/inspect/api"
_KEY: Final = "DRAGOMAN_ADMIN_KEY"


def open_client(url: str) -> "httpx.Client":
    """Returns a client for the gateway at an address, with the admin key of the environment."""
    import httpx

    key = os.environ.get(_KEY, "").strip()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False)


def get(client: "httpx.Client", path: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an answer of the gateway. Raises InvalidRequest with its own words. (Any: JSON.)"""
    import httpx

    from gateway.core.errors import InvalidRequest

    try:
        answer = client.get(f"{API}/{path}", params=parameters)
        found: dict[str, Any] = answer.json()
    except httpx.HTTPError as error:
        raise InvalidRequest(f"{client.base_url}: no gateway answers there ({type(error).__name__})") from error
    except ValueError as error:
        raise InvalidRequest(f"{client.base_url}: what answers there is no gateway of this version") from error
    if answer.status_code != 200:
        raise InvalidRequest(str(found.get("error", {}).get("message", answer.status_code)))
    return found
