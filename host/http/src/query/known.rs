//! Names of query parameters, checked before an operation is performed.
//!
//! Problem: clients may be newer than the server, so a parameter that an operation does not know is
//! ignored. If it was meant as a filter, the operation would return or do more than its caller asked for.
//!
//! Guarantee: an unknown parameter that could be meant as a parameter of any operation is refused, and so
//! is every unknown one of an operation that deletes. The names are those of the rows of all operations, so
//! there is no list to maintain.

use std::sync::Arc;

use app::{
    Error,
    core::spelling::{is_meant_as, misspelling, nearest},
};
use utoipa::openapi::{
    RefOr,
    path::{Operation, ParameterIn},
};

use crate::{
    branding::Branding,
    errors,
    unknown::{MAX_WARNINGS, Warning, Warnings, parameter_warning},
};

/// Names of query parameters, with the word of this installation.
pub(crate) type ParameterNames = Arc<[String]>;

/// Returns the names of the query parameters of operations.
pub(crate) fn parameter_names<'a>(
    operations: impl Iterator<Item = &'a Operation>,
    branding: &Branding,
) -> ParameterNames {
    let described = operations.flat_map(|operation| operation.parameters.iter().flatten());
    let names = described.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
            Some(branding.rename(&parameter.name).into_owned())
        }
        _ => None,
    });
    names.collect()
}

/// Query parameters that an operation knows, and those of all operations.
pub(crate) struct KnownParameters {
    /// True if all others are refused: the operation deletes, and could not do less afterwards.
    pub refuses_others: bool,
    pub own: ParameterNames,
    pub of_any: ParameterNames,
}

impl KnownParameters {
    /// Returns the warnings about the parameters of a query that the operation ignores.
    ///
    /// # Errors
    /// If a parameter is refused instead, or there are more unknown ones than warnings of a response, of
    /// which one could be meant as a filter.
    pub(crate) fn check(&self, query: &str) -> Result<Warnings, Error> {
        let mut warnings = Warnings::default();
        for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
            let plain = plain_name(&name);
            if self.own.iter().any(|known| known == plain) {
                continue;
            }
            let warning = parameter_warning(plain, &self.own);
            let is_refused = self.refuses_others || self.may_be_meant(plain);
            if is_refused || warnings.named().count() == MAX_WARNINGS {
                return Err(errors::invalid(self.refusal(plain, &warning)));
            }
            warnings.add(|| warning);
        }
        Ok(warnings)
    }

    fn may_be_meant(&self, name: &str) -> bool {
        let own: Vec<_> = self.own.iter().map(String::as_str).collect();
        self.of_any.iter().any(|known| is_meant_as(name, known))
            || misspelling(name, &own).is_some()
    }

    fn refusal(&self, name: &str, warning: &Warning) -> String {
        let mut refusal = warning.refusal();
        if nearest(name, self.own.iter()).is_none() {
            let known = match &*self.own {
                [] => "no query parameters".to_owned(),
                known => known.join(", "),
            };
            refusal.push_str(&format!("; the operation takes {known}"));
        }
        refusal
    }
}

/// Returns the name of a parameter without the brackets of a list or a map.
pub fn plain_name(name: &str) -> &str {
    name.split('[').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> ParameterNames {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn parameter_meant_as_a_filter_is_refused() {
        let known = KnownParameters {
            refuses_others: false,
            own: names(&["name", "toolkits", "limit"]),
            of_any: names(&["name", "toolkits", "limit", "statuses", "user_ids"]),
        };
        for (query, hint) in [
            ("names=a", "nearest known name is `name`"),
            ("limit=1&toolkit[]=a", "nearest known name is `toolkits`"),
            ("status=a", "takes name, toolkits, limit"),
            ("user=a", "takes name, toolkits, limit"),
            ("account=a", "takes name, toolkits, limit"),
            (&*"q=1&".repeat(MAX_WARNINGS + 1), "`q` is not allowed"),
        ] {
            let refused = known.check(query).unwrap_err();
            let problems = refused.problems();
            assert!(problems[0].contains(hint), "{query}: {problems:?}");
        }
        let warnings = known.check("name=a&_=1&utm_source=b&toolkits[]=c").unwrap();
        assert_eq!(warnings.named().count(), 2);
    }
}
