"""Checks and writes the metadata of a call: headers of the request that are no credentials.

Source: gRPC, "gRPC over HTTP2", Custom-Metadata (names are in lower case, values printable ASCII).
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from adapters.proto.backend.mapping_error import mapping_error

MODEL: Final = "$model"
REQUEST_ID: Final = "$request_id"
_NAME: Final = re.compile(r"[a-z0-9_.-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e]+")
_OTHER_NAME: Final = re.compile(r"\$(?!(?:model|request_id)(?!\w))")
_CREDENTIALS: Final = frozenset({"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key"})
_OF_CARRIER: Final = re.compile(
    r"accept|accept-encoding|connection|content-.*|grpc-.*|connect-.*|host|te|timeout|transfer-encoding|x-grpc-web"
)


def check_metadata(metadata: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the metadata. Raises OptionError for a name that belongs to the carrier or to a credential, and for text
    that no header can hold."""
    for name, value in metadata.items():
        place = f"metadata.{name}"
        if name in _CREDENTIALS:
            raise mapping_error(place, "a credential belongs in `api_key_env`, `api_key_header` and `api_key_scheme`")
        if not _NAME.fullmatch(name) or _OF_CARRIER.fullmatch(name):
            raise mapping_error(place, f"{name!r} is no name of metadata that can be set")
        if not _VALUE.fullmatch(value):
            raise mapping_error(place, "the value has characters that a header cannot have")
        if _OTHER_NAME.search(value):
            raise mapping_error(place, f"{value!r} has another name than {MODEL} and {REQUEST_ID}")
    return metadata


def write_metadata(metadata: Mapping[str, str], model: str, request_id: str) -> dict[str, str]:
    """Returns the headers of one request. The model's name is percent-encoded, except for its slashes."""
    named = quote(model, safe="/:@")
    return {name: value.replace(MODEL, named).replace(REQUEST_ID, request_id) for name, value in metadata.items()}
