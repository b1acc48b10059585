"""Keeps the schemas that backends describe themselves in the caches that the settings name."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.settings import BackendSettings
from gateway.settings.descriptor_files import reflection_cache


async def update_caches(backends: Mapping[str, BackendSettings]) -> None:
    """Writes the cache of each backend whose schema comes from reflection. A backend that does not answer keeps the
    cache that it has, with a warning. Raises SettingsError where there is none."""
    reflecting = [(name, entry, cache) for name, entry in backends.items() if (cache := reflection_cache(entry))]
    await asyncio.gather(*(_update(name, entry, cache) for name, entry, cache in reflecting))


async def _update(name: str, entry: BackendSettings, cache: Path) -> None:
    # Imported only now: protobuf takes memory, and most gateways do without it.
    from gateway.server.upstream.schema_reflection import fetch_backend_schema

    try:
        fetched = await fetch_backend_schema(entry)
        write_cache(cache, fetched.descriptors)
    except SettingsError as error:
        _use_cache(f"backends.{name}.schema", cache, error)


def _use_cache(where: str, cache: Path, error: SettingsError) -> None:
    if not cache.exists():
        raise SettingsError(f"{where}: {error.message}, and there is no cache {str(cache)!r} yet") from error
    LOGGER.warning("%s: %s; the cache %s is used", where, error.message, cache)


def write_cache(path: Path, descriptors: DescriptorSet) -> None:
    """Replaces a file by the descriptors, whole or not at all. Raises SettingsError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(descriptors.data)
        Path(file.name).replace(path)
    except OSError as error:
        raise SettingsError(f"{str(path)!r} cannot be written: {error.strerror}") from error
