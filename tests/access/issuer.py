"""An identity provider on this machine: its keys, its discovery document, and tokens signed with them, good ones and others.
It counts who asks for its keys, rotates them, and fails when it is told to."""

import base64
import json
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from web import Handler, Web

AUDIENCE = "bowshot"


def number(value, size=None):
    data = value.to_bytes(size or (value.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    def __init__(self, kid, algorithm="RS256", **entries):
        self.kid, self.algorithm, self.entries = kid, algorithm, entries
        if algorithm.startswith("ES"):
            self.private = ec.generate_private_key(ec.SECP256R1() if algorithm == "ES256" else ec.SECP384R1())
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def document(self):
        numbers = self.private.public_key().public_numbers()
        if isinstance(numbers, ec.EllipticCurvePublicNumbers):
            size = 32 if self.algorithm == "ES256" else 48
            curve = "P-256" if size == 32 else "P-384"
            shape = {"kty": "EC", "crv": curve, "x": number(numbers.x, size), "y": number(numbers.y, size)}
        else:
            shape = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        return {**shape, "kid": self.kid, **self.entries}

    def public_pem(self):
        return self.private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


class Issuer:
    """Serves until it is closed. `keys` may be changed at any time."""

    def __init__(self):
        self.keys = [Key("one", use="sig", alg="RS256"), Key("two", "ES256"), Key("three", "PS256"), Key("four", "ES384")]
        self.sealing = Key("sealing", use="enc", alg="RSA-OAEP")
        self.asked, self.requests, self.failing = 0, 0, False
        # What the discovery document has beside the keys, and who answers there: from a query and a form to status, headers, body.
        self.endpoints, self.pages = {}, {}
        issuer = self

        class Answer(Handler):
            protocol_version = "HTTP/1.0"

            def do_GET(self):
                body, status = b"{}", 200
                issuer.requests += 1
                if issuer.failing:
                    status = 503
                elif self.path == "/realm/.well-known/openid-configuration":
                    document = {"issuer": issuer.name, "jwks_uri": issuer.name + "/keys", **issuer.endpoints}
                    body = json.dumps(document).encode()
                elif self.path == "/realm/keys":
                    issuer.asked += 1
                    body = json.dumps({"keys": [key.document() for key in [*issuer.keys, issuer.sealing]]}).encode()
                elif urllib.parse.urlsplit(self.path).path in issuer.pages:
                    return self.page()
                else:
                    status = 404
                self.answer(status, body, Content_Type="application/json")

            do_POST = do_GET

            def page(self):
                place = urllib.parse.urlsplit(self.path)
                form = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                query, form = (dict(urllib.parse.parse_qsl(text)) for text in (place.query, form))
                status, headers, body = issuer.pages[place.path](query, form)
                self.answer(status, body, **headers)

        self.server = Web(Answer)
        self.name = f"{self.server.endpoint}/realm"

    def close(self):
        self.server.close()

    def token(self, user="ann", roles=(), key=None, seconds=600, headers=None, **claims):
        """A token that is good but for what is asked for; a claim of None is left out."""
        key = key or self.keys[0]
        now = int(time.time())
        said = {
            "iss": self.name, "aud": AUDIENCE, "sub": user, "azp": "tests", "iat": now, "exp": now + seconds,
            "realm_access": {"roles": list(roles)}, **claims,
        }  # fmt: skip
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, key.private, algorithm=key.algorithm, headers={"kid": key.kid, **(headers or {})})
