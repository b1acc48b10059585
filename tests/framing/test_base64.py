import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import BackendError, BackendProtocolError
from gateway.framing.base64 import decode_base64

LIMIT = 1 << 20

SAME = b"\xfb\xef\xbe\xff\x00a"


@pytest.mark.parametrize(
    "text",
    [
        base64.urlsafe_b64encode(SAME),
        base64.b64encode(SAME),
        base64.urlsafe_b64encode(SAME)[:4] + b"\n" + base64.urlsafe_b64encode(SAME)[4:],
        b" \t" + base64.b64encode(SAME) + b"\r\n",
    ],
)
def test_every_variant_stands_for_the_same_bytes(text: bytes) -> None:
    assert decode_base64(text, LIMIT) == SAME


@pytest.mark.parametrize(
    ("text", "value"),
    [(b"", b""), (b"QQ==", b"A"), (b"QQ", b"A"), (b"QQ=", b"A"), (b"QUE=", b"AA"), (b"QUE", b"AA"), (b"QUFB", b"AAA")],
)
def test_padding_may_be_missing(text: bytes, value: bytes) -> None:
    assert decode_base64(text, LIMIT) == value


@pytest.mark.parametrize(
    "text",
    [
        b"%%%",
        b"Q",
        b"QUFBQ",
        b"=",
        b"====",
        b"QQ===",
        b"QQ==QQ==",
        b"Q=Q=",
        b"QUFB=",
        b"QUFB==",
        b"QUFB===",
        b"QUFB====",
        b'"QQ=="',
        b"QQ\x00=",
        b"\xff" * 4,
    ],
)
def test_what_no_encoder_writes_is_refused(text: bytes) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        decode_base64(text, LIMIT)
    assert caught.value.code == "upstream_invalid_event"


@pytest.mark.parametrize("text", [b"-_+/", b"-A/A", b"QQ+_\n"])
def test_two_alphabets_in_one_text_are_refused(text: bytes) -> None:
    with pytest.raises(BackendProtocolError):
        decode_base64(text, LIMIT)


@pytest.mark.parametrize("length", range(9, 16))
def test_the_result_is_bounded_exactly(length: int) -> None:
    for text in (base64.b64encode(b"x" * length), base64.b64encode(b"x" * length).rstrip(b"=") + b"\n" * 40):
        if length <= 12:
            assert len(decode_base64(text, 12)) == length
        else:
            with pytest.raises(BackendProtocolError) as caught:
                decode_base64(text, 12)
            assert caught.value.code == "upstream_event_too_large"


@given(value=st.binary(max_size=80), urlsafe=st.booleans(), padded=st.booleans(), cuts=st.lists(st.integers(0, 120)))
def test_what_was_encoded_comes_back(value: bytes, urlsafe: bool, padded: bool, cuts: list[int]) -> None:
    text = base64.urlsafe_b64encode(value) if urlsafe else base64.b64encode(value)
    text = text if padded else text.rstrip(b"=")
    for cut in cuts:
        text = text[:cut] + b"\r\n" + text[cut:]
    assert decode_base64(text, LIMIT) == value


@given(text=st.binary(max_size=60) | st.text("QUF=-_+/ \n", max_size=12).map(str.encode))
def test_arbitrary_bytes_raise_nothing_else(text: bytes) -> None:
    try:
        decode_base64(text, LIMIT)
    except BackendError as error:
        assert error.status == 502
