"""A directory of users on this machine (slapd), with people and groups in it: over TLS, by StartTLS, or as it is."""

import base64
import pathlib
import socket
import subprocess
import tempfile
import time

BASE = "dc=example,dc=org"
ADMIN, ADMIN_PASSWORD = f"cn=admin,{BASE}", "the directory's own"
READER, READER_PASSWORD = f"cn=reader,{BASE}", "only reads"
PEOPLE, GROUPS = f"ou=people,{BASE}", f"ou=groups,{BASE}"
# Names with everything that means something in a DN or a filter.
ODD = 'o,d+d="<x>;(*)\\'
PASSWORDS = {"ann": "ann's own", "ben": "ben's own", "kim": "kim's own", ODD: "odd one out", "root": "not root's"}

CONFIG = (pathlib.Path(__file__).parent / "slapd.conf").read_text()


def escaped(value):
    return "".join(f"\\{ord(c):02x}" if c in ',+="<>;\\#' else c for c in value)


def dn(user):
    return f"uid={escaped(user)},{PEOPLE}"


def entries():
    yield BASE, {"objectClass": ["dcObject", "organization"], "dc": ["example"], "o": ["Example"]}
    yield READER, {"objectClass": ["organizationalRole", "simpleSecurityObject"], "cn": ["reader"], "userPassword": [READER_PASSWORD]}
    for name, ou in ((PEOPLE, "people"), (GROUPS, "groups")):
        yield name, {"objectClass": ["organizationalUnit"], "ou": [ou]}
    for user, password in PASSWORDS.items():
        yield dn(user), {"objectClass": ["inetOrgPerson"], "uid": [user], "cn": [user], "sn": [user], "userPassword": [password]}
    for group, members in (("readers", ["ann", ODD]), ("europe", ["ann"]), ("dbas", ["kim"]), ("ada", ["ben"])):
        yield f"cn={group},{GROUPS}", {"objectClass": ["groupOfNames"], "cn": [group], "member": [dn(user) for user in members]}


def ldif(entries):
    """As text, every value in base64: whatever is in it, it is a value."""
    def line(name, value):
        return f"{name}:: {base64.b64encode(value.encode()).decode()}"

    texts = []
    for name, attributes in entries:
        lines = [line("dn", name)] + [line(key, value) for key, values in attributes.items() for value in values]
        texts.append("\n".join(lines))
    return "\n\n".join(texts) + "\n"


class Directory:
    """Runs until it is closed; started again, it has the same people and the same port."""

    def __init__(self, folder, port, pair=None, authority=None, secure=False, more=""):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir()
        self.folder, self.port, self.process = folder, port, None
        self.scheme = "ldaps" if secure else "ldap"
        tls = f"TLSCertificateFile {pair.pem}\nTLSCertificateKeyFile {pair.key}\nTLSCACertificateFile {authority.pem}" if pair else ""
        self.config = folder / "slapd.conf"
        self.config.write_text(CONFIG.format(
            folder=folder, tls=tls, base=BASE, admin=ADMIN, password=ADMIN_PASSWORD, groups=GROUPS, reader=READER, more=more,
        ))  # fmt: skip
        (folder / "people.ldif").write_text(ldif(entries()))
        done = subprocess.run(
            ["slapadd", "-f", str(self.config), "-l", str(folder / "people.ldif")], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        self.start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def start(self):
        log = open(self.folder / "log", "ab")
        # In the foreground, so that it is our child.
        self.process = subprocess.Popen(["slapd", "-f", str(self.config), "-h", self.url + "/", "-d", "stats"], stdout=log, stderr=log)
        log.close()
        self.wait()

    def wait(self):
        for _ in range(6_000):
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the directory does not listen")

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def binds(self):
        """How often somebody has bound with a name and a password."""
        return self.log().count(" BIND dn=\"")

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def change(self, *arguments, text=""):
        done = subprocess.run(
            [*arguments, "-x", "-H", self.url, "-D", ADMIN, "-w", ADMIN_PASSWORD], input=text, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr

    def set_password(self, user, password):
        self.change("ldappasswd", "-s", password, dn(user))

    def password_file(self, text=READER_PASSWORD):
        file = pathlib.Path(tempfile.mkstemp(dir=self.folder)[1])
        file.write_text(text + "\n")
        return file
