"""The Jackdaw's wire: that of the Parrot, with a signature of each request (Signature Version 4 of AWS)."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar
from urllib.parse import quote, unquote

import msgspec

from gateway.adapter import UnsignedRequest
from tests.examples.parrot import ParrotAdapter, ParrotOptions

ALGORITHM = "AWS4-HMAC-SHA256"


class JackdawOptions(ParrotOptions, frozen=True, forbid_unknown_fields=True):
    """The Jackdaw's own keys in settings.json: the id of the key, which is no secret, and what it is valid for."""

    key_id: str = ""
    region: str = "us-east-1"
    service: str = "jackdaw"


class JackdawAdapter(ParrotAdapter):
    """A Parrot that signs. The variable in `api_key_env` holds the secret key, and where there is one, behind a colon
    the token of a session."""

    Options: ClassVar[type[msgspec.Struct]] = JackdawOptions

    def __init__(self, options: JackdawOptions, max_event: int) -> None:
        super().__init__(options, max_event)
        self._signing = options

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        secret, _, token = key.partition(":")
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/{self._signing.region}/{self._signing.service}/aws4_request"
        added = {"x-amz-date": stamp, **({"x-amz-security-token": token} if token else {})}
        signed = {
            name: " ".join(value.split())
            for name, value in sorted({**request.headers, **added}.items())
            if name in ("content-type", "host") or name.startswith("x-amz-")
        }
        canonical = [
            request.method,
            # Segments are encoded once more than in the request line, except for S3.
            quote(request.path, safe="/-_.~"),
            _query(request.query),
            *(f"{name}:{value}" for name, value in signed.items()),
            "",
            ";".join(signed),
            hashlib.sha256(request.body).hexdigest(),
        ]
        digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
        derived = f"AWS4{secret}".encode()
        for part in (*scope.split("/"), "\n".join([ALGORITHM, stamp, scope, digest])):
            derived = hmac.digest(derived, part.encode(), "sha256")
        credential = f"Credential={self._signing.key_id}/{scope}"
        signature = f"{credential}, SignedHeaders={';'.join(signed)}, Signature={derived.hex()}"
        return {**added, "authorization": f"{ALGORITHM} {signature}"}


def _query(query: str) -> str:
    """Returns the parameters in the order of their names and values, each encoded as AWS does it."""
    pairs = (one.partition("=") for one in query.split("&") if one)
    encoded = sorted(
        (quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~")) for name, _, value in pairs
    )
    return "&".join(f"{name}={value}" for name, value in encoded)
