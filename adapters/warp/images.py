"""`data:` URLs of images in, base64 text and media type out, as the Warp wire carries them."""

import base64
import binascii
from typing import Final
from urllib.parse import unquote_to_bytes

from gateway.errors import InvalidRequest, Unsupported
from gateway.types import Image

_LINE_BREAKS: Final = str.maketrans("", "", " \t\r\n")


def is_data_url(image: Image) -> bool:
    """The image is in the URL itself, so nothing has to be fetched."""
    return image.url[:5].lower() == "data:"


def decode_image(image: Image, param: str) -> tuple[bytes, str]:
    """The image as base64 text (the wire does not want the raw bytes) and its media type.

    `param` is the client's path of the part. Raises Unsupported for a URL that would have to be fetched, because an
    adapter fetches nothing, and InvalidRequest for a `data:` URL that holds no image.
    """
    if not is_data_url(image):
        raise Unsupported(
            f"{param} is not supported here: this backend cannot fetch an image; send it as a data: URL.",
            param=param,
        )
    head, comma, body = image.url[len("data:") :].partition(",")
    media_type, *parameters = [part.strip().lower() for part in head.split(";")]
    if not comma or not media_type.startswith("image/"):
        raise _invalid(param, "its data: URL does not say image/...")
    return _base64_text(body, "base64" in parameters, param), media_type


def _base64_text(body: str, is_base64: bool, param: str) -> bytes:
    if not is_base64:
        return base64.b64encode(unquote_to_bytes(body))
    try:
        text = body.translate(_LINE_BREAKS).encode("ascii")
        if base64.b64decode(text, validate=True):
            return text
    except (binascii.Error, UnicodeEncodeError) as error:
        raise _invalid(param, "its base64 cannot be decoded") from error
    raise _invalid(param, "it is empty")


def _invalid(param: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{param} is not a usable image: {reason}.", param=param)
