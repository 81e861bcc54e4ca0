"""Object stores that tests are run against: SeaweedFS with secrets, Azurite, and a small stub of Google's."""

import datetime
import hashlib
import hmac
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import pyarrow.fs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from server import free_port, wait_until  # noqa: E402
from web import Handler, Web  # noqa: E402

# Words that must never be seen again.
KEY, SECRET = "BOWSHOTTESTKEY", "kept-s3cret-of-the-tests"


def free_ports(count, below=None):
    ports = set()
    while len(ports) < count:
        ports.add(free_port(below))
    return list(ports)


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


class SeaweedFS:
    """A real S3 server with one identity."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-weed-"))
        identity = {"name": "a", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                    "actions": ["Admin", "Read", "Write", "List"]}
        config = self.folder / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        # Each port has a second one for gRPC, ten thousand above.
        self.master, volume, self.filer, self.port, self.catalog_port = free_ports(5, below=20_000)
        (self.folder / "data").mkdir()
        self.weed = str(pathlib.Path(sys.executable).parent / "weed")
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            [self.weed, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.folder / 'data'}",
             "-s3", f"-s3.port={self.port}", f"-s3.config={config}", "-filer", "-master.telemetry=false",
             "-volume.max=20", "-master.volumeSizeLimitMB=64",
             f"-s3.port.iceberg={self.catalog_port}", "-s3.port.lance=0",
             f"-master.port={self.master}", f"-volume.port={volume}", f"-filer.port={self.filer}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            wait_until(lambda: answers(f"{self.endpoint}/healthz"), "SeaweedFS answers", 60)
            self.files = pyarrow.fs.S3FileSystem(access_key=KEY, secret_key=SECRET, scheme="http", region="us-east-1",
                                                 endpoint_override=f"127.0.0.1:{self.port}",
                                                 allow_bucket_creation=True)
            wait_until(self._takes, "SeaweedFS takes files", 60)
        except BaseException:
            self.close()
            raise

    def _takes(self):
        try:
            self.files.create_dir("lake")
            self.write("lake/ready", b"x")
            return True
        except OSError:
            time.sleep(0.2)
            return False

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def catalog(self):
        """Its catalog of Iceberg tables, for those below buckets of tables."""
        return f"http://127.0.0.1:{self.catalog_port}"

    def table_bucket(self, name):
        arguments = [self.weed, "shell", f"-master=127.0.0.1:{self.master}", f"-filer=127.0.0.1:{self.filer}"]
        command = f"s3tables.bucket -create -name {name} -account 000000000000\n"
        made = subprocess.run(arguments, input=command.encode(), capture_output=True, timeout=60)
        assert b"arn:aws:s3tables" in made.stdout, made

    def environment(self, endpoint=None, secret=SECRET):
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": endpoint or self.endpoint, "AWS_EC2_METADATA_DISABLED": "true"}

    def write(self, path, content):
        # As it is: what ends in .gz is packed already.
        with self.files.open_output_stream(path, compression=None) as stream:
            stream.write(content)

    def delete(self, path):
        self.files.delete_file(path)

    def names(self, folder):
        found = self.files.get_file_info(pyarrow.fs.FileSelector(folder, recursive=True, allow_not_found=True))
        return sorted(one.path for one in found if one.is_file)

    def copy(self, folder, into):
        """All files of a local folder."""
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                self.write(f"{into}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def unfinished_uploads(self, bucket="lake"):
        """Uploads in parts that are neither finished nor taken back."""
        now = datetime.datetime.now(datetime.UTC)
        date, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
        host, empty = f"127.0.0.1:{self.port}", hashlib.sha256(b"").hexdigest()
        names = "host;x-amz-content-sha256;x-amz-date"
        canonical = f"GET\n/{bucket}\nuploads=\nhost:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{stamp}\n\n{names}\n{empty}"
        scope = f"{date}/us-east-1/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{SECRET}".encode()
        for part in (date, "us-east-1", "s3", "aws4_request", text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        sign = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
        request = urllib.request.Request(
            f"{self.endpoint}/{bucket}?uploads=",
            headers={"x-amz-date": stamp, "x-amz-content-sha256": empty, "Authorization": sign})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return re.findall(r"<Key>([^<]*)</Key>", answer.read().decode())

    def close(self):
        # On SIGTERM it takes half a minute.
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Azurite:
    """The emulator of Azure's blobs; `folder` is where npm has installed it."""

    ACCOUNT = "devstoreaccount1"
    KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self, folder):
        (self.port,) = free_ports(1)
        program = pathlib.Path(folder) / "node_modules/azurite/dist/src/blob/main.js"
        self.process = subprocess.Popen(
            ["node", str(program), "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(self.port),
             "--inMemoryPersistence", "--skipApiVersionCheck"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._listens, "Azurite listens", 60)
        self.request("PUT", "/lake?restype=container", b"")

    def _listens(self):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}/{self.ACCOUNT}"

    def request(self, method, target, body):
        """A request that is signed with the key of the account."""
        path, _, query = target.partition("?")
        date = datetime.datetime.now(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
        if not query:
            headers["x-ms-blob-type"] = "BlockBlob"
        named = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        resource = f"/{self.ACCOUNT}/{self.ACCOUNT}{path}"
        for name, values in sorted(urllib.parse.parse_qs(query).items()):
            resource += f"\n{name}:{','.join(values)}"
        length = str(len(body)) if body else ""
        kind = "application/octet-stream"
        text = f"{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{named}{resource}"
        import base64
        sign = hmac.new(base64.b64decode(self.KEY), text.encode(), hashlib.sha256).digest()
        headers |= {"Authorization": f"SharedKey {self.ACCOUNT}:{base64.b64encode(sign).decode()}",
                    "Content-Type": kind, "Content-Length": str(len(body))}
        request = urllib.request.Request(self.endpoint + target, data=body, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()

    def write(self, path, content):
        self.request("PUT", "/" + urllib.parse.quote(path), content)

    def close(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Google(Web):
    """As much of Google's XML API as reading takes: GET with ranges and conditions, HEAD, and lists of 100 at a time."""

    def __init__(self):
        super().__init__(Answers)
        self.objects = {}

    def environment(self):
        return {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_SKIP_SIGNATURE": "true"}

    def write(self, path, content):
        self.objects[path] = (content, f'"{hashlib.md5(content).hexdigest()}"')

    def copy(self, folder, into):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                self.write(f"{into}/{path.relative_to(folder).as_posix()}", path.read_bytes())


class Answers(Handler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        path = urllib.parse.unquote(url.path).lstrip("/")
        if "list-type" in query:
            return self.listing(path, query)
        if path not in self.server.objects:
            return self.answer(404)
        content, tag = self.server.objects[path]
        if self.headers.get("If-Match", tag) != tag:
            return self.answer(412)
        common = {"ETag": tag, "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if match := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            first, last = int(match[1]), min(int(match[2]), len(content) - 1)
            if first > last:
                return self.answer(416)
            return self.answer(206, content[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(content)}", **common)
        if self.command == "HEAD":
            return self.answer(200, Content_Length=str(len(content)), **common)
        return self.answer(200, content, **common)

    def listing(self, bucket, query):
        prefix = query.get("prefix", "")
        names = sorted(path.removeprefix(bucket + "/") for path in self.server.objects if path.startswith(bucket + "/"))
        names = [name for name in names if name.startswith(prefix) and name > query.get("continuation-token", "")]
        folders = ""
        if "delimiter" in query:
            below = sorted({name[:name.index("/", len(prefix)) + 1] for name in names if "/" in name[len(prefix):]})
            folders = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in below)
            names = [name for name in names if "/" not in name[len(prefix):]]
        shown, rest = names[:100], names[100:]
        items = ""
        for name in shown:
            content, tag = self.server.objects[f"{bucket}/{name}"]
            safe = name.replace("&", "&amp;").replace("<", "&lt;")
            items += (f"<Contents><Key>{safe}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                      f"<ETag>{tag.replace(chr(34), '&quot;')}</ETag><Size>{len(content)}</Size></Contents>")
        more = f"<NextContinuationToken>{shown[-1]}</NextContinuationToken>" if rest else ""
        body = (f"<?xml version='1.0'?><ListBucketResult><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>"
                f"{more}{items}{folders}</ListBucketResult>")
        return self.answer(200, body.encode(), Content_Type="application/xml")


def without_credentials():
    """An environment in which nothing of the machine's own credentials is found."""
    return {"HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"} | {
        name: "" for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
