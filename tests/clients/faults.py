"""Makes system calls of a running server fail: `faults.c`, compiled here, steered through a file that both have mapped."""

import mmap
import pathlib
import struct
import subprocess

SYNC, WRITE, SHORT_WRITE, OPEN, READ = 1, 2, 4, 8, 16
FIELDS = struct.Struct("=6i232s")
FOR_EVER = -1


def compile_into(folder):
    library = folder / "faults.so"
    source = pathlib.Path(__file__).with_suffix(".c")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", library, source, "-ldl"], check=True)
    return library


class Faults:
    """Steers one server; `environment` is what that server is started with."""

    def __init__(self, library, folder, data):
        data.mkdir(exist_ok=True)
        control = folder / "faults.control"
        control.write_bytes(bytes(FIELDS.size))
        with open(control, "r+b") as file:
            self.mapped = mmap.mmap(file.fileno(), FIELDS.size)
        self.trace_path = folder / "faults.trace"
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAULTS_CONTROL": str(control),
            "FAULTS_FOLDER": str(data),
            "FAULTS_TRACE": str(self.trace_path),
        }

    def set(self, kind, error, part="", skip=0, times=FOR_EVER):
        """From now on calls of a kind on paths with `part` in them fail, after `skip` that pass."""
        tracing = struct.unpack_from("=i", self.mapped, 20)[0]
        FIELDS.pack_into(self.mapped, 0, 0, error, skip, times, 0, tracing, part.encode())
        # The kind comes last: a call that is made meanwhile sees all of it or nothing.
        struct.pack_into("=i", self.mapped, 0, kind)

    def clear(self):
        struct.pack_into("=i", self.mapped, 0, 0)

    @property
    def hits(self):
        """Calls that failed since `set`."""
        return struct.unpack_from("=i", self.mapped, 16)[0]

    def trace(self):
        """Begins to write down what is synced."""
        self.trace_path.write_text("")
        struct.pack_into("=i", self.mapped, 20, 1)

    def synced(self):
        """Paths, below the folder, of files and folders that were synced since `trace`."""
        return {line.split(" ", 1)[1].lstrip("/") for line in self.trace_path.read_text().splitlines()}
