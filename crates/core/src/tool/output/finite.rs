//! Lossless conversion of a tool's output to JSON.
//!
//! `serde_json` silently writes a non-finite float as `null`. A result that says "no value" where
//! the tool computed nonsense is worse than a failure, so such a float is an error here. Whole
//! floats are written as integers, as in the specification's examples: `15`, not `15.0`.
//! Everything else is passed through to `serde_json`.

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::Value;

/// Converts `output` to JSON, or returns an error for values that JSON cannot express (a non-finite
/// float, a map whose keys are not strings).
pub(crate) fn to_value<T: Serialize>(output: &T) -> Result<Value, serde_json::Error> {
    output.serialize(Finite(serde_json::value::Serializer))
}

/// Wraps a serializer, or a value to be serialized, and rejects non-finite floats.
struct Finite<T>(T);

impl<T: Serialize + ?Sized> Serialize for Finite<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Finite(serializer))
    }
}

/// Methods that pass their arguments on.
macro_rules! forward {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method(self, $($name: $type),*) -> Result<S::Ok, S::Error> {
            self.0.$method($($name),*)
        }
    )*};
}

/// Methods that wrap their last argument, a value.
macro_rules! forward_value {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<T: Serialize + ?Sized>(
            self,
            $($name: $type,)*
            value: &T,
        ) -> Result<S::Ok, S::Error> {
            self.0.$method($($name,)* &Finite(value))
        }
    )*};
}

/// Methods that begin a value of several parts.
macro_rules! begin {
    ($($method:ident($($name:ident: $type:ty),*) -> $kind:ident;)*) => {$(
        fn $method(self, $($name: $type),*) -> Result<Self::$kind, S::Error> {
            self.0.$method($($name),*).map(Finite)
        }
    )*};
}

impl<S: Serializer> Serializer for Finite<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Finite<S::SerializeSeq>;
    type SerializeTuple = Finite<S::SerializeTuple>;
    type SerializeTupleStruct = Finite<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Finite<S::SerializeTupleVariant>;
    type SerializeMap = Finite<S::SerializeMap>;
    type SerializeStruct = Finite<S::SerializeStruct>;
    type SerializeStructVariant = Finite<S::SerializeStructVariant>;

    forward! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_i128(value: i128);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_u128(value: u128);
        serialize_char(value: char);
        serialize_str(value: &str);
        serialize_bytes(value: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    forward_value! {
        serialize_some();
        serialize_newtype_struct(name: &'static str);
        serialize_newtype_variant(name: &'static str, index: u32, variant: &'static str);
    }

    begin! {
        serialize_seq(len: Option<usize>) -> SerializeSeq;
        serialize_tuple(len: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(
            name: &'static str,
            index: u32,
            variant: &'static str,
            len: usize
        ) -> SerializeTupleVariant;
        serialize_map(len: Option<usize>) -> SerializeMap;
        serialize_struct(name: &'static str, len: usize) -> SerializeStruct;
        serialize_struct_variant(
            name: &'static str,
            index: u32,
            variant: &'static str,
            len: usize
        ) -> SerializeStructVariant;
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        require_finite(value.is_finite())?;
        self.0.serialize_f32(value)
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        require_finite(value.is_finite())?;
        match exact_integer(value) {
            Some(integer) => self.0.serialize_i64(integer),
            None => self.0.serialize_f64(value),
        }
    }
}

fn require_finite<E: serde::ser::Error>(is_finite: bool) -> Result<(), E> {
    if is_finite {
        Ok(())
    } else {
        Err(E::custom("NaN and infinity are not JSON numbers"))
    }
}

/// Returns the integer value of a whole float, up to where floats can represent every integer.
pub(crate) fn exact_integer(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && float.abs() <= EXACT && !is_negative_zero {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some(float as i64);
    }
    None
}

/// Values of several parts: the methods that add a part.
macro_rules! compounds {
    ($($kind:ident { $($method:ident($($name:ident: $type:ty)?);)* })*) => {$(
        impl<S: $kind> $kind for Finite<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            $(
                fn $method<T: Serialize + ?Sized>(
                    &mut self,
                    $($name: $type,)?
                    value: &T,
                ) -> Result<(), S::Error> {
                    self.0.$method($($name,)? &Finite(value))
                }
            )*

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

compounds! {
    SerializeSeq { serialize_element(); }
    SerializeTuple { serialize_element(); }
    SerializeTupleStruct { serialize_field(); }
    SerializeTupleVariant { serialize_field(); }
    SerializeStruct { serialize_field(key: &'static str); }
    SerializeStructVariant { serialize_field(key: &'static str); }
}

impl<S: SerializeMap> SerializeMap for Finite<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Finite(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    enum Shape {
        Unit,
        New(f64),
        Pair(f64, f64),
        Named { value: Option<f64> },
    }

    #[derive(Serialize)]
    struct Nested<'a> {
        list: Vec<f32>,
        pair: (u8, &'a str),
        map: BTreeMap<&'a str, Shape>,
    }

    #[test]
    fn finite_values_serialize_as_with_serde_json() {
        let value = Nested {
            list: vec![1.5],
            pair: (7, "seven"),
            map: BTreeMap::from([
                ("a", Shape::Unit),
                ("b", Shape::New(1.25)),
                ("c", Shape::Pair(-0.5, 1e300)),
                ("d", Shape::Named { value: None }),
            ]),
        };
        let plain = serde_json::to_value(&value).unwrap();
        assert_eq!(to_value(&value).unwrap(), plain);
        assert_eq!(to_value(&()).unwrap(), json!(null));
    }

    #[test]
    fn a_non_finite_float_is_an_error_at_any_depth() {
        for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(to_value(&float).is_err());
            assert!(to_value(&Some(float)).is_err());
            assert!(to_value(&[1.0, float]).is_err());
            assert!(to_value(&Shape::New(float)).is_err());
            assert!(to_value(&Shape::Pair(0.0, float)).is_err());
            assert!(to_value(&Shape::Named { value: Some(float) }).is_err());
            assert!(to_value(&BTreeMap::from([("key", float)])).is_err());
        }
        assert!(to_value(&f32::NAN).is_err());
    }

    #[test]
    fn whole_floats_are_written_as_integers() {
        let written = to_value(&[15.0, -1.0, 0.0, 0.5, 1e300]).unwrap();
        assert_eq!(written, json!([15, -1, 0, 0.5, 1e300]));
        assert_eq!(to_value(&-0.0).unwrap().to_string(), "-0.0");
    }
}
