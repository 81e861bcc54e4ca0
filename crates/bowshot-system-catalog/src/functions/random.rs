//! `setseed` and the `random` that follows it: PostgreSQL's generator, so that a seed gives the numbers that it gives there. A
//! session without a seed has DataFusion's `random`, whose numbers nobody can repeat.

use crate::functions::{Call, Facts, FunctionSpec, TEXT, spec, text};
use crate::listing::external;
use bowshot_api::Error;
use datafusion::arrow::array::Float64Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions::math;
use datafusion::logical_expr::ptr_eq::PtrEq;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;
use std::sync::Arc;

/// It changes the session, each time that it is called.
pub(crate) static CHANGING: &[FunctionSpec] = &[spec("setseed", (1, 1), TEXT, set_seed)];

fn set_seed(call: &Call<'_>) -> Result<ScalarValue> {
    let seed = match call.arguments.first().map(|seed| seed.cast_to(&DataType::Float64)).transpose()? {
        Some(ScalarValue::Float64(Some(seed))) => seed,
        _ => return Ok(ScalarValue::Utf8(None)),
    };
    if !(-1.0..=1.0).contains(&seed) {
        return Err(external(
            Error::invalid(format!("setseed parameter {seed} is out of allowed range [-1,1]"))
                .with_hint("give it a number from -1 to 1"),
        ));
    }
    *call.facts.seeded.0.lock() = Some(Generator::new(seed));
    // A function without a value shows an empty text.
    text("")
}

/// The generator of a session, once it has a seed.
#[derive(Debug, Clone, Default)]
pub struct SeededRandom(Arc<Mutex<Option<Generator>>>);

impl SeededRandom {
    /// Whether the numbers of the session can be repeated, so that its statements must draw them in one order.
    pub fn is_seeded(&self) -> bool {
        self.0.lock().is_some()
    }
}

/// `xoroshiro128**`.
#[derive(Debug)]
struct Generator(u64, u64);

impl Generator {
    /// Seeded by `SplitMix64`, as PostgreSQL does it.
    fn new(seed: f64) -> Self {
        let fraction = ((1_u64 << 52) - 1) as f64 * seed;
        let mut state = (fraction as i64).cast_unsigned();
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self(next(), next())
    }

    /// The next number from 0 up to, but not, 1.
    fn draw(&mut self) -> f64 {
        let (one, mixed) = (self.0, self.1 ^ self.0);
        let drawn = one.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.0 = one.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.1 = mixed.rotate_left(37);
        (drawn >> 12) as f64 / (1_u64 << 52) as f64
    }
}

/// `random()` of one session.
pub(super) fn function(facts: &Facts) -> ScalarUDF {
    let signature = Signature::nullary(Volatility::Volatile);
    let aliases = vec!["rand".to_owned()];
    let (seeded, unseeded) = (Arc::clone(&facts.seeded.0).into(), math::random());
    ScalarUDF::new_from_impl(Random { seeded, unseeded, signature, aliases })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Random {
    seeded: PtrEq<Arc<Mutex<Option<Generator>>>>,
    unseeded: Arc<ScalarUDF>,
    signature: Signature,
    aliases: Vec<String>,
}

impl ScalarUDFImpl for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    bowshot_api::getters!(aliases: &[String], signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut seeded = self.seeded.lock();
        if let Some(generator) = seeded.as_mut() {
            let drawn: Vec<f64> = (0..arguments.number_rows).map(|_| generator.draw()).collect();
            return Ok(ColumnarValue::Array(Arc::new(Float64Array::from(drawn))));
        }
        drop(seeded);
        self.unseeded.invoke_with_args(arguments)
    }
}
