"""Writes what a person reads: the files, variables and commands that let a client ask a gateway."""

import shlex
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from gateway.connect.client import Client
from gateway.connect.config_file import text_of
from gateway.connect.target import Target

_WIDTH: Final = 100


def instructions(client: Client, target: Target, places: Iterable[str]) -> str:
    """Returns the whole configuration of a client. `places` are the paths of its files, as they are shown."""
    parts = [_about(client)]
    for place, file in zip(places, client.files, strict=True):
        parts += [f"{place}:", _indented(text_of(file, target))]
    return "\n\n".join([*parts, *_remaining(client, target)]) + "\n"


def remaining(client: Client, target: Target) -> str:
    """Returns the instructions that are left when the files are written."""
    return "\n\n".join(_remaining(client, target)) + "\n"


def variables(client: Client, target: Target) -> str:
    """Returns the command that sets a client's variables in a shell; empty where it reads none."""
    words = [f"{name}={shlex.quote(target.fill(value))}" for name, value in client.variables.items()]
    if client.key_variable is not None:
        words.append(f"{client.key_variable}={target.key}")
    return f"export {' '.join(words)}" if words else ""


def _remaining(client: Client, target: Target) -> Iterator[str]:
    if client.public and not target.is_public():
        yield f"Warning: the address below is not a public HTTPS one, and {client.title} refuses it."
    if client.fields:
        rows = [(name, target.fill(value)) for name, value in client.fields.items()]
        width = max(len(name) for name, _ in rows)
        yield "Enter:"
        yield _indented("\n".join(f"{name.ljust(width)}  {value}" for name, value in rows))
    lines = [line for line in (variables(client, target), target.fill_commands(client.commands).strip()) if line]
    if lines:
        yield "In a shell:"
        yield _indented("\n".join(lines))


def _about(client: Client) -> str:
    return textwrap.fill(f"{client.title} speaks the dialect {client.dialect}. {client.notes}", _WIDTH)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.rstrip("\n").splitlines())
