"""Names the gateway that exported requests are sent to, unless `DRAGOMAN_URL` says otherwise."""

import re
from typing import Final

LOCAL: Final = "http://127.0.0.1:8000"
# A shell and Python read nothing in it as their own.
_PLAIN: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,260}")


def plain_address(url: str) -> str:
    """Returns `scheme://host:port` as it is, and `LOCAL` for anything else: a client chooses its Host."""
    return url if _PLAIN.fullmatch(url) else LOCAL
