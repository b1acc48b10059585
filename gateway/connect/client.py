"""Describes how each client is configured: one file of `clients/` for each, named as `dragoman connect` calls it.

Texts may hold `{url}` (the gateway's address, without a path), `{model}`, `{each_model}` and `{key}` (a word of a shell
that gives the client's key). An entry of a list or an object with `{each_model}` stands once for every model.
`{context_length}` and `{max_output}` are sizes of the model in tokens, numbers where they are written
`{context_length:d}`; a value of an object that has one is left out where it is not known.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

_SUFFIX: Final = ".toml"
_ADDRESS: Final = re.compile(r"\{url\}([\w./-]*)")


class ClientFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that a client reads, and what it must hold.

    `folders` are tried in order: the first one whose variables are set. The suffix of `name` tells the format.
    `content` and `defaults` are JSON with placeholders; `defaults` are keys that stay as they are where the file has
    them. `removed` are the paths of keys that the client refuses beside the content. `by_hand`: the program writes this
    file itself, a person enters the content there.
    """

    folders: tuple[str, ...]
    name: str
    content: Any
    defaults: Mapping[str, Any] = {}
    folders_macos: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    by_hand: bool = False


class Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One client: what it is called, and the dialect that it speaks.

    `key_variable` is the environment variable that holds its key, where it reads one, and `variables` are further ones.
    `fields` are what a person enters in its windows. `commands` are lines of a shell: what configures it where it has a
    command for that, and a first request. `notes` are sentences for its user. `public`: its provider's servers send the
    requests, and only to a public HTTPS address.
    """

    title: str
    dialect: str
    notes: str = ""
    public: bool = False
    key_variable: str | None = None
    variables: Mapping[str, str] = {}
    files: tuple[ClientFile, ...] = ()
    fields: Mapping[str, str] = {}
    commands: str = ""

    @property
    def path(self) -> str:
        """Returns what the client wants behind the gateway's address: the path of its base URL, empty for none."""
        found = _ADDRESS.search(msgspec.json.encode(self).decode())
        assert found is not None, f"{self.title} asks the gateway, and names its address"
        return found[1]


def client_names() -> tuple[str, ...]:
    """Returns the names of all clients, sorted."""
    found = (path.name for path in files("gateway.connect").joinpath("clients").iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def load_client(name: str) -> Client:
    """Returns the client of a name that `client_names` lists."""
    path = files("gateway.connect").joinpath("clients", f"{name}{_SUFFIX}")
    return msgspec.toml.decode(path.read_bytes(), type=Client)
