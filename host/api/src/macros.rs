//! Macros that declare requests and views.

/// Declares an enum of requests and views, and its conversions from and to the enum of the app with
/// the same variants. The names on the wire are declared here, because the app does not know them.
macro_rules! mirror {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident of $app:ty {
            $($(#[$of_variant:meta])* $variant:ident,)+
        }
    ) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[derive(utoipa::ToSchema)]
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl From<$name> for $app {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }

        impl From<$app> for $name {
            fn from(value: $app) -> Self {
                match value {
                    $(<$app>::$variant => Self::$variant,)+
                }
            }
        }
    };
}

/// Declares functions for `deserialize_with` that fail with a reason. They refuse properties that belong
/// elsewhere, whatever the value.
macro_rules! refusals {
    ($($name:ident: $reason:literal;)+) => {
        $(
            fn $name<'de, D: serde::Deserializer<'de>>(_: D) -> Result<Option<bool>, D::Error> {
                Err(serde::de::Error::custom($reason))
            }
        )+
    };
}

/// Declares a view with its schema, and how it is made. A field is `name: Type = value`. The value is
/// computed from what follows `from`: one value of the app, which becomes an `impl From`, or several
/// parameters, which become a function `new`. Statements after `where` run first. Without `from`, the
/// fields have no values.
///
/// An optional field is `name?` if `None` is left out, and `name!` if `None` becomes null.
macro_rules! view {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident from $source:tt $(: $from:ty)?
            $(where { $($before:tt)+ })?
        {
            $(
                $(#[$of_field:meta])*
                $of:vis $field:ident $(? $(@ $absent:ident)?)? $(! $(@ $null:ident)?)?: $type:ty = $value:expr,
            )+
        }
    ) => {
        view! {
            $(#[$attribute])*
            $visibility struct $name {
                $($(#[$of_field])* $of $field $(? $($absent)?)? $(! $($null)?)?: $type,)+
            }
        }

        view! { @from $name $source $(: $from)? { $($($before)+)? } { $($field: $value,)+ } }
    };
    (@from $name:ident ($($parameter:ident: $given:ty),+ $(,)?) { $($before:tt)* } { $($fields:tt)+ }) => {
        impl $name {
            pub(crate) fn new($($parameter: $given),+) -> Self {
                $($before)*
                Self { $($fields)+ }
            }
        }
    };
    (@from $name:ident $source:ident: $from:ty { $($before:tt)* } { $($fields:tt)+ }) => {
        impl From<$from> for $name {
            fn from($source: $from) -> Self {
                $($before)*
                Self { $($fields)+ }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$of_field:meta])*
                $of:vis $field:ident $(? $(@ $absent:ident)?)? $(! $(@ $null:ident)?)?: $type:ty,
            )+
        }
    ) => {
        #[derive(serde::Serialize, utoipa::ToSchema)]
        $(#[$attribute])*
        $visibility struct $name {
            $(
                $(#[$of_field])*
                $(
                    #[serde(skip_serializing_if = "Option::is_none")]
                    #[schema(nullable = false)]
                    $($absent)?
                )?
                $(#[schema(required)] $($null)?)?
                $of $field: $type,
            )+
        }
    };
}
