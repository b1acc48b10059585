"""Fetches the schema of a gRPC server over HTTP/2, and keeps it in the cache that the settings name."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import BackendError, SettingsError
from gateway.protobuf.reflection import LARGEST, SERVICES, Reflection, reflection_path
from gateway.server.process.fd_limits import last_for_backends
from gateway.server.telemetry.log import LOGGER
from gateway.server.upstream.credentials import credential_for
from gateway.server.upstream.http.origin import read_url
from gateway.server.upstream.transport import Transport, encode_http2_head
from gateway.settings import BackendSettings
from gateway.settings.descriptor_files import reflection_cache

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


async def fetch_schema(base_url: str, headers: Mapping[str, str]) -> FetchedSchema:
    """Returns the schema that a server describes. `headers` are sent with each request. Raises SettingsError."""
    try:
        async with asyncio.timeout(LIMIT_S), Transport(_LARGEST_BODY, last_for_backends()) as transport:
            for service in SERVICES:
                reflection = Reflection()
                if await _collect(reflection, transport, base_url.rstrip("/") + reflection_path(service), headers):
                    return FetchedSchema(reflection.descriptor_set(), tuple(reflection.undescribed))
    except TimeoutError as error:
        raise SettingsError(f"reflection: the server did not answer within {LIMIT_S:g} s") from error
    except (BackendError, ValueError) as error:
        raise SettingsError(f"reflection: {error}") from error
    raise SettingsError("reflection: the server has no server reflection")


async def _collect(reflection: Reflection, transport: Transport, url: str, headers: Mapping[str, str]) -> bool:
    """Asks all questions. Returns False if the server does not implement the method."""
    head = encode_http2_head("POST", read_url(url), {**_HEADERS, **headers})
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


async def update_caches(backends: Mapping[str, BackendSettings]) -> None:
    """Writes the cache of each backend whose schema comes from reflection. A backend that does not answer keeps the
    cache that it has, with a warning. Raises SettingsError where there is none."""
    reflecting = [(name, entry, cache) for name, entry in backends.items() if (cache := reflection_cache(entry))]
    await asyncio.gather(*(_update(name, entry, cache) for name, entry, cache in reflecting))


async def _update(name: str, entry: BackendSettings, cache: Path) -> None:
    try:
        fetched = await fetch_backend_schema(entry)
        write_cache(cache, fetched.descriptors)
    except SettingsError as error:
        _use_cache(f"backends.{name}.schema", cache, error)


def _use_cache(where: str, cache: Path, error: SettingsError) -> None:
    if not cache.exists():
        raise SettingsError(f"{where}: {error.message}, and there is no cache {str(cache)!r} yet") from error
    LOGGER.warning("%s: %s; the cache %s is used", where, error.message, cache)


async def fetch_backend_schema(entry: BackendSettings) -> FetchedSchema:
    """Returns the schema that the backend of an entry describes, asked with its headers and its credential. Raises
    SettingsError."""
    try:
        credential = await credential_for(entry).headers()
    except BackendError as error:
        raise SettingsError(f"reflection: {error.message}") from error
    return await fetch_schema(entry.base_url, {**entry.headers, **credential})


def write_cache(path: Path, descriptors: DescriptorSet) -> None:
    """Replaces a file by the descriptors, whole or not at all. Raises SettingsError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(descriptors.data)
        Path(file.name).replace(path)
    except OSError as error:
        raise SettingsError(f"{str(path)!r} cannot be written: {error.strerror}") from error
