"""Writes the text of the PDF on standard input as JSON, in a process of its own (`gateway.server.media.pdf_process`).

It runs as a file, without the rest of the gateway. Its arguments are the folder of pypdf, and the most bytes of memory,
seconds of processor time, pages and characters. Before it reads a byte of the PDF it gives up what it does not need: it
can open no further descriptor, so neither a file nor a socket nor a program.
"""

import contextlib
import encodings
import importlib
import io
import json
import logging
import pkgutil
import resource
import sys
from types import ModuleType

UNREADABLE_PAGE = "[this page could not be read]"


def main() -> None:
    """Writes an object with the `text` and the number of `pages`, and how many of them could not be read (`lost`); or
    with the `problem`: `encrypted`, `pages`, `characters`, `empty`, `broken` or `memory`."""
    sys.path.append(sys.argv[1])
    memory, seconds, pages, characters = map(int, sys.argv[2:])
    import pypdf

    # A module that is loaded while the PDF is read could not be opened.
    _load_all(pypdf)
    _load_all(encodings)
    logging.disable()
    _give_up(memory, seconds)
    found: dict[str, str | int]
    try:
        found = _read(sys.stdin.buffer.read(), pages, characters)
    except MemoryError:
        found = {"problem": "memory"}
    except Exception:  # noqa: BLE001 (the boundary: a broken file can bring the parser to any error)
        found = {"problem": "broken"}
    sys.stdout.buffer.write(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))


def _load_all(package: ModuleType) -> None:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # Of another system, or of a package that is not installed.
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)


def _give_up(memory: int, seconds: int) -> None:
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        # Beside standard input, output and errors.
        (resource.RLIMIT_NOFILE, 3),
    ):
        resource.setrlimit(limit, (value, value))


def _read(data: bytes, most_pages: int, most_characters: int) -> dict[str, str | int]:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted:
        return {"problem": "encrypted"}
    pages = len(reader.pages)
    if pages > most_pages:
        return {"problem": "pages", "pages": pages}
    texts: list[str] = []
    lost = characters = 0
    for number in range(pages):
        try:
            text = reader.pages[number].extract_text().strip()
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (the boundary of a page: the others must still be read)
            lost += 1
            text = UNREADABLE_PAGE
        characters += len(text)
        if characters > most_characters:
            return {"problem": "characters", "pages": pages}
        texts.append(text)
    if lost == pages:
        return {"problem": "broken", "pages": pages}
    if not any(text and text != UNREADABLE_PAGE for text in texts):
        return {"problem": "empty", "pages": pages}
    text = "\n\n".join([f"[page {number}]\n{text}" for number, text in enumerate(texts, 1)])
    return {"text": text, "pages": pages, "lost": lost}


if __name__ == "__main__":
    main()
