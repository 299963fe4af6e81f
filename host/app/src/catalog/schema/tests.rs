//! Tests of `schema`.

use serde_json::{json, value::to_raw_value};

use super::*;
use crate::catalog::{SchemaFile, check::NOT_AN_OBJECT};

/// The origin of a value.
#[derive(Clone, Copy)]
enum Origin {
    Caller,
    Toolkit,
}

fn schema_file() -> SchemaFile {
    SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap()
}

async fn problems(schema: &Schema, origin: Origin, value: &'static str) -> Result<Vec<String>> {
    let large = LargeWork::start(|| {}).unwrap();
    let (project, value) = ("a".into(), Bytes::from_static(value.as_bytes()));
    match origin {
        Origin::Toolkit => schema.problems(&large, &project, &value).await,
        Origin::Caller => {
            let accepted = schema.accept(&large, &project, &value).await?;
            Ok(accepted.err().unwrap_or_default())
        }
    }
}

#[tokio::test]
async fn unreadable_schema_is_an_outage() {
    let mut schema_file = schema_file();
    let text = schema_file.add(&to_raw_value(&json!({"type": "string"})).unwrap());
    let unwritten = Schema::new(text, schema_file.validators());
    for origin in [Origin::Toolkit, Origin::Caller] {
        let problems = problems(&unwritten, origin, "1").await;
        assert!(problems.unwrap_err().is(&errors::UNAVAILABLE));
    }
}

#[tokio::test]
async fn loose_schema_passes_every_object() {
    let mut schema_file = schema_file();
    let text =
        schema_file.add(&to_raw_value(&json!({"type": "object", "required": ["a"]})).unwrap());
    schema_file.write().unwrap();
    let loose = Schema::loose(text, schema_file.validators());
    let lines = problems(&loose, Origin::Toolkit, "{}").await;
    assert_eq!(lines.unwrap(), Vec::<String>::new());
    let lines = problems(&loose, Origin::Toolkit, "[]").await;
    assert_eq!(lines.unwrap(), [NOT_AN_OBJECT]);
    assert!(
        loose.text().unwrap().get().contains("required"),
        "it is shown as it is"
    );
}
