"""Makes the TLS contexts of connections, and checks the certificates that the settings name for a backend."""

import re
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple

from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.settings import TlsSettings
from gateway.settings.source import Stamp, stamp_of

# How often files are looked at while requests come.
LOOK_S: Final = 1
# More than the roots of every system.
_LARGEST: Final = 8 << 20
_CERTIFICATE: Final = re.compile(f"{ssl.PEM_HEADER}[A-Za-z0-9+/=\\s]+{ssl.PEM_FOOTER}".encode())
_KEY: Final = re.compile(rb"\bBEGIN [A-Z ]*PRIVATE KEY-----")
# OpenSSL's reasons for a key of another certificate, or of another kind.
_NO_PAIR: Final = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
# What a server says of a client's certificate, or of its absence (RFC 8446, section 6.2), in OpenSSL's words.
_ABOUT_CERTIFICATE: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")


class _Made(NamedTuple):
    """A context, or why there is none, and the stamp of the files when they were read, or were last tried to be."""

    stamp: Stamp
    context: ssl.SSLContext | SettingsError


class TlsContexts:
    """The contexts of connections with files of TLS. The files of a backend are read again when a connection opens
    after they were replaced."""

    def __init__(self) -> None:
        self._made: dict[tuple[TlsSettings, str], _Made] = {}
        # Those of files that were checked, and that no connection has used yet.
        self._checked: dict[TlsSettings, _Made] = {}
        # What was seen of files, and the time until which that counts.
        self._seen: dict[TlsSettings, tuple[float, Stamp]] = {}

    def stamp(self, files: TlsSettings, now: float) -> Stamp:
        """Returns a value that changes when files are replaced, at most `LOOK_S` old at the loop's time `now`. While
        one is missing, it is the value from before."""
        until, stamp = self._seen.get(files, (0.0, None))
        if now >= until:
            stamp = stamp_of(_paths(files)) or stamp
            self._seen[files] = now + LOOK_S, stamp
        return stamp

    def check(self, files: TlsSettings) -> None:
        """Reads files, which the next connection uses even if they are replaced before by others that cannot be. Raises
        SettingsError for files that no connection can use."""
        stamp = stamp_of(_paths(files))
        self._checked[files] = _Made(stamp, load_context(files))

    def context(self, files: TlsSettings, alpn: str) -> ssl.SSLContext:
        """Returns the context for files and a protocol. Files that cannot be used leave the old ones in use, with one
        WARNING for each time that they change. Raises SettingsError where there are no old ones."""
        stamp = stamp_of(_paths(files))
        made = self._first(files, alpn) or self._made.get((files, alpn))
        if made is None or made.stamp != stamp:
            made = _Made(stamp, self._read(files, alpn, made))
        self._made[files, alpn] = made
        if isinstance(made.context, SettingsError):
            # A copy: a raised exception keeps the frames it went through.
            raise SettingsError(made.context.message) from made.context.__cause__
        return made.context

    def _first(self, files: TlsSettings, alpn: str) -> _Made | None:
        """Returns the context of the files' check, which belongs to one protocol from then on."""
        checked = self._checked.pop(files, None)
        if checked is not None and isinstance(checked.context, ssl.SSLContext):
            checked.context.set_alpn_protocols([alpn])
        return checked

    def _read(self, files: TlsSettings, alpn: str, old: _Made | None) -> ssl.SSLContext | SettingsError:
        try:
            context = load_context(files)
        except SettingsError as error:
            if old is None or isinstance(old.context, SettingsError):
                LOGGER.warning("the TLS files of a backend cannot be used: %s", error.message)
                return error
            LOGGER.warning("replaced TLS files cannot be used, and the old ones stay in use: %s", error.message)
            return old.context
        context.set_alpn_protocols([alpn])
        if old is not None:
            LOGGER.info("replaced TLS files are in use from the next connection on: %s", ", ".join(_paths(files)))
        return context


# What the start has checked is what connections begin with, and those for lists of models have the same.
BACKEND_CONTEXTS: Final = TlsContexts()


@cache
def tls_context(alpn: str) -> ssl.SSLContext:
    """Returns a context that trusts the system's certificates, checks host names, and negotiates one protocol alone."""
    context = ssl.create_default_context()
    context.set_alpn_protocols([alpn])
    return context


def load_context(files: TlsSettings | None) -> ssl.SSLContext:
    """Returns a new context that trusts the certificates of `ca_file`, or the system's where there is none, and that
    has the client certificate. Raises SettingsError, whose text begins with the setting and shows no contents."""
    if files is None:
        return ssl.create_default_context()
    return _with_client(_trusting(files.ca_file), files)


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return ssl.create_default_context()
    found = _certificates("ca_file", ca_file)
    try:
        return ssl.create_default_context(cadata=b"\n".join(found).decode())
    except ssl.SSLError as error:
        raise SettingsError(f"ca_file: {ca_file!r} holds a certificate that cannot be read") from error


def _with_client(context: ssl.SSLContext, files: TlsSettings) -> ssl.SSLContext:
    if files.cert_file is None:
        return context
    _certificates("cert_file", files.cert_file)
    setting, key_file = _key(files.cert_file, files.key_file)
    try:
        context.load_cert_chain(files.cert_file, key_file, _no_passphrase)
    except _EncryptedKey as error:
        raise SettingsError(f"{setting}: the key in {key_file!r} is encrypted; use one without a passphrase") from error
    except OSError as error:
        pair = isinstance(error, ssl.SSLError) and error.reason in _NO_PAIR
        reason = f"does not fit the certificate in {files.cert_file!r}" if pair else "cannot be used"
        raise SettingsError(f"{setting}: the key in {key_file!r} {reason}") from error
    return context


def _key(cert_file: str, key_file: str | None) -> tuple[str, str]:
    """Returns the setting and the file of the private key of a certificate."""
    setting, file = ("key_file", key_file) if key_file is not None else ("cert_file", cert_file)
    if not _KEY.search(_content(setting, file)):
        raise SettingsError(f"{setting}: {file!r} holds no private key in PEM form")
    return setting, file


def file_faults(files: TlsSettings) -> tuple[SettingsError, ...]:
    """Returns an error for each file that cannot be used, as `load_context` raises the first one; and if all can be
    read, one for a key that is not that of its certificate."""
    checks: list[Callable[[], object]] = [partial(_trusting, files.ca_file)]
    if files.cert_file is not None:
        checks.append(partial(_certificates, "cert_file", files.cert_file))
        checks.append(partial(_key, files.cert_file, files.key_file))
        checks.append(partial(_with_client, ssl.create_default_context(), files))
    found: dict[str, SettingsError] = {}
    for check in checks:
        try:
            check()
        except SettingsError as error:
            found.setdefault(error.message, error)
    return tuple(found.values())


class _EncryptedKey(Exception):
    """The file of a key asks for a passphrase."""


def _no_passphrase() -> str:
    # Without it OpenSSL would ask at the terminal.
    raise _EncryptedKey


def is_certificate_refusal(error: Exception | None) -> bool:
    """Returns whether the other side has ended TLS because of this side's certificate. With TLS 1.3 that is known only
    after the handshake."""
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    return "ALERT" in reason and any(word in reason for word in _ABOUT_CERTIFICATE)


def certificate_warnings(files: TlsSettings, now: datetime) -> Iterator[str]:
    """Yields what is wrong with the dates of the certificates in files that `load_context` has accepted."""
    for setting, path in (("ca_file", files.ca_file), ("cert_file", files.cert_file)):
        if path is None:
            continue
        for pem in _certificates(setting, path):
            begins, ends = _validity(ssl.PEM_cert_to_DER_cert(pem.decode()))
            if now > ends:
                yield f"{setting}: a certificate in {path!r} has expired on {ends:%Y-%m-%d}"
            elif now < begins:
                yield f"{setting}: a certificate in {path!r} is not valid before {begins:%Y-%m-%d}"


def _paths(files: TlsSettings) -> tuple[str, ...]:
    return tuple(path for path in (files.ca_file, files.cert_file, files.key_file) if path is not None)


def _certificates(setting: str, path: str) -> list[bytes]:
    content = _content(setting, path)
    found = _CERTIFICATE.findall(content)
    begun = content.count(ssl.PEM_HEADER.encode())
    if not begun:
        raise SettingsError(f"{setting}: {path!r} holds no certificate in PEM form")
    if len(found) < begun:
        raise SettingsError(f"{setting}: {path!r} holds a certificate that cannot be read, or not to its end")
    return found


def _content(setting: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_LARGEST)
    except OSError as error:
        raise SettingsError(f"{setting}: {path!r} cannot be read: {error.strerror}") from error
    except ValueError as error:  # a path with NUL
        raise SettingsError(f"{setting}: {path!r} cannot be read: {error}") from error


def _validity(der: bytes) -> tuple[datetime, datetime]:
    """Returns from when to when a certificate is valid (RFC 5280, section 4.1: the fifth field of TBSCertificate, whose
    first one, the version, may be absent)."""
    at = _element(der, _element(der, 0)[1])[1]
    tag, _, end = _element(der, at)
    at = end if tag == 0xA0 else at
    for _ in ("serialNumber", "signature", "issuer"):
        at = _element(der, at)[2]
    begins = _element(der, _element(der, at)[1])
    return _time(der, *begins), _time(der, *_element(der, begins[2]))


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Returns the tag of the element at a place, where its content begins, and where it ends (X.690, section 8.1)."""
    tag, length = der[at], der[at + 1]
    at += 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[at : at + size], "big")
        at += size
    return tag, at, at + length


def _time(der: bytes, tag: int, at: int, end: int) -> datetime:
    """Returns a UTCTime or a GeneralizedTime (RFC 5280, section 4.1.2.5)."""
    text = der[at:end].decode("ascii")
    if tag == 0x17:
        text = f"{'20' if text[:2] < '50' else '19'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
