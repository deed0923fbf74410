//! `warpscope schema`: JSON Schema of the commands' output.

use super::failure::Failure;
use super::values::word_parser;
use super::{print, reason};
use crate::analysis::fuzzy::nearest_match;
use crate::report::envelope::{SchemaInfo, schema_of};
use crate::report::schemas::{list_fields, list_schemas};
use crate::report::{self, Format, table};

/// `warpscope schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// The command, as in `triage` or `runs show`, or the name of a schema; without one, all schemas are listed.
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Output format: json is the JSON Schema, the others list the fields [default: table on a terminal, else json].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// All schemas: those of reports and runs, and those printed only by the command line.
fn all_schemas() -> Vec<SchemaInfo> {
    let mut all = list_schemas();
    all.push(schema_of::<reason::ErrorJson<'static>>());
    all
}

/// Prints a schema as JSON Schema or as a list of fields, or the list of schemas.
pub fn print_schema(args: &SchemaArgs) -> Result<(), Failure> {
    let all = all_schemas();
    let format = print::format_or(args.format, Format::Json);
    if args.command.is_empty() {
        let rows = all.iter().map(|s| vec![s.name.to_owned(), s.version.to_owned()]);
        return print::to_stdout(|out| match format {
            Format::Json => report::write_json(out, &all.iter().map(|s| &s.schema).collect::<Vec<_>>(), report::Layout::OneLine),
            Format::Md => table::write_markdown_texts(&[("schema", false), ("version", false)], rows, out),
            Format::Csv => out.write_all(table::to_paste(&["schema", "version"], rows).as_bytes()),
            Format::Table => all.iter().try_for_each(|s| writeln!(out, "{:<20} {}", s.name, s.version)),
        });
    }
    let wanted = args.command.join("-");
    let Some(found) = all.iter().find(|s| s.name == wanted) else {
        let near = nearest_match(&wanted, all.iter().map(|s| s.name));
        let hint = near.map_or_else(|| "`warpscope schema --format table` lists them".to_owned(), |n| format!("did you mean `{n}`?"));
        return Err(Failure::usage(format!("no schema is called `{}`; {hint}", args.command.join(" "))));
    };
    print::to_stdout(|out| {
        if format == Format::Json {
            return report::write_json(out, &found.schema, report::Layout::OneLine);
        }
        let fields = list_fields(&found.schema);
        if format == Format::Md {
            let rows = fields.into_iter().map(|f| vec![f.path, f.kind, f.meaning]);
            return table::write_markdown_texts(&[("field", false), ("type", false), ("meaning", false)], rows, out);
        }
        if format == Format::Csv {
            let rows = fields.into_iter().map(|f| vec![f.path, f.kind, f.meaning]);
            return out.write_all(table::to_paste(&["field", "type", "meaning"], rows).as_bytes());
        }
        let path = fields.iter().map(|f| f.path.len()).max().unwrap_or(0);
        let kind = fields.iter().map(|f| f.kind.len()).max().unwrap_or(0);
        writeln!(out, "{} {}: fields of its JSON", found.name, found.version)?;
        fields.iter().try_for_each(|f| writeln!(out, "{}", format!("{:<path$}  {:<kind$}  {}", f.path, f.kind, f.meaning).trim_end()))
    })
}
