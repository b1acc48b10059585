"""Reads `data:` URLs (RFC 2397), in which clients send images and files, as a media type and base64 text.

What clients write beyond the RFC is read as they mean it: base64 of the alphabet for URLs (RFC 4648, section 5), as
google-genai for Python sends it, with line breaks or without padding; and `image/jpg`, which no registry has.

A text of another charset becomes UTF-8: the APIs of the backends have no field for a charset.
"""

import base64
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from gateway.core.errors import InvalidRequest

_SCHEME: Final = "data:"
_NO_TYPE: Final = "text/plain"
_MEDIA_TYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
# Charsets of the web (WHATWG, Encoding) that Python decodes in linear time; its other codecs are no charsets of texts.
_CHARSET: Final = re.compile(
    r"iso-8859-\d+|latin1|windows-\d+|koi8-[ru]|utf-16(le|be)?|shift_jis|euc-(jp|kr)|gbk|gb18030|gb2312|big5"
)
_RENAMED: Final = {"image/jpg": "image/jpeg"}
_DIGITS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_WHITESPACE: Final = b" \t\r\n\f\v"
_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


class DataUrl(msgspec.Struct, frozen=True):
    """What a `data:` URL holds: its media type in lower case, without parameters, and the bytes as base64 text of the
    standard alphabet with padding. `str` gives the URL in the one form that every API reads."""

    media_type: str
    data: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.media_type};base64,{self.data}"


def is_data_url(url: str) -> bool:
    """Returns whether a URL has the scheme `data:`, in any case."""
    return url[: len(_SCHEME)].lower() == _SCHEME


def read_data_url(url: str) -> DataUrl:
    """Returns the content of a `data:` URL.

    Raises ValueError, with the reason, for one that has no comma, no media type of the form `type/subtype`, no data, or
    base64 that cannot be decoded.
    """
    head, comma, body = url[len(_SCHEME) :].partition(",")
    if not comma:
        raise ValueError("its data: URL has no comma before the data")
    media_type, *parameters = [part.strip().lower() for part in head.split(";")]
    # "%3B" and the like are no part of any registered type.
    media_type = media_type or _NO_TYPE
    if _MEDIA_TYPE.fullmatch(media_type) is None:
        raise ValueError("its data: URL has no media type of the form type/subtype")
    data = standard_base64(body) if "base64" in parameters else base64.b64encode(unquote_to_bytes(body)).decode()
    if not data:
        raise ValueError("its data: URL is empty")
    if media_type.startswith("text/"):
        data = _as_utf8(data, parameters)
    return DataUrl(_RENAMED.get(media_type, media_type), data)


def _as_utf8(data: str, parameters: Iterable[str]) -> str:
    """Returns the base64 of a text in UTF-8; that of a text whose charset is not known or wrong as it is."""
    charsets = (value.strip('"') for name, _, value in (one.partition("=") for one in parameters) if name == "charset")
    charset = next(charsets, "")
    if _CHARSET.fullmatch(charset) is None:
        return data
    try:
        return base64.b64encode(base64.b64decode(data).decode(charset).encode()).decode()
    except (LookupError, ValueError):
        return data


def held_data(url: str) -> DataUrl | None:
    """Returns the content of a URL; None for one of another scheme, and for a `data:` URL that cannot be read."""
    try:
        return read_data_url(url) if is_data_url(url) else None
    except ValueError:
        return None


def read_image(url: str, param: str) -> DataUrl:
    """Returns the image that the `data:` URL at the client's path `param` holds.

    Raises InvalidRequest, which names the path and the reason, for a URL that holds none.
    """
    try:
        held = read_data_url(url)
    except ValueError as error:
        raise InvalidRequest(f"{param} is not a usable image: {error}.", param=param) from error
    if not held.media_type.startswith("image/"):
        reason = "its data: URL does not have a media type image/..."
        raise InvalidRequest(f"{param} is not a usable image: {reason}.", param=param)
    return held


def data_url(media_type: str, data: str) -> str:
    """Returns the `data:` URL of base64 text in any of the forms that clients write. Text that is no base64 stays as it
    is, for `read_data_url` to report."""
    media_type = media_type.strip().lower()
    try:
        return str(DataUrl(_RENAMED.get(media_type, media_type), standard_base64(data)))
    except ValueError:
        return f"{_SCHEME}{media_type};base64,{data}"


def standard_base64(text: str) -> str:
    """Returns base64 text in the standard alphabet, with padding and in one line.

    Raises ValueError for a character outside both alphabets, and a length that no encoder writes.
    """
    try:
        given = text.encode("ascii")
    except UnicodeEncodeError:
        raise ValueError("its base64 cannot be decoded") from None
    if b"%" in given:
        given = unquote_to_bytes(given)
    digits = given.rstrip(b"=")
    if digits.translate(None, _DIGITS):
        digits = given.translate(_TO_STANDARD, _WHITESPACE).rstrip(b"=")
        if digits.translate(None, _DIGITS):
            raise ValueError("its base64 cannot be decoded")
    if len(digits) % 4 == 1:
        raise ValueError("its base64 cannot be decoded")
    padding = b"=" * (-len(digits) % 4)
    return text if len(given) == len(text) and digits + padding == given else (digits + padding).decode()
