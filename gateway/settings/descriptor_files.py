"""Reads the files that describe a protobuf schema: a descriptor set, .proto files that protoc compiles, or the cache of
what a server described."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.settings.check import read_struct
from gateway.settings.values import BackendSettings

LARGEST: Final = 8 << 20
_COMPILE_S: Final = 10.0
_COMPILER: Final = "grpc_tools"
_SHOWN: Final = 600


class DescriptorFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either `set`, a file with a FileDescriptorSet that holds all its imports, or `files`, .proto files, and the
    folders in which their imports are looked up (`include`), or `reflection`, the backend itself by gRPC server
    reflection, and the file that keeps its answer (`cache`). Paths are relative to the working directory."""

    set: str | None = None
    files: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    reflection: bool = False
    cache: str | None = None


def read_descriptor_set(raw: Json, where: str) -> DescriptorSet:
    """Returns the descriptors in the files that the setting at `where` names. Raises SettingsError, also for files that
    do not compile, for a set of more than 8 MiB, and for a cache that does not exist yet."""
    source = read_struct(raw, DescriptorFiles, where)
    if [source.set is not None, bool(source.files), source.reflection].count(True) != 1:
        raise SettingsError(f"{where} must name one of `set`, `files` and `reflection`")
    if source.include and not source.files:
        raise SettingsError(f"{where}.include belongs to `files`")
    if (source.cache is not None) is not source.reflection:
        raise SettingsError(f"{where}.cache belongs to `reflection`, which needs it")
    data, origin = _data(source, where)
    if len(data) > LARGEST:
        raise SettingsError(f"{where}: the descriptors have {len(data)} bytes; {LARGEST} are allowed")
    return DescriptorSet(data, origin)


def _data(source: DescriptorFiles, where: str) -> tuple[bytes, str]:
    """Returns the descriptors, and a description of their source."""
    if source.set is not None:
        return _read(Path(source.set), f"{where}.set"), source.set
    if source.cache is None:
        return _compiled(source, f"{where}.files"), ", ".join(source.files)
    if not Path(source.cache).exists():
        advice = "`dragoman serve` and `dragoman schema fetch` write it"
        raise SettingsError(f"{where}.cache: there is no file {source.cache!r} yet; {advice}")
    return _read(Path(source.cache), f"{where}.cache"), f"reflection, cached in {source.cache}"


def reflection_cache(entry: BackendSettings) -> Path | None:
    """Returns the file that keeps the schema which the backend of this entry describes; None for another entry."""
    schema = entry.options.get("schema")
    if not isinstance(schema, dict) or schema.get("reflection") is not True:
        return None
    cache = schema.get("cache")
    return Path(cache) if isinstance(cache, str) else None


def _read(path: Path, where: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise SettingsError(f"{where}: {str(path)!r} cannot be read: {error.strerror}") from error


def _compiled(source: DescriptorFiles, where: str) -> bytes:
    for name in source.files:
        if not Path(name).is_file():
            raise SettingsError(f"{where}: there is no file {name!r}")
    if importlib.util.find_spec(_COMPILER) is None:
        raise SettingsError(f'{where}: protoc is missing: pip install "dragoman[proto]", or name a descriptor `set`')
    folders = dict.fromkeys([*source.include, *(str(Path(name).parent) for name in source.files)])
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "descriptors")
        # A child process: protoc writes its errors to file descriptor 2.
        command = [sys.executable, "-I", "-m", f"{_COMPILER}.protoc", "--include_imports"]
        command += [f"--descriptor_set_out={target}", *(f"-I{name}" for name in folders), *source.files]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_COMPILE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise SettingsError(f"{where}: protoc did not end within {_COMPILE_S:g} seconds") from error
        if done.returncode:
            raise SettingsError(f"{where}: {_complaint(done.stderr)}")
        return _read(target, where)


def _complaint(stderr: bytes) -> str:
    said = " ".join(stderr.decode("utf-8", "replace").split())[:_SHOWN]
    if "File not found" in said:
        return f"{said} (protoc itself has only google/protobuf/*: name the folder of any other import in `include`)"
    return said or "protoc failed without a message"
