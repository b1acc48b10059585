"""Defines what is known of one provider or server of models: `Provider`."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.providers.profile import Profile
from gateway.providers.refusals import Refusal

MODELS_PATH: Final = "/v1/models"


class LockedReply(msgspec.Struct, frozen=True):
    """How a server answers a request without a key: members of the object, and a header and how its value begins."""

    signs: Mapping[str, Any]  # as those of a kind
    header: tuple[str, str] | None = None


class ServerKind(msgspec.Struct, frozen=True):
    """One kind of local server. It answers `path` with an object that has the members of `signs`: a value, or one of a
    type. `owner` is what its list of models names as `owned_by`, where that tells it from others with the same signs;
    `header` a response header and how its value begins. `locked` tells it where it answers nothing without a key: the
    header, and the members, of a refusal. `port` is the one that it takes by itself. `counter` is the name by which the
    adapter `openai_chat` knows its counter of tokens, and `text_wire` that by which the adapter `text` knows its
    wire of one text, where that can be held to a schema.
    """

    name: str
    title: str
    port: int | None
    path: str
    signs: Mapping[str, Any]  # types, JSON values, or objects of them
    owner: str | None = None
    header: tuple[str, str] | None = None
    locked: LockedReply | None = None
    profile: str | None = None
    counter: str | None = None
    text_wire: str | None = None


class HostedKind(msgspec.Struct, frozen=True):
    """One provider on the Internet: its backend entry. `named`: the words in capitals of its address are to be replaced
    by those of an account or a region."""

    name: str
    adapter: str
    base_url: str
    api_key_env: str
    profile: str | None = None
    api_key_header: str | None = None
    named: bool = False


class Provider(msgspec.Struct, frozen=True):
    """Everything that is known of one provider, or of one kind of server.

    - `profiles`: what it accepts, by the names that settings know: more than one where models or APIs of it differ.
    - `hosts`: the profile of each host of its OpenAI-compatible API; a star stands for the name of an account or a
      region.
    - `deployments`: its models go by the names of deployments, which users choose.
    - `hosted`: the backend entry that `dragoman init` writes for it.
    - `server`: how a server of this kind is known on a machine. Of two that fit, the one listed first is taken.
    - `refusals`: what it says of a request that it refuses, as a regular expression for each meaning.
    - `published_names`: what files about models call it (genai-prices, models.dev, LiteLLM), beside its own name.
    - `trace_name`: its name in traces, where the conventions for generative AI have another one.
    """

    name: str
    profiles: Mapping[str, Profile] = {}
    hosts: Mapping[str, str] = {}
    deployments: bool = False
    hosted: HostedKind | None = None
    server: ServerKind | None = None
    refusals: Mapping[Refusal, str] = {}
    published_names: tuple[str, ...] = ()
    trace_name: str | None = None
