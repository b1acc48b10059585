"""Resolves a client's API key, from the environment or a file, to the client's name.

A key never leaves this module, and the module keeps only its digest.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.dialect import KeyPlace, RequestHead
from gateway.server.access.request_checks import is_loopback
from gateway.settings import ServerSettings, Settings, similar

# The name of every client while no keys are configured.
ANONYMOUS: Final = "-"
# The name of what the inspector sends again; it has no key.
INSPECTOR: Final = "inspector"
# The entry of `keys` for every client without an entry of its own.
DEFAULT_CLIENT: Final = "*"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")


class ApiKeys:
    """Maps digests of keys to names. Without keys, every client is admitted."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = tuple(names.items())

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def names(self) -> frozenset[str]:
        """The names that have a key."""
        return frozenset(name for _, name in self._names)

    def changes_from(self, before: "ApiKeys") -> str:
        """Lists the names whose keys differ from `before`; empty when all keys are the same."""
        old, new = before._digests(), self._digests()
        found = {
            "added": new.keys() - old.keys(),
            "removed": old.keys() - new.keys(),
            "changed": {name for name in new.keys() & old.keys() if new[name] != old[name]},
        }
        return "; ".join(f"{what}: {', '.join(sorted(names))}" for what, names in found.items() if names)

    def _digests(self) -> dict[str, set[bytes]]:
        return {name: {digest for digest, owner in self._names if owner == name} for name in self.names}

    def check(self, head: RequestHead, places: Sequence[KeyPlace]) -> str:
        """Returns the name of the request's key, the first in these places. Raises InvalidRequest 401: the check of a
        wrong key takes as long as that of a right one, and its error reveals no more than that of a missing key."""
        if not self._names:
            return ANONYMOUS
        key = b""
        for place in places:
            if key := place.read(head):
                break
        digest = hashlib.sha256(key).digest()
        found = ""
        for candidate, name in self._names:
            if hmac.compare_digest(digest, candidate):
                found = name
        if not found:
            schemes = ", ".join(place.scheme for place in places if place.scheme)
            raise InvalidRequest(
                f"A valid API key is required: send it as {places[0].line('KEY')!r}.",
                status=401,
                code="invalid_api_key",
                headers={"www-authenticate": schemes} if schemes else {},
            )
        return found


def load_keys(server: ServerSettings, environ: Mapping[str, str]) -> ApiKeys:
    """Reads the keys that the settings name. Raises SettingsError."""
    listed = environ.get(server.api_keys_env, "") if server.api_keys_env else ""
    names = {_digest(key): f"env-{number}" for number, key in enumerate(_split(listed), start=1)}
    if server.api_keys_file is not None:
        found = _read(server.api_keys_file)
        if not found:
            raise SettingsError(f"server.api_keys_file: no key was found in {server.api_keys_file}")
        names |= found
    return ApiKeys(names)


def check_names(settings: Settings, keys: ApiKeys) -> None:
    """Raises SettingsError when an entry of `keys` names no client, and when a client has the name of the inspector's
    own requests."""
    known = keys.names
    if settings.inspector.send:
        if INSPECTOR in known:
            raise SettingsError(
                f"a client key has the name {INSPECTOR!r}, which is that of what the inspector sends: rename it, or "
                "set inspector.send to false"
            )
        known |= {INSPECTOR}
    for name in settings.keys:
        if name != DEFAULT_CLIENT and name not in known:
            near = similar(name, known)
            advice = "" if near is None else f"; did you mean {near!r}?"
            raise SettingsError(f"keys.{name}: there is no client key with this name{advice}")


def check_exposure(server: ServerSettings, keys: ApiKeys, insecure: bool) -> None:
    """Raises SettingsError when clients outside this machine could reach the gateway without a key; `insecure`: the
    operator wants that."""
    if keys or insecure or is_loopback(server.host):
        return
    variable = server.api_keys_env or "DRAGOMAN_API_KEYS"
    raise SettingsError(
        f"serving {server.host} without client keys would accept every client: set {variable} or "
        "server.api_keys_file, or pass --insecure-no-key"
    )


def _split(listed: str) -> Iterator[str]:
    return (key for part in listed.split(",") if (key := part.strip()))


def _read(path: str) -> dict[bytes, str]:
    """Reads one `name:key` per line; # begins a comment. A name may have several keys, which allows key rotation."""
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
            # The error does not show the line: it may be a key without a name.
            raise SettingsError(f"server.api_keys_file: {path}, line {number}: the line must have the form name:key")
        digest = _digest(key)
        if names.get(digest, name) != name:
            raise SettingsError(
                f"server.api_keys_file: {path}, line {number}: this key already belongs to another name"
            )
        names[digest] = name
    return names


def _digest(key: str) -> bytes:
    """Returns the digest of a key, or the digest that the text states instead of a key."""
    given = _DIGEST.fullmatch(key)
    return bytes.fromhex(given[1]) if given else hashlib.sha256(key.encode()).digest()
