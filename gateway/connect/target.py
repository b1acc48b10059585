"""Decides what a client's configuration says of a gateway: its address, its models, and how a shell names a key."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gateway.core.errors import SettingsError
from gateway.settings import ServerSettings, Settings, nearest
from gateway.settings.local_url import local_url
from gateway.settings.model_names import ModelNames, exact_names

# Without client keys the gateway takes any, and most clients send one only if it is not empty.
ANY_KEY: Final = "unused"
# Stands for a key of a file, which nobody but its holder knows.
SOME_KEY: Final = "KEY"
# Stands in commands for the name of a model that a shell would take apart.
SOME_MODEL: Final = "MODEL"
# Names that only one machine or one network knows (RFC 6761, RFC 6762, RFC 8375).
_LOCAL_NAMES: Final = (".localhost", ".local", ".home.arpa")
_WORD: Final = re.compile(r"[\w./:@+=-]+", re.ASCII)
_ADDRESS: Final = re.compile(r"[\w.:/~%\[\]-]+", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{(url|model|each_model|key|context_length|max_output)\}")
_EACH: Final = "{each_model}"
# A whole text of this form becomes a number.
_NUMBER: Final = re.compile(r"\{(context_length|max_output):d\}")
_SIZE: Final = re.compile(r"\{(context_length|max_output)(:d)?\}")
# What Claude Code takes for a model that it does not know.
_MOST_OUTPUT: Final = 32_000


class Target(msgspec.Struct, frozen=True):
    """The gateway that a client shall ask: its address without a path, the model to begin with and all of them, a word
    of a shell that gives the key, and the context lengths and the longest answers that are known, in tokens by
    model."""

    url: str
    model: str
    models: tuple[str, ...]
    key: str = ANY_KEY
    context_lengths: Mapping[str, int] = {}
    max_outputs: Mapping[str, int] = {}

    def fill(self, text: str, model: str | None = None) -> str:
        """Returns a text with this gateway in the places of its placeholders."""
        values = {"url": self.url, "model": self.model, "each_model": model or self.model, "key": self.key}
        values |= {name: str(size) for name, size in self._sizes(model).items()}
        return _PLACEHOLDER.sub(lambda found: values[found[1]], text)

    def fill_commands(self, text: str) -> str:
        """Returns lines of a shell with this gateway; a model's name that is no single word there is `MODEL`."""
        model = self.model if _WORD.fullmatch(self.model) else SOME_MODEL
        return msgspec.structs.replace(self, model=model).fill(text)

    def fill_tree(self, tree: Any, model: str | None = None) -> Any:
        """Returns JSON with this gateway in its texts and names; an entry for each model stands once for each of them,
        and one with a size that is not known is left out. (Any: JSON.)"""
        if isinstance(tree, str):
            number = _NUMBER.fullmatch(tree)
            return self._sizes(model)[number[1]] if number else self.fill(tree, model)
        if isinstance(tree, list):
            return [self.fill_tree(item, one or model) for item in tree for one in self._models_of(item)]
        if isinstance(tree, dict):
            return {
                self.fill(key, one or model): self.fill_tree(value, one or model)
                for key, value in tree.items()
                for one in self._models_of(key)
                if self._sizes(one or model) or not _names_a_size(value)
            }
        return tree

    def _sizes(self, model: str | None) -> dict[str, int]:
        """Returns the values of the placeholders for the sizes of a model, None: the first one. Empty: not known."""
        name = model or self.model
        length = self.context_lengths.get(name)
        if length is None:
            return {}
        # A client keeps the length of an answer free in the context.
        longest = self.max_outputs.get(name, _MOST_OUTPUT)
        return {"context_length": length, "max_output": max(min(length // 4, longest), 1)}

    def is_public(self) -> bool:
        """Returns whether the address has HTTPS and is not known as a local or private one; no name is looked up."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme != "https":
            return False
        try:
            return ipaddress.ip_address(host).is_global
        except ValueError:
            return "." in host and not host.endswith(_LOCAL_NAMES)

    def _models_of(self, tree: Any) -> tuple[str | None, ...]:
        return self.models if _names_each_model(tree) else (None,)


def _names_each_model(tree: Any) -> bool:
    """Returns whether an entry is for each model: its own texts say so, those of lists below it do not."""
    if isinstance(tree, dict):
        return any(isinstance(value, str) and _EACH in value for value in tree.values())
    return isinstance(tree, str) and _EACH in tree


def _names_a_size(tree: Any) -> bool:
    return isinstance(tree, str) and _SIZE.search(tree) is not None


def settings_target(
    settings: Settings,
    model: str | None,
    url: str | None,
    environ: Mapping[str, str],
    known: bool = True,
    running: Sequence[str] = (),
) -> Target:
    """Returns the target of the settings, with a model and an address instead of theirs where they are given.

    `known` false: there is no settings file, so that any model may exist; `running` are those that a gateway lists at
    the address. Raises SettingsError."""
    listed = exact_names(settings.models) or running
    names = ModelNames(settings.models)
    if model is not None and known and names.find(model) is None:
        raise SettingsError(f"there is no model {model!r}{nearest(model, settings.models)}")
    first = model or next(iter(listed), None)
    if first is None:
        raise SettingsError(
            "the settings name no model by its whole name: choose one with --model"
            if known
            else "there is no settings file, and no gateway that lists its models: create a file with 'dragoman init', "
            "start 'dragoman demo', or give --model and --url"
        )
    models = tuple(dict.fromkeys((first, *listed)))
    for name in models:
        if not name.isprintable():
            raise SettingsError(f"the model {name!r} has characters that the files of clients cannot hold")
    entries = {name: entry for name in models if (entry := names.find(name)) is not None}
    lengths = {name: entry.context_length for name, entry in entries.items() if entry.context_length is not None}
    longest = {name: most for name, entry in entries.items() if (most := entry.facts.max_output) is not None}
    return Target(address_of(settings, url), first, models, _key_word(settings.server, environ), lengths, longest)


def address_of(settings: Settings, url: str | None) -> str:
    """Returns the address of the gateway without a path: that of the settings, or the one that a person gave instead.
    Raises SettingsError."""
    return local_url(settings.server.host, settings.server.port) if url is None else read_address(url)


def key_reference(server: ServerSettings, environ: Mapping[str, str]) -> str:
    """Returns the placeholder of a client's key in a printed command, where one is needed: never the key itself."""
    if server.api_keys_env and environ.get(server.api_keys_env):
        return f"${{{server.api_keys_env}%%,*}}"
    return SOME_KEY if server.api_keys_file else ""


def _key_word(server: ServerSettings, environ: Mapping[str, str]) -> str:
    reference = key_reference(server, environ)
    return f'"{reference}"' if reference.startswith("$") else reference or ANY_KEY


def read_address(url: str) -> str:
    """Returns an address without a path that a person gave: `/v1` and a slash at its end are left out. Raises
    SettingsError for text that is no address."""
    refused = SettingsError(f"{url!r} is no address: it must begin with http:// or https:// and name a host")
    try:
        parts = urlsplit(url.rstrip("/").removesuffix("/v1"))
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        if parts.hostname and ":" in parts.hostname:
            ipaddress.ip_address(parts.hostname)
    except ValueError as error:
        raise refused from error
    if not sound or parts.username is not None or not _ADDRESS.fullmatch(url):
        raise refused
    return parts.geturl()
