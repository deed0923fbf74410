//! The frame that all JSON documents share: type, source, missing data, and the command to run next.

use super::budget::{LeftOutJson, shrink};
use super::coverage::CoverageJson;
use super::format::{Layout, write_json};
use super::output::output;
use crate::model::{Note, Profile, Source};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// A JSON document of a command, without its frame.
pub trait JsonDocument: Serialize + JsonSchema {
    /// Name of the schema: the command that prints it, plus a word for any option that changes the content.
    const NAME: &'static str;
    /// Major and minor version: new fields increase the minor version, all other changes the major one.
    const VERSION: &'static str = "1.0";
}

/// Name and version of a document's schema.
#[derive(Serialize, JsonSchema)]
struct SchemaJson {
    name: &'static str,
    /// MAJOR.MINOR: a minor version only adds fields.
    version: &'static str,
}

/// Report that the numbers were read from.
#[derive(Serialize, JsonSchema)]
pub struct SourceJson<'a> {
    tool: &'a str,
    tool_version: Option<&'a str>,
    file: String,
}

impl<'a> From<&'a Source> for SourceJson<'a> {
    fn from(source: &'a Source) -> Self {
        Self { tool: &source.tool, tool_version: source.version.as_deref(), file: source.file.display().to_string() }
    }
}

/// Note that a reader of the report must know.
#[derive(Serialize, JsonSchema)]
pub struct NoteJson<'a> {
    severity: &'static str,
    /// Identifies the kind of note; it never changes its meaning.
    kind: &'static str,
    text: &'a str,
    fix: Option<&'a str>,
}

impl<'a> From<&'a Note> for NoteJson<'a> {
    fn from(n: &'a Note) -> Self {
        Self { severity: n.severity.as_str(), kind: n.kind.as_str(), text: &n.text, fix: n.fix.as_deref() }
    }
}

/// A command that answers the next question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextJson {
    /// Program and arguments, as the operating system takes them: no shell is needed.
    pub argv: Vec<String>,
    pub why: String,
}

impl NextJson {
    pub fn new<W: Into<String>>(argv: impl IntoIterator<Item = W>, why: &str) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), why: why.to_owned() }
    }

    /// A warpscope command on a report. The file is given as a path that cannot be mistaken for an option.
    pub fn on_report<'w>(command: &'w str, source: &Source, rest: impl IntoIterator<Item = &'w str>, why: &str) -> Self {
        let file = source.file.display().to_string();
        let file = if file.starts_with('-') { format!("./{file}") } else { file };
        let rest = rest.into_iter().map(str::to_owned);
        Self::new(["warpscope".to_owned(), command.to_owned(), file].into_iter().chain(rest), why)
    }
}

/// The part of a document that is the same for all commands.
#[derive(Default)]
pub struct Envelope<'a> {
    source: Vec<SourceJson<'a>>,
    coverage: Vec<CoverageJson<'a>>,
    notes: Vec<NoteJson<'a>>,
    next: Vec<NextJson>,
}

#[derive(Serialize, JsonSchema)]
struct Framed<'a, D> {
    schema: SchemaJson,
    /// Reports that the numbers were read from, in the order of the arguments; for two runs, the earlier one first.
    source: &'a [SourceJson<'a>],
    #[serde(flatten)]
    document: &'a D,
    /// Completeness of each report with a timeline, in the order of `source`.
    coverage: &'a [CoverageJson<'a>],
    notes: &'a [NoteJson<'a>],
    /// Commands that answer the next questions, the most useful one first.
    next: &'a [NextJson],
    /// Parts that `--budget` left out; null if everything is there.
    left_out: Option<LeftOutJson>,
}

impl<'a> Envelope<'a> {
    /// Frame of a document computed from profiles.
    pub fn of_profiles(profiles: impl IntoIterator<Item = &'a Profile>) -> Self {
        let mut out = Self::default();
        for profile in profiles {
            out.source.push((&profile.source).into());
            out.coverage.push(profile.into());
            out.notes.extend(profile.notes.iter().map(NoteJson::from));
        }
        out
    }

    pub fn of_profile(profile: &'a Profile) -> Self {
        Self::of_profiles([profile])
    }

    /// Frame of a document computed from digests, given the tool and file name of each report.
    pub fn of_files(files: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let source = |(tool, file)| SourceJson { tool, tool_version: None, file };
        Self { source: files.into_iter().map(source).collect(), ..Self::default() }
    }

    /// Frame of a document read from a report that has no timeline.
    pub fn of_source(source: &'a Source, notes: &'a [Note]) -> Self {
        Self { source: vec![source.into()], notes: notes.iter().map(NoteJson::from).collect(), ..Self::default() }
    }

    #[must_use]
    pub fn then(mut self, next: impl IntoIterator<Item = NextJson>) -> Self {
        for one in next {
            if !self.next.iter().any(|n| n.argv == one.argv) {
                self.next.push(one);
            }
        }
        self
    }

    /// Writes a document as JSON, with one line for each element of its lists, so that lines can be searched and
    /// compared.
    pub fn write<D: JsonDocument>(&self, out: &mut dyn Write, document: &D) -> io::Result<()> {
        self.write_as(out, document, Layout::LinePerElement, output().budget)
    }

    /// Writes a document as JSON on one line, for a stream of documents.
    pub fn write_line<D: JsonDocument>(&self, out: &mut dyn Write, document: &D) -> io::Result<()> {
        self.write_as(out, document, Layout::OneLine, output().budget)
    }

    /// Writes a document on one line without leaving anything out.
    pub fn write_whole_line<D: JsonDocument>(&self, out: &mut dyn Write, document: &D) -> io::Result<()> {
        self.write_as(out, document, Layout::OneLine, None)
    }

    fn write_as<D: JsonDocument>(&self, out: &mut dyn Write, document: &D, layout: Layout, budget: Option<usize>) -> io::Result<()> {
        let framed = Framed {
            schema: SchemaJson { name: D::NAME, version: D::VERSION },
            source: &self.source,
            document,
            coverage: &self.coverage,
            notes: &self.notes,
            next: &self.next,
            left_out: None,
        };
        let Some(budget) = budget else { return write_json(out, &framed, layout) };
        let mut whole = serde_json::to_value(&framed).map_err(io::Error::from)?;
        let left_out = shrink(&mut whole, budget, &output().whole);
        whole["left_out"] = serde_json::to_value(left_out).map_err(io::Error::from)?;
        write_json(out, &whole, layout)
    }
}

/// Schema of a document including its frame.
pub struct SchemaInfo {
    pub name: &'static str,
    pub version: &'static str,
    /// JSON Schema, draft 2020-12.
    pub schema: Value,
}

/// Returns the schema of a document, derived from the types that are serialized.
pub fn schema_of<D: JsonDocument + 'static>() -> SchemaInfo {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Framed<'static, D>>().to_value();
    schema["title"] = format!("warpscope {}", D::NAME).into();
    schema["$defs"]["SchemaJson"]["properties"]["name"]["const"] = D::NAME.into();
    schema["$defs"]["SchemaJson"]["properties"]["version"]["const"] = D::VERSION.into();
    SchemaInfo { name: D::NAME, version: D::VERSION, schema }
}
