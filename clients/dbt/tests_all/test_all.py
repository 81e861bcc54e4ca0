"""Everything of dbt's suite for adapters that is no feature of another database."""

import importlib
import inspect
import pathlib

import dbt.tests.adapter

# Features that the server does not have, or that other adapters alone have.
LEFT_OUT = (
    "basic",
    "catalog_integrations",
    "dbt_clone",
    "functions",
    "grants",
    "materialized_view",
    "python_model",
    "sample_mode",
)

ROOT = pathlib.Path(next(iter(dbt.tests.adapter.__path__)))
for path in sorted(ROOT.rglob("test_*.py")):
    part, *_ = path.relative_to(ROOT).parts
    if part in LEFT_OUT:
        continue
    name = "dbt.tests.adapter." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for label, found in inspect.getmembers(importlib.import_module(name), inspect.isclass):
        if found.__module__ == name and label.startswith("Test"):
            globals()[f"{label}_{part}"] = found
