//! `warpscope help`: long explanations by topic. Placeholders are filled from tables in the code.

use super::failure::Failure;
use super::print;
use super::reason::REASONS;
use crate::analysis::fuzzy::nearest_match;
use crate::analysis::hints::DIAGNOSES;
use crate::analysis::labels::display_width;
use crate::analysis::table::Outputs;
use crate::analysis::triage::VERDICTS;
use crate::app::{ACTIONS, KeyScope};
use crate::config::keys::Key;
use crate::report::columns::{ColumnInfo, printed_tables};
use crate::report::schemas::{list_fields, list_schemas};
use crate::rerun::recipes::built_in_recipes;
use crate::ui::glossary::GLOSSARY;
use crate::ui::text::wrap_text;
use clap::Command;

/// Topics: name, and Markdown text whose first line is the title. A new topic needs a file and a row here.
pub static TOPICS: &[(&str, &str)] = &[
    ("run", include_str!("run.md")),
    ("recipes", include_str!("recipes.md")),
    ("trace", include_str!("trace.md")),
    ("measure", include_str!("measure.md")),
    ("rerun", include_str!("rerun.md")),
    ("triage", include_str!("triage.md")),
    ("ranks", include_str!("ranks.md")),
    ("memory", include_str!("memory.md")),
    ("timeline", include_str!("timeline.md")),
    ("hints", include_str!("hints.md")),
    ("metrics", include_str!("metrics.md")),
    ("formats", include_str!("formats.md")),
    ("errors", include_str!("errors.md")),
    ("agent", include_str!("agent.md")),
    ("json", include_str!("json.md")),
    ("columns", include_str!("columns.md")),
    ("config", include_str!("config.md")),
    ("ssh", include_str!("ssh.md")),
    ("words", include_str!("words.md")),
    ("speed", include_str!("speed.md")),
    ("verified", include_str!("verified.md")),
    ("safety", include_str!("safety.md")),
    ("limits", include_str!("limits.md")),
    ("keys", "# Keys: all of them, and where they work\n\n{{keys}}\n"),
];

/// Default page width, in columns.
const COLUMNS: usize = 100;
/// Maximum width of a term that has its meaning on the same line, in columns.
const TERM: usize = 28;

/// A term and its meaning.
type Entry = (String, String);

/// Returns the entries that replace a placeholder in a topic.
fn find_table(name: &str) -> Option<Vec<Entry>> {
    Some(match name {
        "verdicts" => VERDICTS.iter().map(|v| (v.id.to_owned(), v.meaning.to_owned())).collect(),
        "diagnoses" => DIAGNOSES.iter().map(|d| (d.id.to_owned(), d.meaning.to_owned())).collect(),
        "recipes" => built_in_recipes().map(|r| (r.id.to_owned(), format!("{}: {}", r.tool, r.about))).collect(),
        "reasons" => REASONS.iter().map(|r| (r.1.to_owned(), r.2.to_owned())).collect(),
        "frame" => frame_entries(),
        "glossary" => GLOSSARY.iter().map(|(word, meaning)| ((*word).to_owned(), (*meaning).to_owned())).collect(),
        "keys" => ACTIONS
            .iter()
            .map(|a| {
                let keys: Vec<String> = a.keys.iter().filter_map(|k| Key::parse(k)).map(|k| k.label()).collect();
                let place = if a.on == KeyScope::Everywhere { String::new() } else { format!(" ({})", a.on.as_str()) };
                (keys.join(" "), format!("{}{place}", a.help))
            })
            .collect(),
        command => return column_entries(command),
    })
}

/// Entries for the fields that all JSON documents have.
fn frame_entries() -> Vec<Entry> {
    let Some(any) = list_schemas().into_iter().next() else { return Vec::new() };
    let fields = list_fields(&any.schema).into_iter().filter(|f| f.is_framing() && !f.path.starts_with("coverage[]."));
    fields.map(|f| (f.path, if f.meaning.is_empty() { f.kind } else { format!("{}: {}", f.kind, f.meaning) })).collect()
}

/// Entries for the columns of a printed table: field, unit and meaning.
fn column_entries(command: &str) -> Option<Vec<Entry>> {
    let table = printed_tables().into_iter().find(|t| t.command == command)?;
    let machine = table.columns.iter().filter(|c| c.outputs.has(Outputs::CSV) || table.json_rows && c.outputs.has(Outputs::JSON));
    let entry = |c: &ColumnInfo| {
        let unit = c.unit.symbol();
        // The names of most fields end with the unit.
        let unit = if unit.is_empty() || c.id.contains('_') || c.id == "bytes" { String::new() } else { format!(", {unit}") };
        let only = match (c.outputs.has(Outputs::CSV), c.outputs.has(Outputs::JSON)) {
            (true, false) if table.json_rows => " (not in JSON)",
            (false, true) => " (JSON only)",
            _ => "",
        };
        (c.id.to_owned(), format!("{}{unit}{only}", c.meaning))
    };
    Some(machine.map(entry).collect())
}

/// Formats entries in two columns for a given width.
fn push_entries(all: &[Entry], columns: usize, out: &mut Vec<String>) {
    let term = all.iter().map(|e| display_width(&e.0)).filter(|w| *w <= TERM).max().unwrap_or(0);
    let room = columns.saturating_sub(term + 4).max(24);
    for (word, meaning) in all {
        let lines = wrap_text(&meaning.replace('`', ""), room);
        let long = display_width(word) > term;
        if long {
            out.push(format!("  {word}"));
        }
        for (at, line) in lines.into_iter().enumerate() {
            let word = if at == 0 && !long { word.as_str() } else { "" };
            out.push(format!("  {word}{}  {line}", " ".repeat(term - display_width(word))));
        }
    }
}

/// Returns the lines of a topic for a given width.
pub fn render_page(text: &str, columns: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            code = !code;
        } else if code {
            out.push(format!("    {line}").trim_end().to_owned());
        } else if let Some(all) = line.strip_prefix("{{").and_then(|l| l.strip_suffix("}}")).and_then(find_table) {
            push_entries(&all, columns, &mut out);
        } else if let Some(title) = line.strip_prefix("# ") {
            out.push(title.to_uppercase());
        } else if let Some(title) = line.strip_prefix("## ") {
            out.push(title.to_owned());
            out.push("-".repeat(display_width(title)));
        } else {
            out.push(line.to_owned());
        }
    }
    out
}

/// Returns the title of a topic without the topic's name.
fn topic_title(text: &str) -> &str {
    let first = text.lines().next().unwrap_or("").trim_start_matches("# ");
    first.split_once(": ").map_or(first, |(_, rest)| rest)
}

fn list_topics() -> Vec<String> {
    let mut out = vec!["warpscope help TOPIC explains:".to_owned(), String::new()];
    let all: Vec<Entry> = TOPICS.iter().map(|(name, text)| ((*name).to_owned(), topic_title(text).to_owned())).collect();
    push_entries(&all, COLUMNS, &mut out);
    out.push(String::new());
    out.push("warpscope COMMAND --help lists the options of a command, warpscope --help all commands.".to_owned());
    out
}

/// Text of a topic, as Markdown.
pub fn find_topic(name: &str) -> Option<&'static str> {
    TOPICS.iter().find(|t| t.0 == name).map(|t| t.1)
}

/// Prints a topic, the help of a command, or the list of topics; `command` is the definition of the command line.
pub fn print_help(topic: Option<&str>, mut command: Command) -> Result<(), Failure> {
    let Some(topic) = topic else { return print::lines(&list_topics()) };
    let columns = print::terminal_width().unwrap_or(COLUMNS).min(COLUMNS);
    let known = command.find_subcommand(topic).is_some_and(|c| !c.is_hide_set());
    if let Some((_, text)) = TOPICS.iter().find(|t| t.0 == topic) {
        let mut lines = render_page(text, columns);
        if known {
            lines.extend([String::new(), format!("warpscope {topic} --help lists the options of the command.")]);
        }
        return print::lines(&lines);
    }
    if let Some(found) = command.find_subcommand_mut(topic).filter(|_| known) {
        *found = found.clone().bin_name(format!("warpscope {topic}"));
        let text = found.render_long_help().to_string();
        return print::lines(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    let near = nearest_match(topic, TOPICS.iter().map(|t| t.0));
    let near = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
    Err(Failure::wrong(format!("there is no help on {topic:?}{near}; `warpscope help` lists the topics")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_fits_has_a_title_and_fills_its_tables() {
        for (name, text) in TOPICS {
            assert!(text.starts_with("# "), "{name}");
            assert!(!topic_title(text).is_empty(), "{name}");
            for columns in [60, 80, 100] {
                for line in render_page(text, columns) {
                    assert!(!line.contains("{{"), "{name}: {line}");
                    // Code blocks are not wrapped.
                    assert!(display_width(&line) <= COLUMNS + 14, "{name}: {line}");
                }
            }
        }
    }

    #[test]
    fn every_row_of_the_tables_is_in_a_topic() {
        let all: String = TOPICS.iter().map(|(_, text)| render_page(text, 100).join("\n")).collect();
        for id in VERDICTS.iter().map(|v| v.id) {
            assert!(all.contains(id), "{id}");
        }
        for id in DIAGNOSES.iter().map(|d| d.id) {
            assert!(all.contains(id), "{id}");
        }
        assert!(built_in_recipes().all(|r| all.contains(r.id)));
        assert!(ACTIONS.iter().all(|a| all.contains(a.help.split(['`', ' ']).next().unwrap_or(""))));
    }
}
