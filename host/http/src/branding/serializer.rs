//! Serializes a value with the names of this installation: names of struct fields and of enum
//! variants are renamed. Keys of maps and raw JSON pass unchanged, because they are a tool's or a
//! project's own data.

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

use super::Branding;

/// A value serialized with the names of an installation.
pub struct Branded<'a, T: ?Sized>(pub &'a T, pub &'a Branding);

impl<T: Serialize + ?Sized> Serialize for Branded<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Renaming(serializer, self.1))
    }
}

/// Serializer that renames, and the parts of it that serialize members. Raw JSON is a struct of
/// `serde_json` whose names do not contain the word.
struct Renaming<'b, S>(S, &'b Branding);

macro_rules! plain {
    ($($method:ident($($value:ident: $type:ty)?);)*) => {$(
        fn $method(self $(, $value: $type)?) -> Result<S::Ok, S::Error> {
            self.0.$method($($value)?)
        }
    )*};
}

macro_rules! parts {
    ($($method:ident($($given:ident: $type:ty),*) -> $part:ident;)*) => {$(
        fn $method(self, $($given: $type),*) -> Result<Self::$part, S::Error> {
            Ok(Renaming(self.0.$method($($given),*)?, self.1))
        }
    )*};
}

impl<'b, S: Serializer> Serializer for Renaming<'b, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Renaming<'b, S::SerializeSeq>;
    type SerializeTuple = Renaming<'b, S::SerializeTuple>;
    type SerializeTupleStruct = Renaming<'b, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Renaming<'b, S::SerializeTupleVariant>;
    type SerializeMap = Renaming<'b, S::SerializeMap>;
    type SerializeStruct = Renaming<'b, S::SerializeStruct>;
    type SerializeStructVariant = Renaming<'b, S::SerializeStructVariant>;

    plain! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_f32(value: f32);
        serialize_f64(value: f64);
        serialize_char(value: char);
        serialize_str(value: &str);
        serialize_bytes(value: &[u8]);
        serialize_unit_struct(name: &'static str);
        serialize_none();
        serialize_unit();
    }

    parts! {
        serialize_seq(length: Option<usize>) -> SerializeSeq;
        serialize_tuple(length: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, length: usize) -> SerializeTupleStruct;
        serialize_map(length: Option<usize>) -> SerializeMap;
        serialize_struct(name: &'static str, length: usize) -> SerializeStruct;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Branded(value, self.1))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_newtype_struct(name, &Branded(value, self.1))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_unit_variant(name, index, self.1.name(variant))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let variant = self.1.name(variant);
        self.0
            .serialize_newtype_variant(name, index, variant, &Branded(value, self.1))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let variant = self.1.name(variant);
        let inner = self.0.serialize_tuple_variant(name, index, variant, length);
        Ok(Renaming(inner?, self.1))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let variant = self.1.name(variant);
        let inner = self
            .0
            .serialize_struct_variant(name, index, variant, length);
        Ok(Renaming(inner?, self.1))
    }
}

macro_rules! members {
    ($($part:ident $method:ident($($key:ident)?);)*) => {$(
        impl<S: $part> $part for Renaming<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.$method($(self.1.name($key),)? &Branded(value, self.1))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

members! {
    SerializeSeq serialize_element();
    SerializeTuple serialize_element();
    SerializeTupleStruct serialize_field();
    SerializeTupleVariant serialize_field();
    SerializeStruct serialize_field(key);
    SerializeStructVariant serialize_field(key);
}

impl<S: SerializeMap> SerializeMap for Renaming<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Branded(value, self.1))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{json, value::RawValue};

    use super::*;

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Managed {
        UseServiceManagedAuth,
    }

    #[derive(Serialize)]
    struct View {
        is_service_managed: bool,
        nested: Vec<Option<View>>,
        kind: Managed,
        data: BTreeMap<&'static str, &'static str>,
        raw: Box<RawValue>,
    }

    fn view(nested: Vec<Option<View>>) -> View {
        View {
            is_service_managed: true,
            nested,
            kind: Managed::UseServiceManagedAuth,
            data: BTreeMap::from([("service", "service")]),
            raw: RawValue::from_string(r#"{"service": 1.0}"#.to_owned()).unwrap(),
        }
    }

    #[test]
    fn fields_and_variants_are_renamed_data_is_not() {
        let written = serde_json::to_string(&Branded(
            &view(vec![None, Some(view(vec![]))]),
            &Branding::new("acme"),
        ));
        let written = written.unwrap();
        assert!(written.contains(r#""raw":{"service": 1.0}"#), "{written}");
        let written: serde_json::Value = serde_json::from_str(&written).unwrap();
        let inner = json!({
            "is_acme_managed": true,
            "nested": [],
            "kind": "use_acme_managed_auth",
            "data": {"service": "service"},
            "raw": {"service": 1.0},
        });
        let mut outer = inner.clone();
        outer["nested"] = json!([null, inner]);
        assert_eq!(written, outer);
    }
}
