"""Makes the id of a request from its client's own, or a new one, and the ids of requests to backends."""

import os
import random
import uuid
from typing import Final

from gateway.core.secrets import without_secrets

_ids: Final = random.Random()
# Forked workers would otherwise continue with one and the same sequence.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.seed)
_ID_CHARS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def request_id(given: bytes | None) -> str:
    """Returns the client's own id when it is valid (1 to 128 harmless characters that do not look like a key), else a
    new one."""
    if given and len(given) <= 128 and _ID_CHARS.issuperset(given):
        own = given.decode("ascii")
        if without_secrets(own) == own:
            return own
    return f"req_{unique()}"


def unique() -> str:
    """Returns 24 hexadecimal digits that do not repeat. Not a secret: asking the kernel each time would cost 20 us."""
    return _ids.getrandbits(96).to_bytes(12, "big").hex()


def new_uuid() -> str:
    """Returns a random UUID (RFC 9562, version 4), the form of id that most services accept."""
    return str(uuid.UUID(int=_ids.getrandbits(128), version=4))
