"""Writes the schema of published messages: `python published_schema.py MODULE CLASS...` prints a FileDescriptorSet.

A package around the module is not run, because it would import far more than the messages.
"""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet


def load(name: str) -> ModuleType:
    """Import a module with bare packages around it."""
    parts = name.split(".")
    for count in range(1, len(parts)):
        for root in sys.path:
            folder = Path(root, *parts[:count])
            # Without the file it is a namespace, which other distributions share.
            if (folder / "__init__.py").exists() and ".".join(parts[:count]) not in sys.modules:
                package = ModuleType(".".join(parts[:count]))
                package.__path__ = [str(folder)]
                sys.modules[package.__name__] = package
    return importlib.import_module(name)


def files(found: FileDescriptor, seen: set[str]) -> Iterator[FileDescriptor]:
    """Yield a file behind those that it imports."""
    if found.name in seen:
        return
    seen.add(found.name)
    for imported in found.dependencies:
        yield from files(imported, seen)
    yield found


def main(module: str, names: list[str]) -> None:
    """Print the set. Of a class of proto-plus, `pb` is the class of protobuf."""
    loaded = load(module)
    classes: list[Any] = [getattr(loaded, name) for name in names]
    described, seen = FileDescriptorSet(), set[str]()
    for one in classes:
        message = one.DESCRIPTOR if hasattr(one, "DESCRIPTOR") else one.pb().DESCRIPTOR
        for file in files(message.file, seen):
            file.CopyToProto(described.file.add())
    sys.stdout.buffer.write(described.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
