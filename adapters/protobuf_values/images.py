"""Converts `data:` URLs of images into base64 text and a media type."""

import base64
import binascii
from typing import Final
from urllib.parse import unquote_to_bytes

from gateway.core.conversation import Image
from gateway.core.errors import InvalidRequest

_LINE_BREAKS: Final = str.maketrans("", "", " \t\r\n")


def decode_image(image: Image, param: str) -> tuple[bytes, str]:
    """Return the image as base64 text and its media type.

    `param` is the client's path of the part. Raises InvalidRequest for a URL that holds no image.
    """
    head, comma, body = image.url[len("data:") :].partition(",")
    media_type, *parameters = [part.strip().lower() for part in head.split(";")]
    if not comma or not media_type.startswith("image/"):
        raise _invalid(param, "its data: URL does not have a media type image/...")
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
