"""Pages of an identity provider at which people log in: in a browser, which is a thread that follows redirects, and by a code."""

import base64
import hashlib
import json
import secrets
import threading
import urllib.parse
import urllib.request

from issuer import Issuer

CLIENT = "bowshot-python"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


class Provider(Issuer):
    """`person` is who sits there, or nobody who agrees. `said` has every form that came to the token endpoint."""

    def __init__(self):
        super().__init__()
        self.person, self.seconds, self.pending = "ann", 600, 0
        self.said, self.codes, self.refreshes = [], {}, {}
        base = self.name.removesuffix("/realm")
        places = {"authorization_endpoint": self.authorize, "token_endpoint": self.give, "device_authorization_endpoint": self.device}
        for name, page in places.items():
            path = f"/realm/{name}"
            self.endpoints[name] = base + path
            self.pages[path] = page

    def authorize(self, query, _form):
        back = {"state": query["state"]}
        if self.person is None:
            back |= {"error": "access_denied", "error_description": "nobody agrees"}
        else:
            assert query["code_challenge_method"] == "S256" and query["client_id"] == CLIENT, query
            code = secrets.token_hex(8)
            self.codes[code] = query
            back["code"] = code
        return 302, {"location": f"{query['redirect_uri']}?{urllib.parse.urlencode(back)}"}, b""

    def device(self, _query, form):
        code = secrets.token_hex(8)
        self.codes[code] = form
        return said(200, {"device_code": code, "user_code": "ABCD-EFGH", "verification_uri": self.name + "/enter", "interval": 0.05, "expires_in": 5})

    def give(self, _query, form):
        self.said.append(form)
        assert form["client_id"] == CLIENT, form
        kind = form["grant_type"]
        if kind == "refresh_token":
            who = self.refreshes.get(form["refresh_token"])
            return self.tokens(who) if who else said(400, {"error": "invalid_grant", "error_description": "it was taken back"})
        code = form["device_code" if kind == DEVICE else "code"]
        if kind == DEVICE and self.pending > 0:
            self.pending -= 1
            return said(400, {"error": "authorization_pending"})
        asked = self.codes.pop(code, None)
        if asked is None or self.person is None:
            return said(400, {"error": "access_denied", "error_description": "nobody agrees"})
        if kind != DEVICE:
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
            assert form["redirect_uri"] == asked["redirect_uri"]
        return self.tokens(self.person, nonce=asked.get("nonce"))

    def tokens(self, who, nonce=None):
        refresh = secrets.token_hex(8)
        self.refreshes[refresh] = who
        given = {"access_token": self.token(who, azp="tests", seconds=self.seconds), "id_token": self.token(who, nonce=nonce)}
        return said(200, {**given, "refresh_token": refresh, "expires_in": self.seconds, "token_type": "Bearer"})


def said(status, document):
    return status, {"content-type": "application/json"}, json.dumps(document).encode()


class Browser:
    """What `webbrowser` opens: it follows the pages to their end."""

    def __init__(self):
        self.opened = []

    def open(self, page):
        self.opened.append(page)
        threading.Thread(target=self._follow, args=(page,), daemon=True).start()
        return True

    @staticmethod
    def _follow(page):
        urllib.request.urlopen(page, timeout=10).read()
