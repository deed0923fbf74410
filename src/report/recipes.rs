//! `recipes`: the command that records a program, either explained, for a shell, as a script or as JSON.

use super::document::{Block, Document, KeyValue};
use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rerun::PartJson;
use crate::model::text::escape_unsafe;
use crate::rerun::recipes::{Prepared, Recipe, RecipeStep, User, all_recipes};
use crate::rerun::{CommandPart, PartId, shell};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

#[derive(Debug, Serialize, JsonSchema)]
struct FileJson<'a> {
    path: &'a str,
    text: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepJson<'a> {
    role: &'a str,
    what: &'a str,
    why: &'a str,
    argv: &'a [String],
    shell: String,
}

impl<'a> From<&'a RecipeStep> for StepJson<'a> {
    fn from(s: &'a RecipeStep) -> Self {
        Self { role: s.role.word(), what: &s.what, why: &s.why, argv: &s.argv, shell: shell::command_line(&s.argv) }
    }
}

/// JSON form of a recipe's command. `files` and `reports` are paths relative to the output folder; a `*` in `reports`
/// matches any text.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::report) struct RecipeJson<'a> {
    recipe: &'a str,
    tool: &'a str,
    about: &'a str,
    when: &'a str,
    cost: &'a str,
    argv: Vec<String>,
    shell: String,
    env: BTreeMap<&'a str, &'a str>,
    files: Vec<FileJson<'a>>,
    reports: Vec<String>,
    parts: Vec<PartJson<'a>>,
    steps: Vec<StepJson<'a>>,
    remarks: &'a [String],
    runnable: bool,
    by_hand: Option<&'a str>,
}

impl JsonDocument for RecipeJson<'_> {
    const NAME: &'static str = "recipes";
}

/// A recipe in the list of recipes.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedJson<'a> {
    recipe: &'a str,
    tool: &'a str,
    about: &'a str,
    when: &'a str,
    cost: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::report) struct ListJson<'a> {
    recipes: Vec<ListedJson<'a>>,
}

impl JsonDocument for ListJson<'_> {
    const NAME: &'static str = "recipes-list";
}

/// Writes the list of recipes as JSON.
pub fn write_list(out: &mut dyn Write, users: &[User]) -> io::Result<()> {
    let listed = all_recipes(users).map(|r| ListedJson { recipe: r.id, tool: r.tool, about: r.about, when: r.when, cost: r.cost });
    Envelope::default().write(out, &ListJson { recipes: listed.collect() })
}

/// Writes a command as JSON.
pub fn write_json(out: &mut dyn Write, recipe: &Recipe<'_>, prepared: &Prepared) -> io::Result<()> {
    let program = prepared.parts.iter().filter(|p| p.id == PartId::Program).flat_map(|p| &p.words);
    let next = prepared.by_hand.is_none().then(|| {
        NextJson::new(
            ["warpscope", "run", "--recipe", recipe.id, "--"].into_iter().chain(program.map(String::as_str)),
            "records the program with this recipe",
        )
    });
    Envelope::default().then(next).write(
        out,
        &RecipeJson {
            recipe: recipe.id,
            tool: recipe.tool,
            about: recipe.about,
            when: recipe.when,
            cost: recipe.cost,
            argv: prepared.argv(),
            shell: command_text(prepared, false),
            env: prepared.env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect(),
            files: prepared.files.iter().map(|(path, text)| FileJson { path, text }).collect(),
            reports: prepared.reports.iter().map(ToString::to_string).collect(),
            parts: prepared.parts.iter().map(Into::into).collect(),
            steps: prepared.steps.iter().map(Into::into).collect(),
            remarks: &prepared.notes,
            runnable: prepared.by_hand.is_none(),
            by_hand: prepared.by_hand.as_deref(),
        },
    )
}

/// Arguments that set variables for a command.
fn variable_words(prepared: &Prepared) -> Vec<String> {
    prepared.env.iter().map(|(name, value)| format!("{name}={}", shell::quote(value))).collect()
}

/// The command with its variables, for a shell: on a single line, or with one group of arguments per line.
fn command_text(prepared: &Prepared, lines: bool) -> String {
    let groups: Vec<Vec<String>> = prepared.parts.iter().map(|p| p.words.clone()).collect();
    let command = if lines { shell::command_lines(&groups) } else { shell::command_line(&prepared.argv()) };
    let gap = if lines { " \\\n    " } else { " " };
    variable_words(prepared).into_iter().chain([command]).collect::<Vec<_>>().join(gap)
}

/// Shell commands to run before the command: create the folder and write the files verbatim.
fn setup_commands(prepared: &Prepared, folder: Option<&str>) -> String {
    let mut out = String::new();
    if let Some(folder) = folder.filter(|f| !f.is_empty()) {
        let _ = writeln!(out, "mkdir -p -- {}", shell::quote(folder));
    }
    for (path, text) in &prepared.files {
        let path = folder.map_or_else(|| format!("./{path}"), |f| format!("{f}/{path}"));
        // Choose an end marker that is not a line of the file.
        let mut end = "END_OF_FILE".to_owned();
        while text.lines().any(|l| l == end) {
            end.push('_');
        }
        let _ = write!(out, "cat > {} <<'{end}'\n{text}{end}\n", shell::quote(&path));
    }
    out
}

fn print_text(out: &mut dyn Write, text: &str, for_terminal: bool) -> io::Result<()> {
    if for_terminal { text.lines().try_for_each(|l| writeln!(out, "{}", escape_unsafe(l))) } else { out.write_all(text.as_bytes()) }
}

/// Writes the command for a shell: its prerequisites, then the command on a single line, then the steps of a
/// server as comments.
pub fn write_shell(out: &mut dyn Write, prepared: &Prepared, folder: Option<&str>, for_terminal: bool) -> io::Result<()> {
    let folder = folder.filter(|_| !prepared.files.is_empty());
    let mut text = format!("{}{}\n", setup_commands(prepared, folder), command_text(prepared, false));
    for step in prepared.steps.iter().filter(|s| !s.argv.is_empty()) {
        let _ = write!(text, "# {}\n# {}\n", escape_unsafe(&step.what), escape_unsafe(&shell::command_line(&step.argv)));
    }
    print_text(out, &text, for_terminal)
}

/// Writes a shell script. A guided session runs completely: server in the background, steps, end of the server.
pub fn write_script(
    out: &mut dyn Write,
    recipe: &Recipe<'_>,
    prepared: &Prepared,
    folder: Option<&str>,
    for_terminal: bool,
) -> io::Result<()> {
    let mut text = format!("#!/bin/sh\n# {}: {}\n", escape_unsafe(recipe.id), escape_unsafe(recipe.about));
    for note in prepared.notes.iter().chain(&prepared.by_hand) {
        let _ = writeln!(text, "# {}", escape_unsafe(note));
    }
    text.push_str("set -eu\n");
    text.push_str(&setup_commands(prepared, folder));
    if prepared.steps.is_empty() {
        // `exec` does not accept variable assignments.
        let exec = if prepared.env.is_empty() { "exec " } else { "exec env " };
        let _ = writeln!(text, "{exec}{}", command_text(prepared, true));
        return print_text(out, &text, for_terminal);
    }
    // Send TERM, because a shell starts background processes with interrupts ignored. nsys forwards TERM and writes its
    // report.
    let _ = write!(text, "{} &\nserver=$!\ntrap 'kill -TERM \"$server\" 2>/dev/null || :' EXIT\n", command_text(prepared, true));
    for step in &prepared.steps {
        if !step.argv.is_empty() {
            let _ = write!(text, "\n# {} {}\n{}\n", escape_unsafe(&step.what), escape_unsafe(&step.why), shell::command_line(&step.argv));
        }
    }
    text.push_str("\ntrap - EXIT\nkill -TERM \"$server\"\nwait \"$server\" || :\n");
    print_text(out, &text, for_terminal)
}

/// A recipe for people: the parts of its command with their purpose, its cost and output, and the steps.
pub fn document(recipe: &Recipe<'_>, prepared: &Prepared) -> Document<'static> {
    let known = [("when", recipe.when), ("cost", recipe.cost)].into_iter().filter(|(_, text)| !text.is_empty());
    let mut facts: Vec<KeyValue> = known.map(|(key, text)| KeyValue::new(key, text)).collect();
    let files = prepared.files.iter();
    facts.extend(files.map(|(path, _)| KeyValue::new("writes", format!("{path}, written before the command; --format script shows it"))));
    let reports: Vec<String> = prepared.reports.iter().map(ToString::to_string).collect();
    if !reports.is_empty() {
        facts.push(KeyValue::new("leaves", reports.join(", ")));
    }
    facts.extend(prepared.notes.iter().map(|note| KeyValue::new("note", note)));
    facts.extend(prepared.by_hand.iter().map(|why| KeyValue::new("by hand", why)));
    let mut blocks = vec![Block::Text(recipe.about.to_owned()), Block::Explained(with_variables(prepared))];
    if !facts.is_empty() {
        blocks.push(Block::KeyValues(facts));
    }
    blocks.extend(prepared.steps.iter().zip(1..).map(|(step, n)| {
        Block::KeyValues(vec![KeyValue::new(format!("step {n}"), format!("{} {}", step.what, step.why)).with_command(&step.argv)])
    }));
    Document { blocks }
}

/// Parts of the command, starting with the variables.
fn with_variables(prepared: &Prepared) -> Vec<CommandPart> {
    let variables = (!prepared.env.is_empty()).then(|| CommandPart {
        id: crate::rerun::PartId::Tool,
        words: ["env".to_owned()].into_iter().chain(prepared.env.iter().map(|(n, v)| format!("{n}={v}"))).collect(),
        why: "Environment variables for this command only.".to_owned(),
    });
    variables.into_iter().chain(prepared.parts.iter().cloned()).collect()
}
