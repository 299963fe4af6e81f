//! Unknown members of bodies whose type is put together of several. `serde` does not tell their
//! names to a deserializer, so they are taken from the schema that describes the body.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use parking_lot::RwLock;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use crate::http::unknown::{MAX_WARNINGS, Warning, member_warning};

/// Names of properties; `None` for a type that is not composed.
type Names = Option<Arc<[String]>>;

/// Names by type, because making a schema takes longer than reading most bodies.
static NAMES_BY_TYPE: LazyLock<RwLock<HashMap<TypeId, Names>>> = LazyLock::new(RwLock::default);

/// Returns a warning about each unknown property of a body, if its type is composed of several.
pub(super) fn warnings<T: ToSchema + 'static>(body: &Value) -> Vec<Warning> {
    let id = TypeId::of::<T>();
    let cached = NAMES_BY_TYPE.read().get(&id).cloned();
    let names = cached.unwrap_or_else(|| {
        let names = names::<T>();
        NAMES_BY_TYPE.write().insert(id, names.clone());
        names
    });
    let Some(names) = names else {
        return Vec::new();
    };
    let known: Vec<_> = names.iter().map(String::as_str).collect();
    let members = body.as_object().into_iter().flatten();
    members
        .map(|(name, _)| name.as_str())
        .filter(|name| !known.contains(name))
        .take(MAX_WARNINGS)
        .map(|name| member_warning("", name, &known))
        .collect()
}

fn names<T: ToSchema>() -> Names {
    let RefOr::T(Schema::AllOf(whole)) = T::schema() else {
        return None;
    };
    let mut referenced = Vec::new();
    T::schemas(&mut referenced);
    let mut names = Vec::new();
    for part in &whole.items {
        let part = match part {
            RefOr::Ref(to) => referenced
                .iter()
                .find(|(name, _)| {
                    to.ref_location
                        .rsplit('/')
                        .next()
                        .is_some_and(|last| last == name)
                })
                .map(|(_, schema)| schema),
            own => Some(own),
        };
        if let Some(RefOr::T(Schema::Object(object))) = part {
            names.extend(object.properties.keys().cloned());
        }
    }
    Some(names.into())
}
