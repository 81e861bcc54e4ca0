"""The program that asks a model about the columns of an Arrow file."""

import os
import pathlib
import resource
import subprocess

import pyarrow
import pyarrow.ipc
import pytest

from graphs import LIBRARY
from served import Served


class Program:
    def __init__(self, path, folder, options=()):
        self.path = path
        self.folder = folder
        self.options = options

    def predict(self, model, rows, columns=None):
        """Prediction and probabilities of rows, which are the columns of a matrix or columns of their own."""
        (self.folder / "model").write_bytes(model)
        table = pyarrow.table(columns or {f"f{at}": rows[:, at] for at in range(rows.shape[1])})
        with pyarrow.ipc.new_file(str(self.folder / "in.arrow"), table.schema) as file:
            file.write_table(table, max_chunksize=777)
        command = [self.path, *self.options, self.folder / "model", self.folder / "in.arrow", self.folder / "out.arrow"]
        subprocess.run(command, check=True, timeout=60, capture_output=True)
        with pyarrow.ipc.open_file(str(self.folder / "out.arrow")) as file:
            return file.read_all()

    def read(self, files, memory=None):
        """What is said of each file; within so many bytes of memory, if they are limited."""
        command = [self.path, *self.options, "--read", *files]
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))} if memory else {}
        done = subprocess.run(command, check=True, timeout=240, capture_output=True, text=True, **limited)
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def served(request, tmp_path_factory):
    """A server for the tests of a module, with the options that the module names."""
    served = Served(tmp_path_factory.mktemp("served"), getattr(request.module, "OPTIONS", ()))
    yield served
    served.close()


@pytest.fixture
def program(tmp_path):
    return Program(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "examples" / "predict_model", tmp_path)


@pytest.fixture
def runtime(program):
    return Program(program.path, program.folder, ["--onnx-runtime", LIBRARY])
