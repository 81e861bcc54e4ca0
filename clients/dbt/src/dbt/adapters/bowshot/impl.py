"""What dbt asks of an adapter beyond SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dbt.adapters.base import Column, available
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType

from dbt.adapters.bowshot.connections import BowshotConnectionManager


class BowshotColumn(Column):  # type: ignore[misc]
    """dbt's words for types, as Bowshot has them: its FLOAT has 32 bits."""

    TYPE_LABELS = {"STRING": "VARCHAR", "FLOAT": "DOUBLE"}  # noqa: RUF012 - as dbt has it


class BowshotAdapter(SQLAdapter, metaclass=AdapterMeta):  # type: ignore[misc, metaclass]
    ConnectionManager = BowshotConnectionManager
    Column = BowshotColumn

    # Foreign keys are notes that nobody enforces.
    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - as dbt has it
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict({Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full)})

    @classmethod
    def date_function(cls) -> str:
        return "now()"

    @classmethod
    def convert_number_type(cls, agate_table: Any, col_idx: int) -> str:
        import agate

        if agate_table.aggregate(agate.MaxPrecision(col_idx)):
            return "double"
        return cls.convert_integer_type(agate_table, col_idx)

    @classmethod
    def convert_integer_type(cls, agate_table: Any, col_idx: int) -> str:
        """As wide as the numbers that are there."""
        largest = max((abs(value) for value in agate_table.columns[col_idx].values() if value is not None), default=0)
        return "integer" if largest < 2**31 else "bigint"

    @classmethod
    def convert_datetime_type(cls, agate_table: Any, col_idx: int) -> str:  # noqa: ARG003 - dbt's arguments
        return "timestamp"

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "delete+insert", "merge", "microbatch"]

    @available.parse(lambda *_, **__: None)  # type: ignore[untyped-decorator]
    def load_rows(self, relation: Any, table: Any) -> None:
        """The rows of a seed, as Arrow and in one call; texts become what the columns of the table are."""
        connection = self.connections.get_thread_connection()
        if not connection.transaction_open:
            self.connections.begin()
        columns = {
            name: pa.array([None if value is None else str(value) for value in table.columns[name].values()], pa.string())
            for name in table.column_names
        }
        with self.connections.exception_handler("seed"):
            connection.handle.ingest(
                relation.identifier, pa.table(columns), "append", schema=relation.schema, catalog=relation.database
            )

    def debug_query(self) -> None:
        self.execute("select 1 as id")
