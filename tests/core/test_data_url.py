"""Tests the reader of data: URLs against RFC 2397 and what clients write."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.data_url import DataUrl, data_url, held_data, is_data_url, read_data_url, read_image, standard_base64
from gateway.core.errors import InvalidRequest

JPEG = b"\xff\xd8\xff\xe0\xfb\xff"


@pytest.mark.parametrize(
    ("url", "media_type", "data"),
    [
        ("data:image/png;base64,iVBORw0K", "image/png", b"\x89PNG\r\n"),
        ("DATA:Image/PNG;BASE64,iVBORw0K", "image/png", b"\x89PNG\r\n"),
        ("data:image/png,abc%20", "image/png", b"abc "),
        ("data:image/svg+xml;charset=utf-8,%3Csvg/%3E", "image/svg+xml", b"<svg/>"),
        ("data:image/png;charset=binary;base64,iVBORw0K", "image/png", b"\x89PNG\r\n"),
        ("data:,A%20brief%20note", "text/plain", b"A brief note"),
        ("data:;base64,iVBORw0K", "text/plain", b"\x89PNG\r\n"),
        ("data:;charset=iso-8859-7,%be", "text/plain", "Ύ".encode()),
        ("data:image/jpg;base64,/9j/4A==", "image/jpeg", b"\xff\xd8\xff\xe0"),
        ("data:image/jpeg;base64,_9j_4Pv_", "image/jpeg", JPEG),
        ("data:image/jpeg;base64,/9j/4A", "image/jpeg", b"\xff\xd8\xff\xe0"),
        ("data:image/jpeg;base64,/9j/\r\n4A==", "image/jpeg", b"\xff\xd8\xff\xe0"),
        ("data:image/jpeg;base64,%2F9j%2F4A%3D%3D", "image/jpeg", b"\xff\xd8\xff\xe0"),
        ("data:image/png ; base64,iVBORw0K", "image/png", b"\x89PNG\r\n"),
    ],
)
def test_every_form_of_a_data_url_has_one_reading(url: str, media_type: str, data: bytes) -> None:
    read = read_data_url(url)
    assert (read.media_type, base64.b64decode(read.data, validate=True)) == (media_type, data)
    assert read_data_url(str(read)) == read


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("data:image/png;base64", "no comma"),
        ("data:image;base64,iVBORw0K", "type/subtype"),
        ("data:image/png;base64,", "empty"),
        ("data:image/png,", "empty"),
        ("data:image/png;base64,iVBORw0K!", "decoded"),
        ("data:image/png;base64,iVBOR", "decoded"),
        ("data:image/png;base64,iVBé", "decoded"),
    ],
)
def test_a_data_url_that_holds_nothing_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_data_url(url)


def test_the_scheme_has_any_case() -> None:
    assert is_data_url("dAtA:,x") and is_data_url("data:image/png;base64,")
    assert not is_data_url("https://example.org/data:") and not is_data_url("")


@given(st.binary(min_size=1))
def test_law_all_ways_to_write_bytes_are_one(data: bytes) -> None:
    written = base64.b64encode(data).decode()
    for text in (written, written.rstrip("="), base64.urlsafe_b64encode(data).decode(), quote(written, safe="")):
        assert standard_base64(text) == written
        assert data_url("image/png", text) == str(DataUrl("image/png", written))
    assert read_data_url(f"data:image/png,{quote(data, safe='')}").data == written
    assert standard_base64(written) is written, "what is already in that form is not copied"


PATH = "messages[1].content[2]"


def test_an_image_is_read_with_its_type() -> None:
    assert read_image("data:image/svg+xml,%3Csvg/%3E", PATH) == DataUrl(
        "image/svg+xml", base64.b64encode(b"<svg/>").decode()
    )


@pytest.mark.parametrize(
    "url", ["data:image/png;base64", "data:image/png;base64,A", "data:text/plain;base64,QQ==", "data:,", "data:,text"]
)
def test_a_data_url_without_an_image_is_an_invalid_request(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_image(url, PATH)
    assert (caught.value.param, caught.value.code) == (PATH, "invalid_value")


def test_other_urls_hold_nothing() -> None:
    assert held_data("https://example.org/a.png") is None
    assert held_data("data:image/png;base64,?") is None


@pytest.mark.parametrize(
    ("head", "written", "charset"),
    [
        ("text/plain;charset=iso-8859-1", "äé", "latin-1"),
        ('text/csv; Charset="Windows-1252"', "€", "cp1252"),
        ("text/plain;charset=utf-16", "日本", "utf-16"),
        ("text/plain;charset=Shift_JIS", "日本", "shift_jis"),
        ("text/plain;charset=utf-8", "ä", "utf-8"),
    ],
)
def test_a_text_of_another_charset_becomes_utf_8(head: str, written: str, charset: str) -> None:
    url = f"data:{head};base64,{base64.b64encode(written.encode(charset)).decode()}"
    held = read_data_url(url)
    assert (held.media_type, base64.b64decode(held.data).decode()) == (head.partition(";")[0], written)


@pytest.mark.parametrize(
    "head", ["text/plain;charset=punycode", "text/plain;charset=no-such", "text/plain;charset=us-ascii", "image/png"]
)
def test_bytes_that_are_no_text_of_a_known_charset_stay_as_they_are(head: str) -> None:
    assert read_data_url(f"data:{head};base64,5A==").data == "5A=="
