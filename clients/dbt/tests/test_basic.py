"""What every adapter has to do, as dbt's suite for adapters has it."""

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection

for base in (
    BaseSimpleMaterializations,
    BaseSingularTests,
    BaseSingularTestsEphemeral,
    BaseEmpty,
    BaseEphemeral,
    BaseIncremental,
    BaseIncrementalNotSchemaChange,
    BaseIncrementalBadStrategy,
    BaseGenericTests,
    BaseSnapshotCheckCols,
    BaseSnapshotTimestamp,
    BaseTableMaterialization,
    BaseValidateConnection,
    BaseAdapterMethod,
):
    globals()[base.__name__.replace("Base", "Test")] = type(base.__name__, (base,), {})

COLUMNS = {
    "role": None,
    "id_type": "integer",
    "text_type": "character varying",
    "time_type": "timestamp without time zone",
    "view_type": "VIEW",
    "table_type": "BASE TABLE",
    "model_stats": expected_catalog.no_stats(),
}


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return expected_catalog.base_expected_catalog(project, **COLUMNS)


class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return expected_catalog.expected_references_catalog(project, bigint_type="bigint", **COLUMNS)
