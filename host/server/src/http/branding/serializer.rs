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

/// A value that is serialized with the names of an installation.
pub(crate) struct Branded<'a, T: ?Sized>(pub &'a T, pub &'a Branding);

impl<T: Serialize + ?Sized> Serialize for Branded<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Renaming(serializer, self.1))
    }
}

/// Serializer that renames, and the parts of it that serialize members.
struct Renaming<'b, S>(S, &'b Branding);

/// Members of a struct: a map with renamed keys, or the carrier of raw JSON, which has a name of
/// its own in `serde_json`.
enum Members<'b, M, R> {
    Renamed(M, &'b Branding),
    Raw(R),
}

const RAW_JSON: &str = "$serde_json::private::RawValue";

macro_rules! plain {
    ($($method:ident($type:ty);)*) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
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
    type SerializeStruct = Members<'b, S::SerializeMap, S::SerializeStruct>;
    type SerializeStructVariant = Renaming<'b, S::SerializeStructVariant>;

    plain! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_unit_struct(&'static str);
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Branded(value, self.1))
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_str(&self.1.rename(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_newtype_struct(name, &Branded(value, self.1))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let mut map = self.0.serialize_map(Some(1))?;
        map.serialize_entry(&*self.1.rename(variant), &Branded(value, self.1))?;
        map.end()
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(Renaming(self.0.serialize_seq(length)?, self.1))
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(Renaming(self.0.serialize_tuple(length)?, self.1))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        Ok(Renaming(
            self.0.serialize_tuple_struct(name, length)?,
            self.1,
        ))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let inner = self
            .0
            .serialize_tuple_variant(name, index, variant, length)?;
        Ok(Renaming(inner, self.1))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(Renaming(self.0.serialize_map(length)?, self.1))
    }

    fn serialize_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        Ok(if name == RAW_JSON {
            Members::Raw(self.0.serialize_struct(name, length)?)
        } else {
            Members::Renamed(self.0.serialize_map(Some(length))?, self.1)
        })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let inner = self
            .0
            .serialize_struct_variant(name, index, variant, length)?;
        Ok(Renaming(inner, self.1))
    }
}

macro_rules! sequences {
    ($($part:ident $method:ident;)*) => {$(
        impl<S: $part> $part for Renaming<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$method(&Branded(value, self.1))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

sequences! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
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

impl<M: SerializeMap, R: SerializeStruct<Ok = M::Ok, Error = M::Error>> SerializeStruct
    for Members<'_, M, R>
{
    type Ok = M::Ok;
    type Error = M::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        match self {
            Self::Renamed(map, branding) => {
                map.serialize_entry(&*branding.rename(key), &Branded(value, branding))
            }
            Self::Raw(inner) => inner.serialize_field(key, value),
        }
    }

    fn end(self) -> Result<M::Ok, M::Error> {
        match self {
            Self::Renamed(map, _) => map.end(),
            Self::Raw(inner) => inner.end(),
        }
    }
}

impl<S: SerializeStructVariant> SerializeStructVariant for Renaming<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.0.serialize_field(key, &Branded(value, self.1))
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
