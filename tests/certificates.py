"""Makes certificates at the time of a test: a root of its own, and what it signs."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY: Final = timedelta(days=1)
_HOSTS: Final = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]


class Signed:
    """A certificate and its private key, in PEM form."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self._key = key
        self.key = self.key_with(serialization.NoEncryption())

    def key_with(self, encryption: serialization.KeySerializationEncryption) -> bytes:
        """The key, encrypted so."""
        return self._key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        """Writes both as files; returns their paths."""
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return str(certificate), str(key)


class Authority:
    """A private root. `sign` gives a certificate for this machine and for a client of this name."""

    def __init__(self, name: str = "Root of the test") -> None:
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.root = Signed(self._certificate(self._name, self._key, 30 * DAY, authority=True), self._key)

    def sign(self, name: str, until: timedelta = 30 * DAY, since: timedelta = -DAY) -> Signed:
        """A certificate that is valid from now and `since` to now and `until`."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Signed(self._certificate(_name(name), key, until, since=since), key)

    def server(self, folder: Path, alpn: str, *, asks: bool) -> ssl.SSLContext:
        """The context of a server whose certificate this root has signed. `asks`: clients need one, too."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.sign("server").write(folder, "server"))
        context.set_alpn_protocols([alpn])
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.root.certificate.decode())
        return context

    def _certificate(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        until: timedelta,
        *,
        since: timedelta = -DAY,
        authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + since)
            .not_valid_after(now + until)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if authority:
            builder = builder.add_extension(_usage(signs=True), critical=True)
        else:
            builder = builder.add_extension(_usage(signs=False), critical=True)
            builder = builder.add_extension(x509.SubjectAlternativeName(_HOSTS), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
