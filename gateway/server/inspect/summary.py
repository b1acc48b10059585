"""Says in one value what the list of requests shows of one request."""

from typing import Literal, TypeAlias

import msgspec

# Whether the bytes of a request can be had, and why not: they were never kept, or gave way to those of later requests.
Contents: TypeAlias = Literal["kept", "never_kept", "evicted"]


class Cost(msgspec.Struct, frozen=True):
    """What a request costs by the prices of its model; `estimated`: its tokens were not counted by the backend."""

    amount: float
    currency: str
    estimated: bool = False


class Summary(msgspec.Struct, frozen=True):
    """One request. `seq` grows with the time of its beginning, `began` is a Unix time, `ms` counts from the request's
    head; `live`: it is being served. `changes` are those of the gateway by stage, `rules` the codes of its notices.
    `status` is 0 and `code` empty until they are known, and 499 for a client that left. `worker` counts from 1.
    `conversation` is equal for requests of one client whose first user messages are equal; empty where no contents are
    kept. `tokens_estimated`: the tokens were not counted by the backend. `cost` null: the model has no price, or the
    tokens are not known."""

    seq: int
    id: str
    began: float
    method: str
    path: str
    dialect: str
    key: str
    model: str
    backend: str
    live: bool
    ms: float
    status: int = 0
    code: str = ""
    stream: bool = False
    changes: str = ""
    rules: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    contents: Contents = "never_kept"
    bytes: int = 0
    worker: int = 1
    conversation: str = ""
    tokens_estimated: bool = False
    cost: Cost | None = None
