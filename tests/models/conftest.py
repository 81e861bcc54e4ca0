"""The program that asks a model about the columns of an Arrow file."""

import os
import pathlib
import subprocess

import pyarrow
import pyarrow.ipc
import pytest


class Program:
    def __init__(self, path, folder):
        self.path = path
        self.folder = folder

    def predict(self, model, rows, columns=None):
        """Prediction and probabilities of rows, which are the columns of a matrix or columns of their own."""
        (self.folder / "model").write_bytes(model)
        table = pyarrow.table(columns or {f"f{at}": rows[:, at] for at in range(rows.shape[1])})
        with pyarrow.ipc.new_file(str(self.folder / "in.arrow"), table.schema) as file:
            file.write_table(table, max_chunksize=777)
        command = [self.path, self.folder / "model", self.folder / "in.arrow", self.folder / "out.arrow"]
        subprocess.run(command, check=True, timeout=60, capture_output=True)
        with pyarrow.ipc.open_file(str(self.folder / "out.arrow")) as file:
            return file.read_all()

    def read(self, files):
        """What is said of each file."""
        done = subprocess.run([self.path, "--read", *files], check=True, timeout=120, capture_output=True, text=True)
        return done.stdout.splitlines()


@pytest.fixture
def program(tmp_path):
    return Program(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "examples" / "predict_model", tmp_path)
