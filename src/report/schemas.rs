//! JSON Schema of every document, and its fields as a readable list.

use super::envelope::{SchemaInfo, schema_of};
use super::{
    code, diff, doctor, hints, host_lines, jobs, launches, live, memory, metrics, ranges, ranks, recipes, rerun, runs, sections, timeline,
    top, triage,
};
use serde_json::Value;

/// Schemas of the documents in which reports and runs are printed.
pub fn list_schemas() -> Vec<SchemaInfo> {
    vec![
        schema_of::<triage::json::TriageJson<'static>>(),
        schema_of::<top::TopJson<'static>>(),
        schema_of::<launches::LaunchesJson<'static>>(),
        schema_of::<hints::HintsJson<'static>>(),
        schema_of::<rerun::PlanJson<'static>>(),
        schema_of::<diff::DiffJson<'static>>(),
        schema_of::<host_lines::LinesJson<'static>>(),
        schema_of::<host_lines::LineChangesJson<'static>>(),
        schema_of::<ranges::RangesJson<'static>>(),
        schema_of::<timeline::events::EventsJson<'static>>(),
        schema_of::<metrics::MetricsJson<'static>>(),
        schema_of::<sections::SectionsJson<'static>>(),
        schema_of::<sections::RulesJson<'static>>(),
        schema_of::<code::CodeJson<'static>>(),
        schema_of::<metrics::SessionJson<'static>>(),
        schema_of::<ranks::json::JobJson<'static>>(),
        schema_of::<memory::json::MemoryJson<'static>>(),
        schema_of::<runs::RunsJson<'static>>(),
        schema_of::<runs::OneJson<'static>>(),
        schema_of::<live::LiveJson<'static>>(),
        schema_of::<recipes::RecipeJson<'static>>(),
        schema_of::<recipes::ListJson<'static>>(),
        schema_of::<jobs::FilesJson<'static>>(),
        schema_of::<doctor::DoctorJson<'static>>(),
    ]
}

/// Field of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Names from the document down to the field; `[]` stands for each element of a list, `*` for any name.
    pub path: String,
    /// Possible types of the value: `integer or null`.
    pub kind: String,
    pub meaning: String,
}

/// Fields that every document has.
const FRAME: [&str; 6] = ["schema", "source", "coverage", "notes", "next", "left_out"];

impl FieldInfo {
    /// Returns true for a field that every document has.
    pub fn is_framing(&self) -> bool {
        let name = self.path.split(['.', '[']).next().unwrap_or_default();
        FRAME.contains(&name)
    }
}

/// Fields of a schema, each followed by its own fields if it is an object; fields that every document has come last.
pub fn list_fields(schema: &Value) -> Vec<FieldInfo> {
    let mut out = Vec::new();
    push_fields(schema, schema, "", &mut out);
    out.sort_by_key(FieldInfo::is_framing);
    out
}

/// Follows a reference to a definition, and picks the alternative that is not `null`.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> (&'s Value, bool) {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return resolve(root, &root["$defs"][name]);
    }
    let Some(choices) = schema["anyOf"].as_array() else { return (schema, false) };
    let null = |s: &&Value| s["type"] == "null";
    match choices.iter().find(|s| !null(s)) {
        Some(chosen) if choices.iter().any(|s| null(&s)) => (resolve(root, chosen).0, true),
        _ => (schema, false),
    }
}

fn kind_of(schema: &Value, nullable: bool) -> String {
    let words = |s: &Value| -> Vec<String> {
        match &s["type"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    };
    let mut kinds = words(schema);
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        kinds.extend(words(choice));
    }
    if nullable {
        kinds.push("null".to_owned());
    }
    kinds.dedup();
    kinds.join(" or ")
}

fn push_fields(root: &Value, schema: &Value, path: &str, out: &mut Vec<FieldInfo>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, field) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (mut inner, nullable) = resolve(root, field);
        let meaning = field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        out.push(FieldInfo { path: path.clone(), kind: kind_of(inner, nullable), meaning });
        let mut path = path;
        while inner["items"].is_object() || inner["additionalProperties"].is_object() {
            let (within, mark) = if inner["items"].is_object() { ("items", "[]") } else { ("additionalProperties", ".*") };
            path.push_str(mark);
            inner = resolve(root, &inner[within]).0;
        }
        push_fields(root, inner, &path, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_schema_has_its_own_name_and_the_common_frame() {
        let all = list_schemas();
        assert_eq!(all.iter().map(|s| s.name).collect::<BTreeSet<_>>().len(), all.len());
        for info in &all {
            let fields = list_fields(&info.schema);
            let has = |path: &str| fields.iter().any(|f| f.path == path);
            for path in ["schema.name", "schema.version", "source[].file", "coverage[].enough", "notes[].kind", "next[].argv"] {
                assert!(has(path), "{}: {path}: {fields:#?}", info.name);
            }
            assert!(fields.iter().all(|f| !f.kind.is_empty()), "{}: {fields:#?}", info.name);
            let definitions = info.schema["$defs"].as_object().unwrap().values().chain([&info.schema]);
            let most = definitions.filter_map(|d| d["properties"].as_object()).map(serde_json::Map::len).max().unwrap();
            assert!(most < crate::report::budget::MOST_FIELDS, "{}: {most} fields", info.name);
        }
    }

    #[test]
    fn fields_of_rows_say_their_unit() {
        let top = list_schemas().into_iter().find(|s| s.name == "top").unwrap();
        let fields = list_fields(&top.schema);
        let of = |path: &str| fields.iter().find(|f| f.path == path).map(|f| (f.kind.as_str(), f.meaning.as_str()));
        assert_eq!(of("rows[].total_ns"), Some(("number or null", "total duration [ns]")));
        assert_eq!(of("rows[].run.saves_percent"), Some(("number or null", "saved if the kernel takes no time [%]")));
        assert_eq!(of("device[].sm_count").map(|f| f.0), Some("integer or null"));
    }
}
