"""The Debian package: program, service with its hardening, configuration, man page, completions."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

from common import ROOT, WATCHING, Release, glibc, gzipped

HERE = ROOT / "packaging/debian"


def build(release: Release) -> pathlib.Path:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        _fill(root, release)
        path = release.out / f"bowshot_{release.version}_amd64.deb"
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(release.time)}
        command = ["dpkg-deb", "--root-owner-group", "-Zzstd", f"-z{2 * release.level + 1}", "--build", str(root), str(path)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return path


def _fill(root: pathlib.Path, release: Release) -> None:
    def put(name: str, content: bytes, mode: int = 0o644) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)

    (root / "usr/bin").mkdir(parents=True)
    shutil.copy2(release.program, root / "usr/bin/bowshot")
    put("lib/systemd/system/bowshot.service", (HERE / "bowshot.service").read_bytes())
    put("etc/bowshot/bowshot.toml", (HERE / "bowshot.toml").read_bytes())
    put("usr/share/man/man1/bowshot.1.gz", gzipped(release.shared["man"], 9))
    put("usr/share/bash-completion/completions/bowshot", release.shared["bash"])
    put("usr/share/zsh/vendor-completions/_bowshot", release.shared["zsh"])
    put("usr/share/fish/vendor_completions.d/bowshot.fish", release.shared["fish"])
    put("usr/share/doc/bowshot/copyright", (ROOT / "LICENSE").read_bytes())
    put("usr/share/doc/bowshot/third-party-notices.gz", gzipped(release.shared["notices"], 9))
    put("usr/share/doc/bowshot/changelog.gz", gzipped((ROOT / "CHANGELOG.md").read_bytes(), 9))
    for name, path in WATCHING.items():
        put(f"usr/share/bowshot/{name}", path.read_bytes())
    for name in ("postinst", "prerm", "postrm"):
        put(f"DEBIAN/{name}", (HERE / name).read_bytes(), 0o755)
    put("DEBIAN/conffiles", b"/etc/bowshot/bowshot.toml\n")
    major, minor = glibc(release.program)
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    control = (
        f"Package: bowshot\nVersion: {release.version}\nArchitecture: amd64\nInstalled-Size: {size}\n"
        f"Depends: libc6 (>= {major}.{minor}), libgcc-s1, passwd\nSection: database\nPriority: optional\n"
        "Maintainer: The Bowshot authors <bowshot@localhost>\nHomepage: https://github.com/bowshot/bowshot\n"
        "Description: Arrow-native SQL server\n Serves files and tables of its own in SQL over Arrow Flight SQL, HTTP and the\n"
        " protocols of PostgreSQL and MySQL, with a console for browsers.\n"
    )
    put("DEBIAN/control", control.encode())
