//! rocprofv3's input files: YAML and JSON with a list `jobs`, and text with `pmc:` lines. YAML scalars are resolved as
//! Python's `yaml` (YAML 1.1) does, because rocprofv3 uses it.

use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::HashMap;

/// Maximum nesting depth and number of values per file; values behind aliases count each time.
const DEEPEST: u32 = 32;
const MOST: usize = 100_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// A number, as written in the file.
    Number(String),
    Text(String),
    List(Vec<Value>),
    Map(Vec<Key>),
}

/// A key, its value, and its line, if known.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub name: String,
    pub value: Value,
    pub line: Option<usize>,
}

/// A job of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    pub line: Option<usize>,
    pub keys: Vec<Key>,
}

impl Value {
    /// Formats the value for messages.
    pub fn to_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Number(text) | Self::Text(text) => text.clone(),
            Self::List(list) => format!("[{}]", list.iter().map(Self::to_text).collect::<Vec<_>>().join(", ")),
            Self::Map(keys) => format!("{{{}}}", keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns true if Python would consider the value true.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => *b,
            Self::Number(text) => parse_int(text) != Some(0),
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(keys) => !keys.is_empty(),
        }
    }
}

/// Parses an integer, optionally with `0x`, like Python's `int`.
pub fn parse_int(text: &str) -> Option<i64> {
    let digits = text.trim().replace('_', "");
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    hex.map_or_else(|| digits.parse().ok(), |h| i64::from_str_radix(h, 16).ok())
}

/// Resolves a plain (unquoted) scalar like Python's `yaml`.
fn resolve_scalar(text: &str) -> Value {
    if text.is_empty() || matches!(text, "~" | "null" | "Null" | "NULL") {
        return Value::Null;
    }
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return Value::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |t: &str| t.starts_with(|c: char| c.is_ascii_digit()) && t.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let hex = unsigned.strip_prefix("0x").is_some_and(|h| !h.is_empty() && h.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_'));
    let real = unsigned.split_once('.').is_some_and(|(whole, part)| digits(whole) && part.bytes().all(|b| b.is_ascii_digit() || b == b'_'));
    // 5:1:0 is a base-60 number, unless it begins with 0.
    let mut pieces = unsigned.split(':');
    let first = pieces.next().is_some_and(|p| digits(p) && !p.starts_with('0'));
    let sixty = first && unsigned.contains(':') && pieces.all(|p| (1..=2).contains(&p.len()) && p.parse::<u32>().is_ok_and(|n| n < 60));
    if digits(unsigned) || hex || real || sixty { Value::Number(text.to_owned()) } else { Value::Text(text.to_owned()) }
}

struct Tree<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    anchors: HashMap<usize, Value>,
    left: usize,
}

impl<'a> Tree<'a> {
    fn next_event(&mut self) -> Result<(Event<'a>, usize), String> {
        match self.parser.next() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(e)) => Err(format!("not YAML: {e}")),
            None => Err("the file ends inside a value".to_owned()),
        }
    }

    fn charge_values(&mut self, count: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(count).ok_or("the file has too many values")?;
        Ok(())
    }

    fn read_value(&mut self, event: Event<'a>, depth: u32) -> Result<Value, String> {
        self.charge_values(1)?;
        if depth > DEEPEST {
            return Err("values inside values inside values".to_owned());
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let bare = style == ScalarStyle::Plain && tag.is_none();
                (if bare { resolve_scalar(&text) } else { Value::Text(text.into_owned()) }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let mut list = Vec::new();
                loop {
                    match self.next_event()?.0 {
                        Event::SequenceEnd => break,
                        event => list.push(self.read_value(event, depth + 1)?),
                    }
                }
                (Value::List(list), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let (mut keys, mut at) = (Vec::new(), HashMap::new());
                loop {
                    let (event, line) = self.next_event()?;
                    if matches!(event, Event::MappingEnd) {
                        break;
                    }
                    let name = self.read_value(event, depth + 1)?.to_text();
                    let event = self.next_event()?.0;
                    let value = self.read_value(event, depth + 1)?;
                    match value {
                        // `<<` merges missing keys of another mapping.
                        Value::Map(merged) if name == "<<" => {
                            for key in merged {
                                if !at.contains_key(&key.name) {
                                    insert_key(&mut keys, &mut at, key);
                                }
                            }
                        }
                        value => insert_key(&mut keys, &mut at, Key { name, value, line: Some(line) }),
                    }
                }
                (Value::Map(keys), anchor)
            }
            Event::Alias(id) => {
                let value = self.anchors.get(&id).cloned().ok_or("an alias of an anchor that is not there")?;
                self.charge_values(count_values(&value))?;
                (value, 0)
            }
            _ => return Err("the file ends inside a value".to_owned()),
        };
        if anchor != 0 {
            self.charge_values(count_values(&value))?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }
}

/// Inserts a key; the last value of a duplicate wins, at the position of the first.
fn insert_key(keys: &mut Vec<Key>, at: &mut HashMap<String, usize>, key: Key) {
    match at.get(&key.name).and_then(|&i| keys.get_mut(i)) {
        Some(before) => *before = key,
        None => {
            at.insert(key.name.clone(), keys.len());
            keys.push(key);
        }
    }
}

/// Returns the number of values that a copy counts as; long strings count as several.
fn count_values(value: &Value) -> usize {
    const TEXT: usize = 64;
    match value {
        Value::List(list) => 1 + list.iter().map(count_values).sum::<usize>(),
        Value::Map(keys) => 1 + keys.iter().map(|k| k.name.len() / TEXT + count_values(&k.value)).sum::<usize>(),
        Value::Number(text) | Value::Text(text) => 1 + text.len() / TEXT,
        Value::Null | Value::Bool(_) => 1,
    }
}

fn parse_yaml(text: &str) -> Result<Value, String> {
    let mut tree = Tree { parser: Parser::new_from_str(text), anchors: HashMap::new(), left: MOST };
    loop {
        match tree.next_event()?.0 {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
            event => return tree.read_value(event, 0),
        }
    }
}

fn from_json(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => Value::Number(n.to_string()),
        serde_json::Value::String(s) => Value::Text(s),
        serde_json::Value::Array(list) => Value::List(list.into_iter().map(from_json).collect()),
        serde_json::Value::Object(map) => {
            Value::Map(map.into_iter().map(|(name, v)| Key { name, value: from_json(v), line: None }).collect())
        }
    }
}

/// Parses a text file: each line with `pmc:` outside a comment is a job.
fn parse_text(text: &str) -> Vec<Job> {
    let job = |(i, line): (usize, &str)| {
        let line = line.split('#').next().unwrap_or_default();
        let counters: Vec<Value> =
            line.contains("pmc:").then(|| line.replace("pmc:", ""))?.split_whitespace().map(|c| Value::Text(c.to_owned())).collect();
        let key = Key { name: "pmc".to_owned(), value: Value::List(counters), line: Some(i + 1) };
        Some(Job { line: Some(i + 1), keys: vec![key] })
    };
    text.lines().enumerate().filter_map(job).collect()
}

/// Parses the jobs of a file according to its extension, as rocprofv3 does, and returns them with the keys outside
/// `jobs`.
///
/// # Errors
/// Fails if rocprofv3 would also reject the input; the error is one sentence.
pub fn parse_jobs(name: &str, text: &str) -> Result<(Vec<Job>, Vec<Key>), String> {
    let suffix = name.rsplit_once('.').map_or("", |(_, s)| s);
    let root = match suffix {
        "yaml" | "yml" => parse_yaml(text)?,
        "json" => from_json(serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?),
        "txt" | "text" => return Ok((parse_text(text), Vec::new())),
        _ => return Err("rocprofv3 takes files that end in .yaml, .yml, .json or .txt".to_owned()),
    };
    let Value::Map(keys) = root else { return Err("there is no list `jobs` in it, so rocprofv3 would read nothing".to_owned()) };
    let found: Vec<String> = keys.iter().map(|k| format!("`{}`", k.name)).collect();
    let (of_jobs, beside): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(|k| k.name == "jobs");
    let Some(Key { value, line, .. }) = of_jobs.into_iter().next() else {
        let found = if found.is_empty() { String::new() } else { format!(" (only {})", found.join(", ")) };
        return Err(format!("there is no list `jobs` in it{found}, so rocprofv3 would end with a KeyError"));
    };
    let Value::List(list) = value else { return Err("`jobs` is not a list: each job begins with `-`".to_owned()) };
    let job = |value| match value {
        Value::Map(keys) => Ok(Job { line: keys.iter().filter_map(|k| k.line).min().or(line), keys }),
        other => Err(format!("a job is {:?}, not a set of options", other.to_text())),
    };
    Ok((list.into_iter().map(job).collect::<Result<_, _>>()?, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_what_pyyaml_makes_of_them() {
        let number = |t: &str| Value::Number(t.to_owned());
        let text = |t: &str| Value::Text(t.to_owned());
        for (written, want) in [
            ("on", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("0x6000000", number("0x6000000")),
            ("4", number("4")),
            ("5:1:0", number("5:1:0")),
            ("0:5:1", text("0:5:1")),
            ("5:100:0", text("5:100:0")),
            ("1-3", text("1-3")),
            ("SQ_WAVES", text("SQ_WAVES")),
            ("~", Value::Null),
            ("1.5", number("1.5")),
        ] {
            assert_eq!(resolve_scalar(written), want, "{written}");
        }
    }

    #[test]
    fn jobs_of_all_forms() {
        let yaml = "base: &b {hip_trace: yes}\njobs:\n  -\n    pmc: [A, B]\n    <<: *b\n  - pmc:\n    - C\n";
        let jobs = super::parse_jobs("a.yaml", yaml).unwrap().0;
        assert_eq!(jobs.iter().map(|j| j.line).collect::<Vec<_>>(), [Some(1), Some(6)]);
        assert_eq!(
            jobs[0].keys.iter().map(|k| (k.name.as_str(), k.value.to_text())).collect::<Vec<_>>(),
            [("pmc", "[A, B]".to_owned()), ("hip_trace", "true".to_owned())]
        );
        let json = super::parse_jobs("a.json", r#"{"jobs": [{"pmc": ["A"], "truncate_kernels": true}]}"#).unwrap().0;
        assert_eq!(json[0].keys.len(), 2);
        let txt = super::parse_jobs("a.txt", "# pmc: X\npmc: A  B # C\nrange: 1\npmc: D").unwrap().0;
        assert_eq!(txt.iter().map(|j| j.keys[0].value.to_text()).collect::<Vec<_>>(), ["[A, B]", "[D]"]);
    }

    #[test]
    fn what_rocprofv3_would_not_read() {
        for (name, text) in [
            ("a.yaml", "metrics:\n  - pmc: [A]\n"),
            ("a.yaml", "jobs: {pmc: A}"),
            ("a.yaml", "jobs:\n  - [1"),
            ("a.yaml", ""),
            ("a.json", "{"),
            ("a.toml", "jobs = []"),
        ] {
            assert!(parse_jobs(name, text).is_err(), "{text:?}");
        }
        let bomb = format!(
            "a0: &a0 [x]\n{}jobs: *a20\n",
            (1..=20).fold(String::new(), |t, i| {
                let before = format!("*a{}", i - 1);
                t + &format!("a{i}: &a{i} [{}]\n", vec![before; 9].join(", "))
            })
        );
        assert!(parse_jobs("a.yaml", &bomb).unwrap_err().contains("too many values"));
        assert!(parse_jobs("a.yaml", &"[".repeat(5000)).is_err());
        // Few but long values.
        let long = format!("a: &a {}\njobs: [{}]\n", "x".repeat(500_000), vec!["*a"; 20_000].join(", "));
        assert!(parse_jobs("a.yaml", &long).unwrap_err().contains("too many values"));
    }

    #[test]
    fn the_last_of_a_key_counts() {
        let yaml = "base: &b {a: 1, c: 3}\njobs:\n  - {a: 2, b: 1, <<: *b, a: 4}\n";
        let jobs = super::parse_jobs("a.yaml", yaml).unwrap();
        let written: Vec<(&str, String)> = jobs.0[0].keys.iter().map(|k| (k.name.as_str(), k.value.to_text())).collect();
        assert_eq!(written, [("a", "4".to_owned()), ("b", "1".to_owned()), ("c", "3".to_owned())]);
        // The maximum number of keys in a file.
        let many: String = (0..45_000).map(|n| format!("  k{}: 1\n", n % 40_000)).collect::<Vec<_>>().concat();
        assert_eq!(super::parse_jobs("a.yaml", &format!("jobs:\n- pmc: [A]\n{many}")).unwrap().0[0].keys.len(), 40_001);
    }
}
