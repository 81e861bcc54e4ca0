"""A MariaDB server of its own, in a temporary folder."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pymysql

from server import free_port, wait_until


def program(name):
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin") or name


class MariaDbServer:
    """With a user `root` who has no password; the options are those of `mariadbd`."""

    def __init__(self, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-mariadb-"))
        self.home, self.port = self.folder / "home", free_port()
        # It refuses to run as root.
        self.user = ["--user=mysql"] if os.geteuid() == 0 else []
        self.folder.chmod(0o755)
        self.home.mkdir()
        self.owned(self.home)
        install = [program("mariadb-install-db"), "--no-defaults", f"--datadir={self.home}", "--auth-root-authentication-method=normal"]
        subprocess.run([*install, "--skip-test-db", *self.user], check=True, capture_output=True, cwd="/")
        self.options = options
        self.start()

    def owned(self, path):
        if self.user:
            shutil.chown(path, "mysql", "mysql")

    def start(self):
        command = [program("mariadbd"), "--no-defaults", f"--datadir={self.home}", f"--port={self.port}", "--bind-address=127.0.0.1"]
        command += [f"--socket={self.home}/socket", f"--pid-file={self.home}/pid", "--skip-log-bin", *self.options, *self.user]
        self.running = subprocess.Popen(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def ready():
            assert self.running.poll() is None, "MariaDB did not start"
            with contextlib.suppress(pymysql.err.Error):
                pymysql.connect(host="127.0.0.1", port=self.port, user="root").close()
                return True

        wait_until(ready, "MariaDB is ready", 60)

    def kill(self):
        self.running.kill()
        self.running.wait(30)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
