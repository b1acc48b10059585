"""The clients' keys, from the environment and a file -> the name of whoever asks.

A key itself never leaves this module, and even here only its digest is kept.
"""

import difflib
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gateway.errors import InvalidRequest, SettingsError
from gateway.server.door import Head
from gateway.settings import ServerSettings, Settings

# Who asks while there are no keys.
NOBODY: Final = "-"
# The entry of `keys` for everybody without one of their own.
ANYBODY: Final = "*"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")


class Keys:
    """Names by the digest of their key. No key: everybody is let in."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = tuple(names.items())

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def names(self) -> frozenset[str]:
        """Whose keys there are."""
        return frozenset(name for _, name in self._names)

    def check(self, head: Head) -> str:
        """Whose key this is. Raises InvalidRequest 401: a wrong key takes as long as a right one and is told no more
        than none."""
        if not self._names:
            return NOBODY
        scheme, _, key = head.get(b"authorization", b"").partition(b" ")
        digest = hashlib.sha256(key.strip()).digest()
        found = ""
        for candidate, name in self._names:
            if hmac.compare_digest(digest, candidate):
                found = name
        if not found or scheme.lower() != b"bearer":
            raise InvalidRequest(
                "A valid API key is needed: send it as 'Authorization: Bearer KEY'.",
                status=401,
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        return found


def load_keys(server: ServerSettings, environ: Mapping[str, str]) -> Keys:
    """The keys that the settings name. Raises SettingsError."""
    listed = environ.get(server.api_keys_env, "") if server.api_keys_env else ""
    names = {_digest(key): f"env-{number}" for number, key in enumerate(_split(listed), start=1)}
    if server.api_keys_file is not None:
        found = _read(server.api_keys_file)
        if not found:
            raise SettingsError(f"server.api_keys_file: there is no key in {server.api_keys_file}")
        names |= found
    return Keys(names)


def check_names(settings: Settings, keys: Keys) -> None:
    """Raises SettingsError when an entry of `keys` is for nobody."""
    for name in settings.keys:
        if name != ANYBODY and name not in keys.names:
            nearest = difflib.get_close_matches(name, keys.names, n=1, cutoff=0.5)
            advice = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise SettingsError(f"keys.{name}: there is no client key of this name{advice}")


def _split(listed: str) -> Iterator[str]:
    return (key for part in listed.split(",") if (key := part.strip()))


def _read(path: str) -> dict[bytes, str]:
    """`name:key` a line; # begins a remark. A name may have several keys, so that one can follow another."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"server.api_keys_file: {path} cannot be read: {reason}") from None
    names: dict[bytes, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, key = (part.strip() for part in line.partition(":"))
        if not _NAME.fullmatch(name) or not key:
            # The line is not shown: it may be a key without a name.
            raise SettingsError(f"server.api_keys_file: {path}, line {number}: it must be written name:key")
        digest = _digest(key)
        if names.get(digest, name) != name:
            raise SettingsError(f"server.api_keys_file: {path}, line {number}: this key has another name already")
        names[digest] = name
    return names


def _digest(key: str) -> bytes:
    """Of a key; or the one that stands in its place."""
    given = _DIGEST.fullmatch(key)
    return bytes.fromhex(given[1]) if given else hashlib.sha256(key.encode()).digest()
