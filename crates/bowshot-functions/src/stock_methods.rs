//! What functions have in common that stand in the place of DataFusion's.

/// The methods that are those of the function in a field of this name.
#[macro_export]
macro_rules! stock_methods {
    ($stock:ident: $($method:ident),+ $(,)?) => {
        $($crate::stock_methods!(@ $stock $method);)+
    };
    (@ $stock:ident name) => {
        fn name(&self) -> &str {
            self.$stock.name()
        }
    };
    (@ $stock:ident aliases) => {
        fn aliases(&self) -> &[String] {
            self.$stock.aliases()
        }
    };
    // Columns keep their names.
    (@ $stock:ident schema_name) => {
        fn schema_name(&self, args: &[::datafusion::logical_expr::Expr]) -> ::datafusion::common::Result<String> {
            self.$stock.schema_name(args)
        }
    };
    (@ $stock:ident signature) => {
        fn signature(&self) -> &::datafusion::logical_expr::Signature {
            self.$stock.signature()
        }
    };
    (@ $stock:ident coerce_types) => {
        fn coerce_types(
            &self,
            given: &[::datafusion::arrow::datatypes::DataType],
        ) -> ::datafusion::common::Result<Vec<::datafusion::arrow::datatypes::DataType>> {
            self.$stock.coerce_types(given)
        }
    };
    (@ $stock:ident return_type) => {
        fn return_type(
            &self,
            given: &[::datafusion::arrow::datatypes::DataType],
        ) -> ::datafusion::common::Result<::datafusion::arrow::datatypes::DataType> {
            self.$stock.return_type(given)
        }
    };
    (@ $stock:ident return_field_from_args) => {
        fn return_field_from_args(
            &self,
            given: ::datafusion::logical_expr::ReturnFieldArgs<'_>,
        ) -> ::datafusion::common::Result<::datafusion::arrow::datatypes::FieldRef> {
            self.$stock.return_field_from_args(given)
        }
    };
    (@ $stock:ident simplify) => {
        fn simplify(
            &self,
            args: Vec<::datafusion::logical_expr::Expr>,
            context: &::datafusion::logical_expr::simplify::SimplifyContext,
        ) -> ::datafusion::common::Result<::datafusion::logical_expr::simplify::ExprSimplifyResult> {
            self.$stock.simplify(args, context)
        }
    };
    (@ $stock:ident is_strict) => {
        fn is_strict(&self) -> bool {
            self.$stock.is_strict()
        }
    };
    (@ $stock:ident short_circuits) => {
        fn short_circuits(&self) -> bool {
            self.$stock.short_circuits()
        }
    };
    (@ $stock:ident output_ordering) => {
        fn output_ordering(
            &self,
            inputs: &[::datafusion::logical_expr::sort_properties::ExprProperties],
        ) -> ::datafusion::common::Result<::datafusion::logical_expr::sort_properties::SortProperties> {
            self.$stock.output_ordering(inputs)
        }
    };
    (@ $stock:ident documentation) => {
        fn documentation(&self) -> Option<&::datafusion::logical_expr::Documentation> {
            self.$stock.documentation()
        }
    };
}
