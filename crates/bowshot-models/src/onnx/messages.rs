//! The messages of ONNX: the fields that are looked at, under the numbers of `onnx.proto`. A field that stands not here is lost
//! where a file is decoded, so ONNX' library never sees it.

use crate::error::{Error, Result};
use prost::Message;

/// Messages: the fields that are read, each with its encoding and its number.
macro_rules! messages {
    ($($(#[$about:meta])* $name:ident { $($field:ident: $value:ty = ($($encoding:tt)*),)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, Message)]
        pub(super) struct $name {
            $(#[prost($($encoding)*)] pub(super) $field: $value,)*
        }
    )*};
}

messages! {
    ModelProto {
        ir_version: i64 = (int64, tag = "1"),
        graph: Option<GraphProto> = (message, optional, tag = "7"),
        opset_import: Vec<OperatorSetProto> = (message, repeated, tag = "8"),
    }

    /// The version of the operators of a domain.
    OperatorSetProto {
        domain: String = (string, tag = "1"),
        version: i64 = (int64, tag = "2"),
    }

    GraphProto {
        node: Vec<NodeProto> = (message, repeated, tag = "1"),
        name: String = (string, tag = "2"),
        initializer: Vec<TensorProto> = (message, repeated, tag = "5"),
        input: Vec<ValueInfoProto> = (message, repeated, tag = "11"),
        output: Vec<ValueInfoProto> = (message, repeated, tag = "12"),
    }

    NodeProto {
        input: Vec<String> = (string, repeated, tag = "1"),
        output: Vec<String> = (string, repeated, tag = "2"),
        op_type: String = (string, tag = "4"),
        attribute: Vec<AttributeProto> = (message, repeated, tag = "5"),
        domain: String = (string, tag = "7"),
    }

    AttributeProto {
        name: String = (string, tag = "1"),
        f: Option<f32> = (float, optional, tag = "2"),
        i: Option<i64> = (int64, optional, tag = "3"),
        s: Option<Vec<u8>> = (bytes = "vec", optional, tag = "4"),
        t: Option<TensorProto> = (message, optional, tag = "5"),
        floats: Vec<f32> = (float, repeated, tag = "7"),
        ints: Vec<i64> = (int64, repeated, tag = "8"),
        strings: Vec<Vec<u8>> = (bytes = "vec", repeated, tag = "9"),
        r#type: i32 = (int32, tag = "20"),
    }

    TensorProto {
        dims: Vec<i64> = (int64, repeated, tag = "1"),
        data_type: i32 = (int32, tag = "2"),
        float_data: Vec<f32> = (float, repeated, tag = "4"),
        int32_data: Vec<i32> = (int32, repeated, tag = "5"),
        string_data: Vec<Vec<u8>> = (bytes = "vec", repeated, tag = "6"),
        int64_data: Vec<i64> = (int64, repeated, tag = "7"),
        name: String = (string, tag = "8"),
        raw_data: Vec<u8> = (bytes = "vec", tag = "9"),
        double_data: Vec<f64> = (double, repeated, tag = "10"),
    }

    /// An input or an output of a graph.
    ValueInfoProto {
        name: String = (string, tag = "1"),
        r#type: Option<TypeProto> = (message, optional, tag = "2"),
    }

    /// A type; other kinds than tensors are none.
    TypeProto {
        tensor_type: Option<TensorTypeProto> = (message, optional, tag = "1"),
    }

    TensorTypeProto {
        elem_type: i32 = (int32, tag = "1"),
        shape: Option<ShapeProto> = (message, optional, tag = "2"),
    }

    ShapeProto {
        dim: Vec<DimensionProto> = (message, repeated, tag = "1"),
    }

    /// A number, or a name for one that is open.
    DimensionProto {
        dim_value: Option<i64> = (int64, optional, tag = "1"),
        dim_param: Option<String> = (string, optional, tag = "2"),
    }
}

/// The messages of a file that was screened.
pub(super) fn decode(bytes: &[u8]) -> Result<ModelProto> {
    ModelProto::decode(bytes).map_err(|error| Error::damaged(error.to_string()))
}

impl ValueInfoProto {
    pub(super) fn tensor(&self) -> Option<&TensorTypeProto> {
        self.r#type.as_ref()?.tensor_type.as_ref()
    }
}

impl TensorTypeProto {
    /// The second of two dimensions, if it is a number.
    pub(super) fn width(&self) -> Option<usize> {
        let [_, width] = self.shape.as_ref()?.dim.as_slice() else { return None };
        usize::try_from(width.dim_value?).ok()
    }
}
