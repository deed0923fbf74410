//! Rows of a table as a JSON list, and the schema of such a row.

use super::budget::keep_for_json;
use super::output::output;
use crate::analysis::table::{Column, Outputs, RowJson, Unit, columns_of};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::{Borrow, Cow};
use std::cell::RefCell;

/// A row whose table has the same columns in every JSON document.
pub trait TableRow: Sized {
    fn columns() -> Vec<Column<Self>>;
}

/// JSON rows that are generated one at a time while they are written, since there may be millions. They can only be
/// written once.
pub struct Rows<'a, R, B = R> {
    columns: Vec<Column<R>>,
    rows: RefCell<Box<dyn Iterator<Item = B> + 'a>>,
}

impl<'a, R: TableRow, B: Borrow<R>> Rows<'a, R, B> {
    pub fn new(rows: impl Iterator<Item = B> + 'a) -> Self {
        Self { columns: columns_of(R::columns(), Outputs::JSON), rows: RefCell::new(Box::new(rows)) }
    }
}

impl<R, B: Borrow<R>> Serialize for Rows<'_, R, B> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Row<'a, R, B>(&'a [Column<R>], B);

        impl<R, B: Borrow<R>> Serialize for Row<'_, R, B> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                RowJson(self.0, self.1.borrow()).serialize(to)
            }
        }

        let mut rows = self.rows.borrow_mut();
        if let Some(budget) = output().budget {
            let kept = keep_for_json(&self.columns, rows.by_ref(), budget);
            return to.collect_seq(kept.into_iter().map(|row| Row(&self.columns, row)));
        }
        to.collect_seq(rows.by_ref().map(|row| Row(&self.columns, row)))
    }
}

impl<R: TableRow, B> JsonSchema for Rows<'_, R, B> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let columns = columns_of(R::columns(), Outputs::JSON);
        let fields: Vec<(&str, Unit, &str)> = columns.iter().map(|c| (c.id, c.unit, c.meaning)).collect();
        json_schema!({ "type": "array", "items": object_schema(&fields, false) })
    }
}

/// Schema of an object that always contains all fields, which are `null` if they were not recorded.
fn object_schema(fields: &[(&str, Unit, &str)], nullable: bool) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|&(id, unit, meaning)| (id.to_owned(), field_schema(unit, meaning))).collect();
    let required: Vec<&str> = fields.iter().map(|f| f.0).collect();
    let kind = if nullable { serde_json::json!(["object", "null"]) } else { serde_json::json!("object") };
    serde_json::json!({ "type": kind, "properties": properties, "required": required })
}

fn field_schema(unit: Unit, meaning: &str) -> Value {
    let mut schema = match unit {
        Unit::Text => serde_json::json!({ "type": ["string", "null"] }),
        Unit::Id | Unit::Index => serde_json::json!({ "type": ["integer", "null"] }),
        Unit::Flag => serde_json::json!({ "type": ["boolean", "null"] }),
        Unit::Path => serde_json::json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        Unit::Dims => serde_json::json!({ "type": ["array", "null"], "items": { "type": "integer" }, "minItems": 3, "maxItems": 3 }),
        Unit::Literal => serde_json::json!({ "type": ["string", "number", "null"] }),
        Unit::Record(fields) => {
            let fields: Vec<(&str, Unit, &str)> = fields.iter().map(|f| (f.id, f.unit, f.meaning)).collect();
            object_schema(&fields, true)
        }
        Unit::Count
        | Unit::Counter
        | Unit::Ns
        | Unit::Seconds
        | Unit::Time
        | Unit::ExactTime
        | Unit::NsChange
        | Unit::Bytes
        | Unit::BytesChange
        | Unit::Percent
        | Unit::WholePercent
        | Unit::PercentChange
        | Unit::FlopPerSecond
        | Unit::Probability => serde_json::json!({ "type": ["number", "null"] }),
    };
    if let Some(object) = schema.as_object_mut() {
        let text = match unit.symbol() {
            "" => meaning.to_owned(),
            symbol => format!("{meaning} [{symbol}]"),
        };
        object.insert("description".to_owned(), text.into());
    }
    schema
}
