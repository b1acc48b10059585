"""Reads the files that describe a protobuf schema: a descriptor set, or .proto files that protoc compiles."""

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

LARGEST: Final = 8 << 20
_COMPILE_S: Final = 10.0
_COMPILER: Final = "grpc_tools"
_SHOWN: Final = 600


class DescriptorFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either `set`, a file with a FileDescriptorSet that holds all its imports, or `files`, .proto files, and the
    folders in which their imports are looked up (`include`). Paths are relative to the working directory."""

    set: str | None = None
    files: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


def read_descriptor_set(raw: Json, where: str) -> DescriptorSet:
    """Returns the descriptors in the files that the setting at `where` names. Raises SettingsError, also for files that
    do not compile and for a set of more than 8 MiB."""
    source = read_struct(raw, DescriptorFiles, where)
    if (source.set is None) is not bool(source.files):
        raise SettingsError(f"{where} must name either a `set` or `files`")
    if source.set is not None and source.include:
        raise SettingsError(f"{where}.include belongs to `files`; a `set` holds its imports")
    data = _compiled(source, f"{where}.files") if source.set is None else _read(Path(source.set), f"{where}.set")
    if len(data) > LARGEST:
        raise SettingsError(f"{where}: the descriptors have {len(data)} bytes; {LARGEST} are allowed")
    return DescriptorSet(data, ", ".join(source.files) if source.set is None else source.set)


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
