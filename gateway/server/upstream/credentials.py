"""Builds the header that authorizes a backend request from an environment variable or a refresh token.

No log line, error message or repr contains a secret.
"""

import asyncio
import base64
import contextlib
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendUnavailable, SettingsError
from gateway.core.secrets import written_forms
from gateway.framing.json_text import NotJson, decode_json
from gateway.server.log.logger import LOGGER
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.http.headers import check_header, is_header_value
from gateway.settings import BackendSettings, RefreshCredential, secret

EARLY_S: Final = 300
TIMEOUT_S: Final = 5
FALLBACK_LIFETIME_S: Final = 3600
SHORTEST: Final = 4
CUT: Final = "…"
REDACTED: Final = "[redacted]"
# A value in `headers` may also be a word like `close`.
SHORTEST_HEADER: Final = 6
BASIC: Final = "basic"


class Credential(Protocol):
    """The credential of one backend. `identity` is a digest that stays the same while a token is refreshed."""

    refreshable: bool
    identity: str

    @property
    def ready(self) -> Mapping[str, str] | None:
        """The value that `headers` would return, if it is known without waiting."""
        ...

    async def headers(self) -> Mapping[str, str]:
        """Returns the headers that authorize a request. Raises BackendError when there is no valid credential."""
        ...

    async def refresh(self, refused: Mapping[str, str]) -> None:
        """Replaces the credential, if `refreshable`, after the backend has refused these headers with a 401. Raises
        BackendError."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets of this credential."""
        ...

    def redact(self, text: str) -> str:
        """Returns the text without them."""
        ...


async def with_credential(
    credential: Credential, send: Callable[[Mapping[str, str]], Awaitable[BackendResponse]]
) -> BackendResponse:
    """Returns the response of the request that `send` sends with the headers given. A 401 refreshes the credential once
    where that is possible; the request may be sent again, since after a 401 nothing has run. Raises BackendError."""
    headers = credential.ready
    if headers is None:
        headers = await credential.headers()
    response = await send(headers)
    if response.status != 401 or not credential.refreshable:
        return response
    response.close()
    await credential.refresh(headers)
    return await send(await credential.headers())


async def with_credential_once(
    credential: Credential, send: Callable[[Mapping[str, str]], Awaitable[BackendResponse]]
) -> BackendResponse:
    """Returns the response of a request that cannot be sent again. A 401 refreshes the credential where that is
    possible, for the next request. Raises BackendError, then one that a client may answer by sending it again."""
    headers = await credential.headers()
    response = await send(headers)
    if response.status != 401 or not credential.refreshable:
        return response
    response.close()
    await credential.refresh(headers)
    raise BackendError(
        "The backend refused the gateway's credential, which was renewed. Send the request again.",
        status=503,
        code="upstream_auth_error",
        headers={"retry-after": "1"},
    )


class StaticCredential:
    """A key that never changes, or no key at all."""

    refreshable = False

    def __init__(self, header: str = "", value: str | None = None, scheme: str | None = None) -> None:
        """`scheme` stands before the value; None: `Bearer` in `authorization`, unless the value has one, and none in
        any other header. Raises ValueError, whose text never repeats the value, for one that cannot be sent so."""
        self.identity = _digest(value or "")
        self.ready: Mapping[str, str] = {}
        self.secrets: tuple[str, ...] = ()
        if value is None:
            return
        token = value
        self.secrets = _known(value, *_parts(value))
        if scheme is not None and scheme.lower() == BASIC:
            token = _basic(value)
            # An answer may quote the password alone.
            self.secrets = _known(value, value.partition(":")[2], token)
        written = _with_scheme(header, token, scheme)
        check_header(header, written)
        self.ready = {header.lower(): written}

    async def headers(self) -> Mapping[str, str]:
        return self.ready

    async def refresh(self, refused: Mapping[str, str]) -> None:
        pass

    def redact(self, text: str) -> str:
        return redact_secrets(text, *self.secrets)


class SigningKey:
    """A key that signs requests, and that no request holds."""

    refreshable = False
    ready: Mapping[str, str] = {}

    def __init__(self, value: str) -> None:
        self.value = value
        self.identity = _digest(value)
        # A key may consist of parts, such as the id of a key, the key and a token.
        self.secrets = _known(value, *value.split(":"))

    async def headers(self) -> Mapping[str, str]:
        return self.ready

    async def refresh(self, refused: Mapping[str, str]) -> None:
        pass

    def redact(self, text: str) -> str:
        return redact_secrets(text, *self.secrets)


def _known(value: str, *forms: str) -> tuple[str, ...]:
    """Returns a secret and other forms of it; of these, a short one is a part of many words."""
    return tuple(dict.fromkeys((value, *(form for form in forms if len(form) >= SHORTEST))))


def _parts(value: str) -> Iterator[str]:
    """Yields what of a header's value is a secret by itself: the part after a scheme, and for Basic `USER:PASSWORD` and
    the password (RFC 7617, section 2)."""
    scheme, _, token = value.rpartition(" ")
    yield token
    if scheme.strip().lower() != BASIC:
        return
    with contextlib.suppress(ValueError):
        pair = base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode()
        yield pair
        yield pair.partition(":")[2]


def _basic(value: str) -> str:
    """Returns `USER:PASSWORD` as RFC 7617, section 2, encodes it. Raises ValueError for another text."""
    if ":" not in value or any(ord(character) < 0x20 or ord(character) == 0x7F for character in value):
        raise ValueError("the scheme Basic needs USER:PASSWORD, without control characters")
    return base64.b64encode(value.encode()).decode()


def _with_scheme(header: str, token: str, scheme: str | None) -> str:
    """Returns the value of a credential's header. Raises ValueError for a token that begins with its scheme."""
    if scheme is None:
        scheme = "Bearer" if header.lower() == "authorization" and " " not in token else ""
    elif scheme and token.lower().startswith(f"{scheme.lower()} "):
        raise ValueError(f"it begins with {scheme} already, which api_key_scheme puts before it")
    return f"{scheme} {token}" if scheme else token


class RefreshedCredential:
    """A bearer token obtained with a refresh token (RFC 6749, section 6), refreshed five minutes before it expires.

    One refresh runs at a time; concurrent requests use its result. A refresh token that the issuer returns replaces the
    old one and is stored. A denied refresh token is never sent again: a new login is necessary.
    """

    refreshable = True

    def __init__(self, settings: RefreshCredential, first: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._first = first
        self.identity = _digest(first)
        self._clock = clock
        self._lock = asyncio.Lock()
        self._store = Path(settings.store) if settings.store else None
        self._refresh_token = first
        self._token = ""
        self._ends = 0.0
        self._denied: set[str] = set()

    @property
    def ready(self) -> Mapping[str, str] | None:
        return self._headers() if self._token and self._clock() < self._ends - EARLY_S else None

    async def headers(self) -> Mapping[str, str]:
        if self.ready is None:
            async with self._lock:
                if self.ready is None:
                    await self._refresh_or_keep()
        return self._headers()

    async def refresh(self, refused: Mapping[str, str]) -> None:
        async with self._lock:
            if refused.get("authorization") == f"Bearer {self._token}":
                await self._refresh()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self._token, self._refresh_token, self._first)

    def redact(self, text: str) -> str:
        return redact_secrets(text, *self.secrets)

    def _headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self._token}"}

    async def _refresh_or_keep(self) -> None:
        """Refreshes the token; keeps one that is still valid when the issuer is down."""
        try:
            await self._refresh()
        except BackendUnavailable:
            if not self._token or self._clock() >= self._ends:
                raise
            LOGGER.warning("token refresh failed; the current token is used until it expires")

    async def _refresh(self) -> None:
        refresh_token = self._stored() or self._refresh_token
        if refresh_token in self._denied:
            raise _denied()
        reply = await self._ask(refresh_token)
        token = reply.get(self._settings.token_field)
        if not isinstance(token, str) or not token or not is_header_value(token):
            raise BackendUnavailable("The token issuer's response contains no token.", code="upstream_auth_error")
        self._token = token
        self._ends = self._clock() + _seconds(reply.get("expires_in"))
        rotated = reply.get("refresh_token")
        self._refresh_token = rotated if isinstance(rotated, str) and rotated else refresh_token
        if self._refresh_token != refresh_token:
            self._keep()

    async def _ask(self, refresh_token: str) -> dict[str, Json]:
        # Imported with the first refresh: most credentials are keys.
        import httpx

        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, follow_redirects=False) as client:
                answer = await client.post(self._settings.token_url, data=form)
        except httpx.HTTPError as error:
            # The cause is left out: it shows the address, which may contain a key.
            raise BackendUnavailable(f"The request to the token issuer failed ({type(error).__name__}).") from None
        if answer.status_code in (400, 401, 403):
            self._denied.add(refresh_token)
            LOGGER.error("token refresh denied with status %d: a new login is required", answer.status_code)
            raise _denied()
        if answer.status_code != 200:
            raise BackendUnavailable(f"The token issuer responded with status {answer.status_code}.")
        try:
            reply = decode_json(answer.content)
        except NotJson:
            reply = None
        if not isinstance(reply, dict):
            raise BackendUnavailable("The token issuer's response is not a JSON object.")
        return reply

    def _stored(self) -> str | None:
        """Returns the token in the store, unless the environment contains a newer login since."""
        if self._store is None:
            return None
        try:
            kept = msgspec.json.decode(self._store.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return kept.refresh_token if kept.login == _digest(self._first) else None

    def _keep(self) -> None:
        if self._store is None:
            return
        kept = msgspec.json.encode(_Kept(_digest(self._first), self._refresh_token))
        fresh = self._store.with_name(f"{self._store.name}.new")
        try:
            self._store.parent.mkdir(parents=True, exist_ok=True)
            fresh.unlink(missing_ok=True)
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(kept)
            fresh.replace(self._store)
        except OSError as error:
            LOGGER.error("the rotated refresh token could not be stored: %s", error.strerror)


class _Kept(msgspec.Struct, frozen=True):
    """Content of the store's file: the token, and the digest of the login it descends from."""

    login: str
    refresh_token: str


def redact_secrets(text: str, *secrets: str) -> str:
    """Returns the text without these secrets, as they stand and as JSON, a URL and base64 write them; also without the
    beginning of one where a long text was cut."""
    for secret_value in secrets:
        # A shorter value is a placeholder, and a part of many words.
        if len(secret_value) < SHORTEST:
            continue
        for form in written_forms(secret_value):
            text = text.replace(form, REDACTED)
            if text.endswith(CUT):
                text = _redact_end(text.removesuffix(CUT), form) + CUT
    return text


def header_secrets(values: Iterable[str]) -> Iterator[str]:
    """Yields the secrets in headers from the settings: each value, and its parts that are secrets by themselves."""
    for value in values:
        yield from (part for part in dict.fromkeys((value, *_parts(value))) if len(part) >= SHORTEST_HEADER)


def _redact_end(text: str, secret_value: str) -> str:
    for size in range(min(len(secret_value), len(text)), SHORTEST - 1, -1):
        if text.endswith(secret_value[:size]):
            return text[:-size] + REDACTED
    return text


def check_signing(where: str, settings: BackendSettings) -> None:
    """Raises SettingsError for an entry whose adapter signs its requests, but that names no variable with a key, or has
    keys that belong to a credential in a header."""
    wrong = {
        "api_key_env": settings.api_key_env is None,
        "refresh": settings.refresh is not None,
        "api_key_scheme": settings.api_key_scheme is not None,
    }
    for key in filter(wrong.__getitem__, wrong):
        raise SettingsError(
            f"{where}.{key}: its adapter signs requests with the key in api_key_env, without refresh and api_key_scheme"
        )


def signing_key(settings: BackendSettings, environ: Mapping[str, str] = os.environ) -> SigningKey:
    """Returns the key of a backend entry that `check_signing` accepts. Raises SettingsError when its variable is not
    set."""
    value = secret(settings.api_key_env, environ)
    assert value is not None
    return SigningKey(value)


def credential_for(settings: BackendSettings, environ: Mapping[str, str] = os.environ) -> Credential:
    """Returns the credential that a backend entry names. Raises SettingsError when its variable is not set, or contains
    what its header or its scheme does not allow."""
    if settings.refresh is not None:
        first = secret(settings.refresh.refresh_token_env, environ)
        assert first is not None
        return RefreshedCredential(settings.refresh, first)
    value = secret(settings.api_key_env, environ)
    try:
        return StaticCredential(settings.api_key_header, value, settings.api_key_scheme)
    except ValueError as error:
        raise SettingsError(
            f"the environment variable {settings.api_key_env} cannot be sent as a header: {error}"
        ) from error


def _denied() -> BackendError:
    return BackendError(
        "The gateway's credential for this backend is no longer valid.",
        code="upstream_auth_error",
        headers={"x-should-retry": "false"},
    )


def _seconds(value: Json) -> float:
    """Returns `expires_in` as a number: some issuers send it as text."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else FALLBACK_LIFETIME_S
    except (ValueError, OverflowError):
        return FALLBACK_LIFETIME_S
    return seconds if 0 < seconds < 1e9 else FALLBACK_LIFETIME_S


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()
