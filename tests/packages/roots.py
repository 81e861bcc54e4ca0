"""Bare systems in a folder: one with what Debian's `dpkg` needs and nothing else, and programs that run inside of such folders."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

#: What a Debian system cannot be without, as far as installing a package needs it.
BASE = ["base-files", "base-passwd", "bash", "coreutils", "dash", "diffutils", "dpkg", "findutils", "grep", "libc-bin", "libgcc-s1", "mawk", "passwd", "sed", "tar"]


def debian(root):
    """Makes a system of packages that this machine has, as a bootstrap would of downloaded ones."""
    packages = _closure(BASE)
    files = subprocess.run(["dpkg-query", "-L", *packages], capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = sorted({name for name in files if name.startswith("/") and not _is_left_out(name)} | {"/bin", "/lib", "/lib64", "/sbin"})
    # A system of today has its folders below /usr.
    links = [name for name in wanted if pathlib.Path(name).is_symlink() and name.count("/") == 1]
    for name in links:
        (root / name[1:]).symlink_to(pathlib.Path(name).readlink())
        (root / name[1:]).resolve().mkdir(parents=True, exist_ok=True)
    for name in wanted:
        source, target = pathlib.Path(name), root / name[1:]
        if name in links or not (source.exists() or source.is_symlink()):
            continue
        if source.is_dir() and not source.is_symlink():
            target.mkdir(parents=True, exist_ok=True)
        elif not (target.exists() or target.is_symlink()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    for folder in ("etc", "dev", "tmp", "proc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group"):
        shutil.copy(f"/usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / "etc/shadow").write_text("root:*:19000:0:99999:7:::\n")
    (root / "etc/gshadow").write_text("root:*::\n")
    subprocess.run(["mknod", "-m", "666", str(root / "dev/null"), "c", "1", "3"], check=True)
    status = subprocess.run(["dpkg-query", "-s", *packages], capture_output=True, text=True, check=True).stdout
    (root / "var/lib/dpkg/status").write_text(status + "\n")
    for package in packages:
        (root / f"var/lib/dpkg/info/{package}.list").touch()


def _is_left_out(name):
    return name.startswith(("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/etc/shadow"))


def _closure(packages):
    """The packages with all that they depend on."""
    form = "${db:Status-Abbrev}\t${Package}\t${Pre-Depends}, ${Depends}\n"
    told = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
    lines = [line.split("\t") for line in told.splitlines()]
    needs = {name: depends for status, name, depends in lines if status.startswith("ii")}
    found, todo = set(), list(packages)
    while todo:
        name = todo.pop()
        # A name that several packages provide is left to the one that is in the list.
        if name in found or name not in needs:
            continue
        found.add(name)
        todo += [re.split(r"[ (|:]", alternatives.strip())[0] for alternatives in needs[name].split(",")]
    return sorted(found)


def inside(root, *command, user=None, check=True):
    """Runs a command in a system."""
    who = [f"--userspec={user}"] if user else []
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "DPKG_MAINTSCRIPT_DEBUG": "0"}
    run = subprocess.run(["chroot", *who, str(root), *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500, env=environment)
    assert not check or run.returncode == 0, f"{command}: {run.stdout}{run.stderr}"
    return run


class Served:
    """A program that serves, until the block ends."""

    def __init__(self, command, log, port, environment=None):
        self.command, self.log, self.port, self.environment = command, pathlib.Path(log), port, environment

    def __enter__(self):
        self.begun = time.monotonic()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment or {})
        while True:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.get("/ready").startswith('{"status":"ready"'):
                    break
            except OSError:
                pass
            assert time.monotonic() < self.begun + 120, self.log.read_text()
            time.sleep(0.005)
        self.seconds = time.monotonic() - self.begun
        return self

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def sql(self, text):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/sql?format=csv", text.encode(), {"content-type": "text/plain"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def __exit__(self, *_):
        self.process.terminate()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert code == 0, self.log.read_text()


def folder(parent, name):
    """A folder that other users may enter, as those of pytest cannot be."""
    path = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    path.chmod(0o755)
    return path
