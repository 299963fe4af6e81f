//! Tables as delimited text (CSV, TSV) and as JSON.

use std::collections::{HashMap, HashSet};

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use serde_json::{Map, Number};
use toolkit_sdk::prelude::*;

/// Max number of digits that a JSON number keeps exactly.
const EXACT_DIGITS: usize = 15;

/// Delimiter between two values.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Delimiter {
    #[default]
    Comma,
    Semicolon,
    Tab,
    Pipe,
}

impl Delimiter {
    const ALL: [Self; 4] = [Self::Comma, Self::Semicolon, Self::Tab, Self::Pipe];

    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Pipe => b'|',
        }
    }

    /// Returns the most frequent delimiter in the first line, outside of quotes.
    fn detect(text: &str) -> Self {
        let mut quoted = false;
        let first_line = text.bytes().filter(move |byte| {
            quoted ^= *byte == b'"';
            !quoted
        });
        let counts =
            first_line
                .take_while(|byte| *byte != b'\n')
                .fold([0; 4], |mut counts, byte| {
                    if let Some(at) = Self::ALL
                        .iter()
                        .position(|delimiter| delimiter.byte() == byte)
                    {
                        counts[at] += 1;
                    }
                    counts
                });
        let most = Self::ALL
            .into_iter()
            .zip(counts)
            .rev()
            .max_by_key(|(_, count)| *count);
        most.map_or(Self::Comma, |(delimiter, _)| delimiter)
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Csv {
    /// Text of the table, with line breaks.
    text: String,
    /// Delimiter. Detected from the first line by default.
    delimiter: Option<Delimiter>,
    /// True if the first line holds the column names. Otherwise the columns are named `column_1`,
    /// `column_2` and so on.
    #[serde(default = "yes")]
    header: bool,
    /// Converts a column to numbers or booleans if all its values are such; empty values become
    /// null in it, and identifiers such as `007` stay strings. If false, every value stays a
    /// string.
    #[serde(default = "yes")]
    detect_types: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Rows {
    /// Column names in the order of the text.
    columns: Vec<String>,
    /// One object for each line, by column name.
    rows: Vec<Map<String, Value>>,
    row_count: usize,
}

/// Converts CSV, TSV or other delimited text (RFC 4180 quoting) to an array of objects, one for
/// each line. Lines with too few or too many values are an error that names the line.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"text": "name,age\nAda,36\nAlan,41\n"}"#
)]
pub(crate) fn csv_to_json(input: Csv) -> Result<Rows> {
    let text = input.text.trim_start_matches('\u{feff}');
    let delimiter = input.delimiter.unwrap_or_else(|| Delimiter::detect(text));
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter.byte())
        .has_headers(false)
        .from_reader(text.as_bytes());
    let read: Result<Vec<StringRecord>, csv::Error> = reader.records().collect();
    let mut records =
        read.map_err(|error| ToolError::invalid_input(format!("cannot read the table: {error}")))?;
    let width = records.first().map_or(0, StringRecord::len);
    let names = if input.header && !records.is_empty() {
        records.remove(0)
    } else {
        StringRecord::new()
    };
    let columns = column_names(&names, width);
    let kinds: Vec<Kind> = (0..width)
        .map(|at| {
            if input.detect_types {
                Kind::from_values(records.iter().filter_map(|row| row.get(at)))
            } else {
                Kind::Text
            }
        })
        .collect();
    let rows: Vec<_> = records
        .iter()
        .map(|row| {
            columns
                .iter()
                .cloned()
                .zip(row.iter().zip(&kinds).map(|(text, kind)| kind.value(text)))
                .collect()
        })
        .collect();
    Ok(Rows {
        row_count: rows.len(),
        columns,
        rows,
    })
}

/// Returns the column names: empty names are filled in, repeated names get a number.
fn column_names(names: &StringRecord, width: usize) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut used: HashMap<String, usize> = HashMap::new();
    (0..width)
        .map(|at| {
            let name = match names.get(at).unwrap_or_default().trim() {
                "" => format!("column_{}", at + 1),
                name => name.to_owned(),
            };
            let mut unique = name.clone();
            while !taken.insert(unique.clone()) {
                let number = used.entry(name.clone()).or_insert(1);
                *number += 1;
                unique = format!("{name}_{number}");
            }
            unique
        })
        .collect()
}

/// Common type of all values of a column.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Boolean,
    Text,
}

impl Kind {
    fn from_values<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut kinds = values
            .filter(|text| !text.is_empty())
            .map(|text| match text {
                "true" | "false" => Self::Boolean,
                _ if number(text).is_some() => Self::Number,
                _ => Self::Text,
            });
        let first = kinds.next().unwrap_or(Self::Text);
        if kinds.all(|kind| kind == first) {
            first
        } else {
            Self::Text
        }
    }

    fn value(self, text: &str) -> Value {
        match self {
            Self::Text => text.into(),
            _ if text.is_empty() => Value::Null,
            Self::Boolean => (text == "true").into(),
            Self::Number => number(text).map_or_else(|| text.into(), Value::Number),
        }
    }
}

/// Parses a number in JSON's format, if it is short enough to stay exact.
fn number(text: &str) -> Option<Number> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'.');
    if plain && digits <= EXACT_DIGITS {
        serde_json::from_str(text).ok()
    } else {
        None
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Table {
    /// One object for each line. Objects and arrays inside a row are written as JSON, null as an
    /// empty value.
    rows: Vec<Map<String, Value>>,
    /// Columns to write, in order. Defaults to every key, in the order of first appearance.
    columns: Option<Vec<String>>,
    #[serde(default)]
    delimiter: Delimiter,
    /// Writes the column names to the first line.
    #[serde(default = "yes")]
    header: bool,
    /// Name of a file to write the table to. The file is returned instead of the text, for tables
    /// that need not be read here.
    file_name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CsvText {
    /// Text of the table; missing if a file is returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File>,
    columns: Vec<String>,
    row_count: usize,
}

/// Converts an array of objects to CSV, TSV or other delimited text, quoted where needed (RFC
/// 4180).
#[tool(
    read_only,
    idempotent,
    example = r#"{"rows": [{"name": "Ada", "age": 36}, {"name": "Alan"}]}"#
)]
pub(crate) fn json_to_csv(input: Table) -> Result<CsvText> {
    let columns = input.columns.unwrap_or_else(|| keys(&input.rows));
    if columns.is_empty() {
        return Err(ToolError::invalid_input(
            "no columns are given; give at least one row with a key, or `columns`",
        ));
    }
    let text = write(&columns, &input.rows, input.delimiter, input.header)
        .map_err(|error| ToolError::invalid_input(format!("cannot write the table: {error}")))?;
    let (text, file) = match input.file_name {
        None => (Some(text), None),
        Some(name) => (None, Some(File::with(name, "text/csv", text.as_bytes())?)),
    };
    Ok(CsvText {
        text,
        file,
        columns,
        row_count: input.rows.len(),
    })
}

fn keys(rows: &[Map<String, Value>]) -> Vec<String> {
    let mut all = Map::new();
    for key in rows.iter().flat_map(Map::keys) {
        all.entry(key).or_insert(Value::Null);
    }
    all.into_iter().map(|(key, _)| key).collect()
}

fn write(
    columns: &[String],
    rows: &[Map<String, Value>],
    delimiter: Delimiter,
    header: bool,
) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let mut writer = WriterBuilder::new()
        .delimiter(delimiter.byte())
        .from_writer(Vec::new());
    if header {
        writer.write_record(columns)?;
    }
    for row in rows {
        writer.write_record(columns.iter().map(|column| cell(row.get(column))))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn yes() -> bool {
    true
}
