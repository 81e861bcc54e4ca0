//! One function as its area describes it, and as DataFusion calls it.
//!
//! A row of a table says which arguments a function takes, what it gives and which Rust function computes a batch. The
//! kinds of arguments are those of SQL, not those of Arrow: whatever fits is cast before the function sees it.

use crate::values::{Arguments, Kind};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_datafusion_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, WindowUDF,
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) about: &'static str,
    /// The dialect whose meaning it has, where that differs from the others'.
    pub(crate) note: &'static str,
    pub(crate) body: Body,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// A function of DataFusion, which stands in the table for the documentation and for further names.
    Stock(&'static str),
    /// Our own, one batch after the other.
    Scalar(Scalar),
    /// Another expression, put in its place before the query runs.
    Rewrite(Rewrite),
    /// One that is made elsewhere.
    Udf(fn() -> Arc<ScalarUDF>),
    Aggregate(fn() -> Arc<AggregateUDF>),
    Window(fn() -> Arc<WindowUDF>),
    /// Registered by its area; the table has its documentation.
    Listed,
}

/// A function over the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar {
    pub(crate) takes: &'static [&'static [Kind]],
    pub(crate) gives: Gives,
    pub(crate) run: fn(&Arguments) -> Result<ArrayRef>,
    pub(crate) volatility: Volatility,
    pub(crate) parameters: &'static [&'static str],
}

/// A function that stands for an expression of its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rewrite {
    pub(crate) takes: &'static [&'static [Kind]],
    pub(crate) gives: Gives,
    pub(crate) into: fn(Vec<Expr>) -> Result<Expr>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Gives {
    Text,
    Texts,
    Bytes,
    Bool,
    Int,
    Float,
    Date,
    Time,
    /// Without a time zone.
    Stamp,
    /// With the time zone UTC.
    Moment,
    Interval,
    /// The type of the argument at this position.
    Like(usize),
    By(fn(&[DataType]) -> Result<DataType>),
    /// By the types and by the arguments that are constant.
    Seen(fn(&[DataType], &[Option<&ScalarValue>]) -> Result<DataType>),
}

impl Function {
    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    const fn volatility(mut self, volatility: Volatility) -> Self {
        if let Body::Scalar(mut scalar) = self.body {
            scalar.volatility = volatility;
            self.body = Body::Scalar(scalar);
        }
        self
    }

    /// Another value for each row.
    pub(crate) const fn volatile(self) -> Self {
        self.volatility(Volatility::Volatile)
    }

    /// One value for a statement.
    pub(crate) const fn stable(self) -> Self {
        self.volatility(Volatility::Stable)
    }

    /// Names of the parameters, for `name => value`.
    pub(crate) const fn parameters(mut self, parameters: &'static [&'static str]) -> Self {
        if let Body::Scalar(mut scalar) = self.body {
            scalar.parameters = parameters;
            self.body = Body::Scalar(scalar);
        }
        self
    }
}

const fn row(name: &'static str, about: &'static str, body: Body) -> Function {
    Function { name, aliases: &[], about, note: "", body }
}

/// A function of our own.
pub(crate) const fn scalar(
    name: &'static str,
    about: &'static str,
    takes: &'static [&'static [Kind]],
    gives: Gives,
    run: fn(&Arguments) -> Result<ArrayRef>,
) -> Function {
    let scalar = Scalar { takes, gives, run, volatility: Volatility::Immutable, parameters: &[] };
    row(name, about, Body::Scalar(scalar))
}

/// A function that stands for an expression.
pub(crate) const fn rewrite(
    name: &'static str,
    about: &'static str,
    takes: &'static [&'static [Kind]],
    gives: Gives,
    into: fn(Vec<Expr>) -> Result<Expr>,
) -> Function {
    row(name, about, Body::Rewrite(Rewrite { takes, gives, into }))
}

/// DataFusion's function of this name; aliases are further names of it.
pub(crate) const fn stock(name: &'static str, about: &'static str) -> Function {
    row(name, about, Body::Stock(name))
}

/// A function that its area registers itself.
pub(crate) const fn listed(name: &'static str, about: &'static str) -> Function {
    row(name, about, Body::Listed)
}

/// A function that is made elsewhere.
pub(crate) const fn made(name: &'static str, about: &'static str, make: fn() -> Arc<ScalarUDF>) -> Function {
    row(name, about, Body::Udf(make))
}

/// An aggregate that is made elsewhere.
pub(crate) const fn aggregate(
    name: &'static str,
    about: &'static str,
    make: fn() -> Arc<AggregateUDF>,
) -> Function {
    row(name, about, Body::Aggregate(make))
}

/// A function over windows that is made elsewhere.
pub(crate) const fn window(
    name: &'static str,
    about: &'static str,
    make: fn() -> Arc<WindowUDF>,
) -> Function {
    row(name, about, Body::Window(make))
}

/// Rows that [`scalar`] or [`rewrite`] makes: names, what they take and give, what runs, and what they give in words.
macro_rules! functions {
    ($make:ident; $($name:literal $($alias:literal)*: $takes:expr, $gives:ident $(($choose:expr))?, $run:expr
        => $about:literal $(, $more:ident($($value:expr),*))*;)+) => {
        &[$($crate::define::$make($name, $about, $takes, $crate::define::Gives::$gives $(($choose))?, $run)
            .aliases(&[$($alias),*])
            $(.$more($($value),*))*),+]
    };
}
pub(crate) use functions;

impl Gives {
    fn data_type(self, arguments: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(match self {
            Self::Text => DataType::Utf8,
            Self::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            Self::Bytes => DataType::Binary,
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Nanosecond),
            Self::Stamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Moment => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::Like(position) => arguments
                .get(position)
                .cloned()
                .ok_or_else(|| plan_datafusion_err!("argument {} is missing", position + 1))?,
            Self::By(choose) => choose(arguments)?,
            Self::Seen(choose) => choose(arguments, constants)?,
        })
    }
}

/// Functions are the same where these fields are: the table has each name once.
macro_rules! same_by {
    ($type:ident, $($field:ident).+) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.$($field).+ == other.$($field).+
            }
        }

        impl Eq for $type {}

        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                std::hash::Hash::hash(&self.$($field).+, state);
            }
        }
    };
}
pub(crate) use same_by;

/// A row of the table as DataFusion knows functions.
#[derive(Debug)]
pub(crate) struct Defined {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    takes: &'static [&'static [Kind]],
    gives: Gives,
    work: Work,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Run(fn(&Arguments) -> Result<ArrayRef>),
    Into(fn(Vec<Expr>) -> Result<Expr>),
}

impl Defined {
    /// The function that a row describes, if we compute it.
    pub(crate) fn new(function: &Function) -> Result<Option<Self>> {
        let (takes, gives, signature, work) = match function.body {
            Body::Scalar(scalar) => {
                let mut signature = Signature::user_defined(scalar.volatility);
                if !scalar.parameters.is_empty() {
                    signature = signature.with_parameter_names(scalar.parameters.to_vec())?;
                }
                (scalar.takes, scalar.gives, signature, Work::Run(scalar.run))
            }
            Body::Rewrite(rewrite) => {
                let signature = Signature::user_defined(Volatility::Immutable);
                (rewrite.takes, rewrite.gives, signature, Work::Into(rewrite.into))
            }
            _ => return Ok(None),
        };
        let aliases = function.aliases.iter().map(|&alias| alias.to_owned()).collect();
        Ok(Some(Self { name: function.name, aliases, signature, takes, gives, work }))
    }
}

same_by!(Defined, name);

impl ScalarUDFImpl for Defined {
    bowshot_api::getters!(name: &str, aliases: &[String], signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        crate::values::choose(self.takes, given).map_or_else(|| plan_err!("{}", self.mismatch(given)), Ok)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.gives.data_type(arguments, &[])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name, self.gives.data_type(&types, args.scalar_arguments)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Work::Run(run) = self.work else {
            return exec_err!("`{}` cannot be computed here; use it in a query", self.name);
        };
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)))
            && self.signature.volatility != Volatility::Volatile;
        let arguments = Arguments::new(self.name, args, constant)?;
        let array = run(&arguments)?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }

    fn simplify(&self, args: Vec<Expr>, _context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match self.work {
            Work::Run(_) => ExprSimplifyResult::Original(args),
            Work::Into(into) => ExprSimplifyResult::Simplified(into(args)?),
        })
    }

    // What a function stands for may leave arguments out, as CASE does.
    fn short_circuits(&self) -> bool {
        matches!(self.work, Work::Into(_))
    }
}

impl Defined {
    fn mismatch(&self, given: &[DataType]) -> String {
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        let forms: Vec<String> =
            self.takes.iter().map(|kinds| format!("`{}({})`", self.name, names(kinds))).collect();
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        format!("no function matches `{}({})`; there is {}", self.name, given.join(", "), forms.join(", "))
    }
}
