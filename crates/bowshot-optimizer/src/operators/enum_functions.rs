//! The functions that operators on enumerated types become: the position of a label, the label at a position, and a text as a value
//! of the type. Their last argument is the type, as the declaration of a column has it.

use bowshot_types::declared::{DECLARED, Declared};
use bowshot_types::enums::EnumType;
use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

static ALL: LazyLock<[Arc<ScalarUDF>; 6]> =
    LazyLock::new(|| Kind::ALL.map(|kind| Arc::new(ScalarUDF::from(EnumFunction::new(kind)))));

/// The functions, for those that look them up by name.
pub(super) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    ALL.iter().map(Arc::clone)
}

/// Where a value stands among the labels.
pub(super) fn position(value: Expr, of: &EnumType) -> Expr {
    call(Kind::Position, value, of)
}

pub(super) fn label(position: Expr, of: &EnumType) -> Expr {
    call(Kind::Label, position, of)
}

pub(super) fn enum_value(value: Expr, of: &EnumType) -> Expr {
    call(Kind::Value, value, of)
}

pub(super) fn is_enum_value(call: &ScalarFunction) -> bool {
    call.name() == Kind::Value.name()
}

fn call(kind: Kind, value: Expr, of: &EnumType) -> Expr {
    let [position, label, value_of, ..] = &*ALL;
    let function = match kind {
        Kind::Position => position,
        Kind::Label => label,
        _ => value_of,
    };
    let declared = Expr::Literal(ScalarValue::from(Declared::Enum(of.clone()).to_string()), None);
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), vec![value, declared]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Position,
    Label,
    Value,
    /// PostgreSQL's functions, which are computed when the plan is analysed.
    Range,
    First,
    Last,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Position, Self::Label, Self::Value, Self::Range, Self::First, Self::Last];

    fn name(self) -> &'static str {
        match self {
            Self::Position => "__bowshot_enum_position",
            Self::Label => "__bowshot_enum_label",
            Self::Value => "__bowshot_enum_value",
            Self::Range => "enum_range",
            Self::First => "enum_first",
            Self::Last => "enum_last",
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EnumFunction {
    kind: Kind,
    signature: Signature,
}

impl EnumFunction {
    fn new(kind: Kind) -> Self {
        let signature = match kind {
            Kind::Position | Kind::Label | Kind::Value => Signature::any(2, Volatility::Immutable),
            Kind::Range => {
                let forms = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
                Signature::one_of(forms, Volatility::Immutable)
            }
            Kind::First | Kind::Last => Signature::any(1, Volatility::Immutable),
        };
        Self { kind, signature }
    }
}

impl ScalarUDFImpl for EnumFunction {
    bowshot_api::delegate! { kind: fn name(&self) -> &'static str; }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Position => DataType::Int32,
            Kind::Range => DataType::new_list(DataType::Utf8, true),
            _ => DataType::Utf8,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let plain = Field::new(self.name(), self.return_type(&[])?, true);
        if !matches!(self.kind, Kind::Label | Kind::Value) {
            return Ok(Arc::new(plain));
        }
        let declared = args.scalar_arguments.get(1).copied().flatten();
        let of = enum_of(declared.and_then(|declared| declared.try_as_str().flatten()))?;
        Ok(Arc::new(of.field().with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(declared)] = args.args.as_slice() else {
            return plan_err!("could not determine the enumerated type of the argument of `{}`", self.name());
        };
        let of = enum_of(declared.try_as_str().flatten())?;
        let compute = |values: &ArrayRef| match self.kind {
            Kind::Position => positions(values, &of),
            Kind::Label => labels(values, &of),
            _ => Ok(cast(values, &DataType::Utf8)?),
        };
        match value {
            ColumnarValue::Array(values) => compute(values).map(ColumnarValue::Array),
            ColumnarValue::Scalar(value) => {
                let computed = compute(&value.to_array()?)?;
                ScalarValue::try_from_array(&computed, 0).map(ColumnarValue::Scalar)
            }
        }
    }
}

fn enum_of(declared: Option<&str>) -> Result<EnumType> {
    let metadata = declared.map(|declared| (DECLARED.to_owned(), declared.to_owned()));
    let field = Field::new("", DataType::Utf8, true).with_metadata(metadata.into_iter().collect());
    EnumType::declared(&field)
        .ok_or_else(|| DataFusionError::Plan("an enumerated type has no labels here".to_owned()))
}

/// Where texts stand among the labels.
pub(super) fn positions(values: &ArrayRef, of: &EnumType) -> Result<ArrayRef> {
    let texts = cast(values, &DataType::Utf8)?;
    let places: HashMap<&str, i32> = of.labels.iter().map(String::as_str).zip(0..).collect();
    let place = |text: &str| match places.get(text) {
        Some(place) => Ok(*place),
        // The error of a label that is none.
        None => match of.position(text) {
            Ok(_) => exec_err!("a label has no place"),
            Err(error) => Err(DataFusionError::External(Box::new(error))),
        },
    };
    let found = texts.as_string::<i32>().iter().map(|text| text.map(place).transpose());
    Ok(Arc::new(found.collect::<Result<Int32Array>>()?))
}

fn labels(positions: &ArrayRef, of: &EnumType) -> Result<ArrayRef> {
    let positions = cast(positions, &DataType::Int32)?;
    let label = |place: i32| usize::try_from(place).ok().and_then(|place| of.labels.get(place));
    let found = positions.as_primitive::<Int32Type>().iter().map(|place| place.and_then(label));
    Ok(Arc::new(found.collect::<StringArray>()))
}
