"""Fetches the schema of a gRPC server over HTTP/2."""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import BackendError, SettingsError
from gateway.protobuf.reflection import LARGEST, SERVICES, Reflection, reflection_path
from gateway.registry import adapter_signs
from gateway.server.upstream.credentials import credential_for
from gateway.server.upstream.fd_limits import last_for_backends
from gateway.server.upstream.http.origin import Url, read_url
from gateway.server.upstream.transport import Transport, encode_http2_head
from gateway.settings import BackendSettings, TlsSettings

LIMIT_S: Final = 10.0
# The frames and the questions in the answers add little.
_LARGEST_BODY: Final = 2 * LARGEST
_HEADERS: Final = {"content-type": "application/grpc+proto"}
_OK: Final = "0"
_UNIMPLEMENTED: Final = "12"


class FetchedSchema(msgspec.Struct, frozen=True):
    """The schema of a server, and the services that it lists without describing them."""

    descriptors: DescriptorSet
    undescribed: tuple[str, ...]


async def fetch_schema(base_url: str, headers: Mapping[str, str], tls: TlsSettings | None = None) -> FetchedSchema:
    """Returns the schema that a server describes. `headers` are sent with each request, and `tls` names the files of
    TLS to it. Raises SettingsError."""
    try:
        async with asyncio.timeout(LIMIT_S), Transport(_LARGEST_BODY, last_for_backends()) as transport:
            for service in SERVICES:
                reflection = Reflection()
                url = read_url(base_url.rstrip("/") + reflection_path(service), tls)
                if await _collect(reflection, transport, url, headers):
                    return FetchedSchema(reflection.descriptor_set(), tuple(reflection.undescribed))
    except TimeoutError as error:
        raise SettingsError(f"reflection: the server did not answer within {LIMIT_S:g} s") from error
    except (BackendError, ValueError) as error:
        raise SettingsError(f"reflection: {error}") from error
    raise SettingsError("reflection: the server has no server reflection")


async def _collect(reflection: Reflection, transport: Transport, url: Url, headers: Mapping[str, str]) -> bool:
    """Asks all questions. Returns False if the server does not implement the method."""
    head = encode_http2_head("POST", url, {**_HEADERS, **headers})
    while questions := reflection.body():
        response = await transport.send(head, questions, LIMIT_S)
        body = bytearray()
        try:
            while data := await response.read():
                body += data
        finally:
            response.close()
        status = response.trailers.get("grpc-status") or response.headers.get("grpc-status")
        if status == _UNIMPLEMENTED:
            return False
        if response.status != 200 or status != _OK:
            raise SettingsError(f"reflection: the server's status is {status or response.status}")
        reflection.feed(bytes(body))
    return True


async def fetch_backend_schema(entry: BackendSettings) -> FetchedSchema:
    """Returns the schema that the backend of an entry describes, asked with its headers and its credential. Raises
    SettingsError, also where its adapter signs requests: it needs the schema first."""
    if adapter_signs("adapter", entry.adapter):
        raise SettingsError(
            "reflection: the adapter signs its requests, and has no schema yet; name a descriptor `set`"
        )
    try:
        credential = await credential_for(entry).headers()
    except BackendError as error:
        raise SettingsError(f"reflection: {error.message}") from error
    return await fetch_schema(entry.base_url, {**entry.headers, **credential}, entry.tls)
