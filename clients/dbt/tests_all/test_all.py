"""Everything of dbt's suite for adapters that is no feature of another database."""

import importlib
import inspect
import pathlib

import dbt.tests.adapter

# Features that the server does not have, or that other adapters alone have; `basic` runs by itself.
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
# Tests that do not fit, each with the reason.
EXCLUDED = {
    "TestBasicSeedTests": "a seed that is made anew takes the views over it with it, in PostgreSQL",
    "TestSeedConfigFullRefreshOn": "the same",
    "TestConstraintQuotedColumn": "compares the text of statements with PostgreSQL's",
    "TestCurrentTimestamps": "the same",
    "TestEphemeralMulti": "the same",
    "TestEphemeralNested": "the same",
    "TestIncrementalConstraintsRuntimeDdlEnforcement": "the same",
    "TestModelConstraintsRuntimeEnforcement": "the same",
    "TestShowDoesNotHandleDoubleLimit": "the same, of an error",
    "TestTableConstraintsRuntimeDdlEnforcement": "the same",
    "TestGetIntervalsBetween": "reads 09/01/2023 as a date, which the server refuses since it has two meanings",
    "TestSimpleCopyUppercase": "is for the adapter of PostgreSQL alone",
    "TestSimpleSeedColumnOverride": "names types as PostgreSQL shows them",
    "TestSimpleSeedWithBOM": "needs a file that the package does not have",
}

ROOT = pathlib.Path(next(iter(dbt.tests.adapter.__path__)))
for path in sorted(ROOT.rglob("test_*.py")):
    part, *_ = path.relative_to(ROOT).parts
    if part in LEFT_OUT:
        continue
    name = "dbt.tests.adapter." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for label, found in inspect.getmembers(importlib.import_module(name), inspect.isclass):
        if found.__module__ == name and label.startswith("Test") and label not in EXCLUDED:
            globals()[f"{label}_{part}"] = found
