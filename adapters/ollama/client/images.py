"""Reads the images of Ollama, which are Base64 text without a media type, as images by URL."""

import binascii
from typing import Final

from gateway.core.conversation import Image, Json
from gateway.core.data_url import data_url, held_data
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import kind_of

# The first bytes of a file of each type.
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)
# Base64 of as many bytes as the longest signature has.
_BEGINNING: Final = 16


def read_images(value: Json, place: str) -> tuple[Image, ...]:
    """Returns the images in the array at `place`, which may be absent.

    Raises InvalidRequest, which names the image that is no Base64 text or of an unknown type.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidRequest(f"{place} must be an array; it is {kind_of(value)}.", code="invalid_type", param=place)
    return tuple([Image(_url(image, f"{place}[{item}]"), item=item) for item, image in enumerate(value)])


def image_text(image: Image) -> str:
    """Returns the image as Ollama writes it: the Base64 text of a `data:` URL; of any other the URL."""
    held = held_data(image.url)
    return image.url if held is None else held.data


def _url(image: Json, place: str) -> str:
    if not isinstance(image, str):
        raise InvalidRequest(f"{place} must be text; it is {kind_of(image)}.", code="invalid_type", param=place)
    # Lines may be wrapped, as in mail.
    text = "".join(image.split())
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(f"{place} is not Base64 text.", param=place) from error
    media_type = _media_type(binascii.a2b_base64(text[:_BEGINNING]))
    if media_type is None:
        raise InvalidRequest(f"{place} is not a PNG, JPEG, GIF, WebP or BMP image.", param=place)
    return data_url(media_type, text)


def _media_type(beginning: bytes) -> str | None:
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if beginning.startswith(signature)), None)
