"""Makes the packages of a program that is built: `cargo xtask release` builds it and calls this."""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import hashlib
import os
import pathlib
import shutil
import tempfile
import time

import common
import deb
import helptext
import notices
import oci
import pages
import sbom
import wheel
from common import ROOT, WATCHING, Release, gzipped, tar


def tarball(release: Release) -> pathlib.Path:
    """Program, man page and completions under one folder."""
    stem = f"bowshot-{release.version}-x86_64-linux"
    files: dict[str, tuple[bytes | pathlib.Path, int]] = {
        f"{stem}/bin/bowshot": (release.program, 0o755),
        f"{stem}/share/man/man1/bowshot.1": (release.shared["man"], 0o644),
        f"{stem}/share/bash-completion/completions/bowshot": (release.shared["bash"], 0o644),
        f"{stem}/share/zsh/site-functions/_bowshot": (release.shared["zsh"], 0o644),
        f"{stem}/share/fish/vendor_completions.d/bowshot.fish": (release.shared["fish"], 0o644),
        f"{stem}/LICENSE": (ROOT / "LICENSE", 0o644),
        f"{stem}/THIRD-PARTY-NOTICES": (release.shared["notices"], 0o644),
        f"{stem}/README.md": (ROOT / "README.md", 0o644),
        f"{stem}/CHANGELOG.md": (ROOT / "CHANGELOG.md", 0o644),
        **{f"{stem}/share/bowshot/{name}": (path, 0o644) for name, path in WATCHING.items()},
    }
    path = release.out / f"{stem}.tar.gz"
    path.write_bytes(gzipped(tar(files, release.time), release.level))
    return path


def bill(release: Release) -> pathlib.Path:
    path = release.out / f"bowshot-{release.version}.cdx.json"
    path.write_bytes(sbom.bill(release.version))
    return path


def chart(release: Release) -> pathlib.Path:
    """The Helm chart as `helm install` takes it."""
    folder = ROOT / "deploy/helm/bowshot"
    files = {f"bowshot/{path.relative_to(folder)}": (path, 0o644) for path in folder.rglob("*") if path.is_file()}
    path = release.out / f"bowshot-chart-{release.version}.tgz"
    path.write_bytes(gzipped(tar(files, release.time), 9))
    return path


PARTS = {
    "tarball": tarball,
    "wheel": wheel.build,
    "client": functools.partial(wheel.client, folder="python"),
    "dbt": functools.partial(wheel.client, folder="dbt"),
    "deb": deb.build,
    "oci": oci.build,
    "chart": chart,
    "sbom": bill,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program as it was built")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the packages")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; default all")
    parser.add_argument("--level", type=int, default=6, help="how hard to compress, 1 to 9; beyond 6 it takes much longer for little")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        program = common.stripped(args.program, pathlib.Path(folder))
        moment = common.commit_time()
        root = helptext.read(str(program))
        date = time.strftime("%Y-%m-%d", time.gmtime(moment))
        version = common.version()
        shared = {
            "man": pages.man(root, version, date).encode(),
            "bash": pages.bash(root).encode(),
            "zsh": pages.zsh(root).encode(),
            "fish": pages.fish(root).encode(),
            "notices": notices.notices(),
        }
        release = Release(program, version, moment, args.level, args.out, shared)
        # Compressing keeps no lock of the interpreter: the packages are made beside one another.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(lambda part: PARTS[part](release), args.parts.split(",")))
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made))
    (args.out / "SHA256SUMS").write_text(sums)
    # Beside the packages, so that nobody needs a checkout to install them.
    shutil.copy(ROOT / "packaging/install.sh", args.out)
    for path in made:
        print(f"{path.stat().st_size / 1e6:9.1f} MB  {path}")


if __name__ == "__main__":
    main()
