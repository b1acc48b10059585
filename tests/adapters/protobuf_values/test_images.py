import base64

import pytest

from adapters.protobuf_values.images import decode_image
from gateway.core.conversation import Image
from gateway.core.errors import InvalidRequest

PATH = "messages[1].content[2]"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("data:image/png;base64,iVBORw0KGgo=", (b"iVBORw0KGgo=", "image/png")),
        ("DATA:IMAGE/PNG;BASE64,iVBORw0KGgo=", (b"iVBORw0KGgo=", "image/png")),
        ("data:image/png;charset=x;base64,iVBO\r\n Rw0KGgo=", (b"iVBORw0KGgo=", "image/png")),
        ("data:image/svg+xml,%3Csvg/%3E", (base64.b64encode(b"<svg/>"), "image/svg+xml")),
    ],
)
def test_an_image_travels_as_base64_text(url: str, expected: tuple[bytes, str]) -> None:
    assert decode_image(Image(url), PATH) == expected


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64",
        "data:image/png;base64,",
        "data:image/png;base64,A",
        "data:image/png;base64,ä",
        "data:text/plain;base64,QQ==",
        "data:,",
    ],
)
def test_a_data_url_without_an_image_is_an_invalid_request(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_image(Image(url), PATH)
    assert (caught.value.param, caught.value.code) == (PATH, "invalid_value")
