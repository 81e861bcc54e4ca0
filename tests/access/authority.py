"""An authority that signs certificates of servers and clients, as files."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def now():
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def name(*common):
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Tests")] + [x509.NameAttribute(NameOID.COMMON_NAME, one) for one in common])


class Pair:
    """A certificate and its key, in files."""

    def __init__(self, folder, stem, certificate, key):
        self.certificate = certificate
        self.pem = folder / f"{stem}.pem"
        self.key = folder / f"{stem}.key"
        self.pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        self.key.chmod(0o600)


class Authority:
    def __init__(self, folder, stem="authority", end=30 * DAY):
        folder.mkdir(exist_ok=True)
        self.folder, self.count = folder, 0
        self.key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            self._builder(name(stem), name(stem), self.key, now() - 2 * DAY, now() + end)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.own = Pair(folder, stem, certificate, self.key)

    def _builder(self, subject, issuer, key, start, end):
        return (
            x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )  # fmt: skip

    def issue(self, *common, start=None, end=None, usage=ExtendedKeyUsageOID.CLIENT_AUTH, names=()):
        """A certificate for these common names, with the alternative names given."""
        key = ec.generate_private_key(ec.SECP256R1())
        start = start or now() - DAY
        builder = self._builder(name(*common), self.own.certificate.subject, key, start, end or now() + 20 * DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
        self.count += 1
        return Pair(self.folder, f"issued{self.count}", builder.sign(self.key, hashes.SHA256()), key)

    def server(self):
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return self.issue("127.0.0.1", usage=ExtendedKeyUsageOID.SERVER_AUTH, names=[here, x509.DNSName("localhost")])

    def revoke(self, *pairs, file, end=DAY):
        """Writes the list of what is revoked."""
        builder = (
            x509.CertificateRevocationListBuilder().issuer_name(self.own.certificate.subject)
            .last_update(now() - DAY).next_update(now() + end)
        )  # fmt: skip
        for pair in pairs:
            gone = x509.RevokedCertificateBuilder().serial_number(pair.certificate.serial_number)
            builder = builder.add_revoked_certificate(gone.revocation_date(now() - DAY).build())
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(signer, critical=False).add_extension(x509.CRLNumber(1), critical=False)
        file.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
