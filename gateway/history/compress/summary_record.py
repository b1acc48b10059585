"""Defines a summary as it is stored: written once, read by every worker, and the same bytes for the same values."""

from typing import Final

import msgspec

from gateway.history.compress.summary_content import Known, SummaryContent

FORM: Final = 1


class RecordUnreadable(ValueError):
    """The bytes are no record of this form."""


class Producer(msgspec.Struct, frozen=True):
    """Who wrote a summary: the route, the backend and the model, and the id of the request that started the job."""

    route: str
    backend: str
    model: str
    request_id: str


class Cost(msgspec.Struct, frozen=True):
    """What a summary cost and saved.

    `tokens_in` and `tokens_out` are the job's own (`estimated`: the backend reported none); `covered_tokens` is the
    estimate of the turns that it replaces, `summary_tokens` that of the text instead of them.
    """

    tokens_in: int
    tokens_out: int
    estimated: bool
    milliseconds: int
    covered_tokens: int
    summary_tokens: int


class SummaryRecord(msgspec.Struct, frozen=True):
    """The summary of the turns that `digest` stands for. Never changed under one tenant, digest and prompt version.

    `turns` counts the covered turns behind the system run. `generation` is 1 for a summary of the turns themselves, and
    grows by one with each that continues another, whose digest is `parent`. `created` is in seconds since 1970. `text`
    is what the model reads instead of the turns.
    """

    tenant: str
    digest: bytes
    turns: int
    root: bytes
    generation: int
    parent: bytes | None
    prompt_version: int
    created: float
    producer: Producer
    cost: Cost
    content: SummaryContent
    known: Known
    text: str
    form: int = FORM

    def encode(self) -> bytes:
        """Returns the record as MessagePack."""
        return msgspec.msgpack.encode(self)


def decode_record(data: bytes) -> SummaryRecord:
    """Returns the record in these bytes. Raises RecordUnreadable for anything else, a record of another form too."""
    try:
        record = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordUnreadable(str(error)) from error
    if record.form != FORM:
        raise RecordUnreadable(f"form {record.form} of a record")
    return record


_DECODER: Final = msgspec.msgpack.Decoder(SummaryRecord)
