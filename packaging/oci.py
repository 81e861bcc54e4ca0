"""An image as an OCI layout, made of the program and the libraries that it loads, without a daemon and without a base image.

It runs as a user without rights on a read-only root; `/data` is the only folder that it writes to. The OCI format has no health
check of its own: orchestrators ask `/health` and `/ready` (as the Helm chart does).
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import time

from common import ROOT, Release, gzipped, libraries, tar

USER = 65532


def build(release: Release) -> pathlib.Path:
    system, links = _system(release.program)
    system["usr/share/doc/bowshot/THIRD-PARTY-NOTICES"] = (release.shared["notices"], 0o644)
    layers = [
        tar(system, release.time, links),
        tar({"usr/bin/bowshot": (release.program, 0o755)}, release.time, {}),
    ]
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, media: str) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    packed = [gzipped(layer, release.level) for layer in layers]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.time))
    labels = {
        "org.opencontainers.image.title": "bowshot",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/bowshot/bowshot",
    }
    config = {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/bin", "BOWSHOT_FLIGHT=0.0.0.0:50051", "BOWSHOT_HTTP=0.0.0.0:8080", "BOWSHOT_DATA=/data"],
            "Entrypoint": ["/usr/bin/bowshot"],
            "Cmd": ["serve"],
            "ExposedPorts": {"50051/tcp": {}, "8080/tcp": {}},
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
        "history": [
            {"created": created, "created_by": "C library, certificates, users"},
            {"created": created, "created_by": f"bowshot {release.version}"},
        ],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(_json(config), "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(layer, "application/vnd.oci.image.layer.v1.tar+gzip") for layer in packed],
    }
    named = blob(_json(manifest), "application/vnd.oci.image.manifest.v1+json")
    named["annotations"] = {"org.opencontainers.image.ref.name": release.version}
    named["platform"] = {"architecture": "amd64", "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [named]}
    files = {name: (content, 0o644) for name, content in blobs.items()}
    files["index.json"] = (_json(index), 0o644)
    files["oci-layout"] = (_json({"imageLayoutVersion": "1.0.0"}), 0o644)
    path = release.out / f"bowshot-{release.version}-oci.tar"
    path.write_bytes(tar(files, release.time))
    return path


def _system(program: pathlib.Path) -> tuple[dict[str, tuple[bytes | pathlib.Path, int]], dict[str, str]]:
    """All that the program needs of a system, under the names by which it is looked for."""
    files: dict[str, tuple[bytes | pathlib.Path, int]] = {
        "etc/passwd": (f"root:x:0:0::/:/sbin/nologin\nbowshot:x:{USER}:{USER}::/data:/sbin/nologin\n".encode(), 0o644),
        "etc/group": (f"root:x:0:\nbowshot:x:{USER}:\n".encode(), 0o644),
        "etc/nsswitch.conf": (b"hosts: files dns\n", 0o644),
        "usr/share/doc/bowshot/LICENSE": (ROOT / "LICENSE", 0o644),
        # A volume takes over the mode of the folder below it.
        "data/": (b"", 0o1777),
        "tmp/": (b"", 0o1777),
        "var/tmp/": (b"", 0o1777),
    }
    links = {"lib": "usr/lib", "lib64": "usr/lib64"}
    for library in libraries(program):
        name = str(library).lstrip("/")
        files[name if name.startswith("usr/") else f"usr/{name}"] = (library.resolve(), 0o755)
    certificates = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.is_file():
        files["etc/ssl/certs/ca-certificates.crt"] = (certificates, 0o644)
    return files, links


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
