//! Linear's GraphQL schema, read from the TypeScript types that are generated from it. Linear
//! publishes these types in its JavaScript library and publishes no package with the schema.
//! Internal and deprecated fields are left out, so that no query may request them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const SCALAR_TYPES: [&str; 5] = ["ID", "String", "Boolean", "Int", "Float"];

/// A type with fields, as declared in TypeScript.
struct Declared<'a> {
    name: &'a str,
    /// Names of its interfaces.
    implements: Vec<&'a str>,
    /// True for object types, which declare `__typename`.
    is_object: bool,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    name: &'a str,
    kind: &'a str,
    about: String,
}

/// Returns the schema in GraphQL's schema language.
pub(crate) fn from_types(types: &str) -> String {
    let mut reader = Reader::default();
    let mut lines = types
        .lines()
        .skip_while(|line| !line.starts_with("type Scalars = {"));
    while let Some(line) = lines.next() {
        // The types after this line were generated from queries.
        if line.starts_with("type ") && line.contains("Fragment = ") {
            break;
        }
        if let Some(rest) = line.strip_prefix("declare enum ") {
            reader.enumeration(rest.trim_end_matches(" {"), &mut lines);
        } else if let Some((name, rest)) = line
            .strip_prefix("type ")
            .and_then(|rest| rest.split_once(" = "))
        {
            match rest.strip_suffix('{') {
                Some(implements) => reader.declared(name, implements, &mut lines),
                None => reader.unions.push((name, rest.trim_end_matches(';'))),
            }
        }
    }
    reader.written()
}

#[derive(Default)]
struct Reader<'a> {
    declared: Vec<Declared<'a>>,
    enums: BTreeMap<&'a str, Vec<&'a str>>,
    unions: Vec<(&'a str, &'a str)>,
}

impl<'a> Reader<'a> {
    fn enumeration(&mut self, name: &'a str, lines: &mut impl Iterator<Item = &'a str>) {
        let values = lines
            .take_while(|line| *line != "}")
            .filter_map(|line| line.split('"').nth(1).filter(|_| line.contains(" = ")));
        self.enums.insert(name, values.collect());
    }

    fn declared(
        &mut self,
        name: &'a str,
        implements: &'a str,
        lines: &mut impl Iterator<Item = &'a str>,
    ) {
        let mut fields = Vec::new();
        let mut about = String::new();
        let mut is_object = false;
        for line in lines.take_while(|line| *line != "};") {
            let line = line.trim();
            if line.starts_with("/**") || line.starts_with('*') {
                let words = line
                    .trim_start_matches("/**")
                    .trim_start_matches('*')
                    .trim_end_matches('/')
                    .trim_end_matches('*');
                about.push_str(words.trim());
                about.push(' ');
            } else if line.starts_with("__typename?") {
                is_object = true;
            } else if let Some((name, kind)) = line.trim_end_matches(';').split_once(": ") {
                fields.push(Field {
                    name: name.trim_end_matches('?'),
                    kind,
                    about: std::mem::take(&mut about),
                });
            }
        }
        fields.retain(|field| {
            ![
                "[Internal]",
                "[INTERNAL]",
                "@deprecated",
                "[DEPRECATED]",
                "[Deprecated]",
            ]
            .iter()
            .any(|word| field.about.contains(word))
        });
        let implements = implements
            .split(" & ")
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        self.declared.push(Declared {
            name,
            implements,
            is_object,
            fields,
        });
    }

    fn written(&self) -> String {
        let arguments: BTreeMap<String, &Declared<'_>> = self
            .declared
            .iter()
            .filter(|it| it.name.ends_with("Args") && !it.is_object)
            .map(|it| (it.name.to_lowercase(), it))
            .collect();
        let interfaces: BTreeSet<&str> = self
            .declared
            .iter()
            .flat_map(|it| it.implements.iter().copied())
            .collect();
        let mut schema = String::new();
        for scalar in self
            .declared
            .iter()
            .filter(|it| it.name == "Scalars")
            .flat_map(|it| &it.fields)
        {
            if !SCALAR_TYPES.contains(&scalar.name) {
                let _ = writeln!(schema, "scalar {}", scalar.name);
            }
        }
        for (name, values) in &self.enums {
            let _ = writeln!(schema, "enum {name} {{ {} }}", values.join(" "));
        }
        for (name, members) in &self.unions {
            let _ = writeln!(schema, "union {name} = {members}");
        }
        for declared in self
            .declared
            .iter()
            .filter(|it| !["Scalars", "Subscription"].contains(&it.name) && !it.fields.is_empty())
        {
            if arguments.contains_key(&declared.name.to_lowercase()) {
                continue;
            }
            let word = match declared.is_object {
                true => "type",
                false if interfaces.contains(declared.name) => "interface",
                false => "input",
            };
            let implements = match declared.implements.as_slice() {
                [] => String::new(),
                names => format!(" implements {}", names.join(" & ")),
            };
            let _ = writeln!(schema, "{word} {}{implements} {{", declared.name);
            for Field { name, kind, about } in &declared.fields {
                let arguments =
                    arguments.get(&format!("{}{name}args", declared.name).to_lowercase());
                let arguments = arguments.map(|it| {
                    let each = it
                        .fields
                        .iter()
                        .map(|field| format!("{}: {}", field.name, written(field.kind)));
                    format!("({})", each.collect::<Vec<_>>().join(", "))
                });
                let about = about.trim().replace('\\', "\\\\").replace('"', "\\\"");
                let _ = writeln!(
                    schema,
                    "  \"{about}\"\n  {name}{}: {}",
                    arguments.unwrap_or_default(),
                    written(kind)
                );
            }
            schema.push_str("}\n");
        }
        schema
    }
}

/// Converts a TypeScript type to GraphQL: `InputMaybe<Array<Scalars["String"]>>` is `[String!]`.
fn written(kind: &str) -> String {
    let inner = |name: &str| kind.strip_prefix(name)?.strip_suffix('>');
    if let Some(inner) = inner("InputMaybe<").or_else(|| inner("Maybe<")) {
        return written(inner).trim_end_matches('!').to_owned();
    }
    if let Some(inner) = inner("Array<") {
        return format!("[{}]!", written(inner));
    }
    let scalar = kind
        .strip_prefix("Scalars[\"")
        .and_then(|rest| rest.strip_suffix("\"]"));
    format!("{}!", scalar.unwrap_or(kind))
}
