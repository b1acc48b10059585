"""Requests of the dialect, and what the gateway reads in them."""

import json
from typing import Any

import pytest

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import read_document


def decoded(input: Any = "Hello", **fields: Any) -> ClientRequest:
    """Return a request with this input as the gateway decodes it."""
    body = {"model": "m", "input": input, **fields}
    return OpenAIResponsesDialect().decode(read_document(json.dumps(body).encode()), RequestHead("/v1/responses"))


def read(input: Any = "Hello", **fields: Any) -> Conversation:
    return decoded(input, **fields).conversation


def refused(input: Any = "Hello", **fields: Any) -> InvalidRequest:
    """Return the error of a request that is refused."""
    with pytest.raises(InvalidRequest) as caught:
        decoded(input, **fields)
    return caught.value
