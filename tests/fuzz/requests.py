"""What the laws of several APIs' requests share: bodies that are nearly sound, their decoding, and its work."""

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.dialect import ClientRequest, Dialect, RequestHead
from gateway.dialects.document import Document, read_document
from tests.fuzz.counted import Work, count_work
from tests.fuzz.strategies import TEXTS, WILD, encoded, objects


@st.composite
def requests(
    draw: st.DrawFn, required: Mapping[str, st.SearchStrategy[Json]], fields: Mapping[str, st.SearchStrategy[Json]]
) -> bytes:
    """A body with these fields, the latter of which may be absent; one field at the most is anything."""
    document = {name: draw(values) for name, values in required.items()} | draw(objects(**fields))
    for name in draw(st.lists(st.sampled_from(sorted(document)) | TEXTS, max_size=1)):
        document[name] = draw(WILD)
    return encoded(document)


def decoded(dialect: Dialect, head: RequestHead, body: bytes) -> ClientRequest | None:
    """The request of a body; None: it is refused with an error of the client's."""
    try:
        return dialect.decode(read_document(body), head)
    except InvalidRequest as error:
        assert 400 <= error.status < 500
        assert dialect.encode_error(error).body
        return None


def check_growth(decode: Callable[[Document], object], body: Callable[[int], bytes]) -> None:
    """The work of decoding grows as the request does: `body` is one of a size."""

    def work(size: int) -> Work:
        document = read_document(body(size))
        return count_work(lambda: decode(document))

    small, large = work(512), work(2048)
    assert large.steps < 6 * small.steps and large.bytes < 6 * small.bytes
