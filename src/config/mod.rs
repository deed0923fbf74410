//! The user's configuration file: `$XDG_CONFIG_HOME/warpscope/config.toml`. It overrides the defaults, and the command
//! line overrides the file.

pub mod keys;
pub mod recipes;

use crate::analysis::GroupBy;
use crate::analysis::fuzzy::nearest_match;
use crate::analysis::table::{Sort, kernels, sort_orders};
use crate::launch::private_files;
use etcetera::BaseStrategy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Contents of the configuration file. All fields are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub theme: Option<String>,
    /// Initial grouping of a report's kernels.
    pub group: Option<GroupBy>,
    /// Initial sort order of a report's kernels.
    pub sort: Option<Sort>,
    pub color: Option<ColorMode>,
    /// Use only ASCII characters for drawing.
    pub ascii: Option<bool>,
    /// Path of the `nsys` executable that exports reports.
    pub nsys: Option<PathBuf>,
    /// Screen that a timeline opens with.
    pub first: Option<First>,
    /// Metrics pinned to the top of every result.
    pub pins: Vec<String>,
    /// Key bindings, by action name.
    pub keys: BTreeMap<String, Vec<String>>,
    /// The user's own recipes, by name; validated when used.
    pub recipes: BTreeMap<String, recipes::Written>,
}

/// Screen that a timeline opens with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// Overview of the run's bottlenecks.
    Overview,
    /// Kernel table.
    #[default]
    Kernels,
}

impl First {
    /// All values with their names.
    pub const ALL: [(&'static str, Self); 2] = [("overview", Self::Overview), ("kernels", Self::Kernels)];
}

/// Color depth of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorMode {
    /// No colors, only bold, reverse and underline.
    None,
    /// The terminal's 16 colors.
    Sixteen,
    /// The 256-color palette.
    Indexed,
    /// 24-bit colors.
    True,
}

impl ColorMode {
    /// All values with their names.
    pub const ALL: [(&'static str, Self); 4] =
        [("none", Self::None), ("16", Self::Sixteen), ("256", Self::Indexed), ("truecolor", Self::True)];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(w, _)| *w == word).map(|(_, m)| *m)
    }

    /// Detects the mode from `NO_COLOR`, `COLORTERM` and `TERM`.
    pub fn detect_from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|v| !v.is_empty());
        let term = set("TERM").unwrap_or_default();
        if set("NO_COLOR").is_some() || term.is_empty() || term == "dumb" || term.ends_with("-m") || term.starts_with("vt1") {
            return Self::None;
        }
        match set("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Self::True,
            _ if term.contains("direct") => Self::True,
            _ if term.contains("256color") || term.contains("kitty") || term.contains("alacritty") || term.contains("ghostty") => {
                Self::Indexed
            }
            _ => Self::Sixteen,
        }
    }
}

/// Returns true if the locale is UTF-8: `LC_ALL`, `LC_CTYPE` or `LANG`, the first one that is set.
pub fn utf8_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Maximum size of a configuration or theme file.
const MOST_BYTES: u64 = 1 << 20;

const KEYS: [&str; 10] = ["theme", "first", "group", "sort", "color", "ascii", "nsys", "pins", "keys", "recipes"];

/// `$XDG_CONFIG_HOME/warpscope`; `None` if there is no home directory.
pub fn config_folder() -> Option<PathBuf> {
    etcetera::choose_base_strategy().ok().map(|b| b.config_dir().join("warpscope"))
}

impl Config {
    /// Reads the configuration file. A missing file counts as an empty configuration, unless the user named the file.
    pub fn load(named: Option<&Path>) -> Result<Self, String> {
        let Some(path) = named.map(Path::to_owned).or_else(|| config_folder().map(|f| f.join("config.toml"))) else {
            return Ok(Self::default());
        };
        match private_files::read_small_text(&path, MOST_BYTES) {
            Ok(text) => Self::parse(&text).map_err(|e| format!("{}: {e}", path.display())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => Ok(Self::default()),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    /// Parses the contents of the file. The error is one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
            let line =
                e.span().map_or_else(String::new, |at| format!("line {}: ", 1 + text[..at.start.min(text.len())].matches('\n').count()));
            format!("{line}{}", e.message().trim().replace('\n', " "))
        })?;
        let mut config = Self::default();
        for (key, value) in table {
            config.set_key(&key, value)?;
        }
        Ok(config)
    }

    fn set_key(&mut self, key: &str, value: toml::Value) -> Result<(), String> {
        match key {
            "theme" => self.theme = Some(parse_string(key, value)?),
            "nsys" => self.nsys = Some(parse_string(key, value)?.into()),
            "ascii" => self.ascii = Some(value.as_bool().ok_or_else(|| format!("`ascii` must be true or false, not {value}"))?),
            "group" => self.group = Some(one_of(key, &parse_string(key, value)?, GroupBy::ALL.map(|g| (g.cli_name(), g)))?),
            "sort" => {
                let orders = sort_orders(&kernels::columns(GroupBy::Kernel));
                self.sort = Some(one_of(key, &parse_string(key, value)?, orders.into_iter().map(|(s, _)| (s.word, s)))?);
            }
            "first" => self.first = Some(one_of(key, &parse_string(key, value)?, First::ALL)?),
            "color" => self.color = Some(one_of(key, &parse_string(key, value)?, ColorMode::ALL)?),
            "pins" => {
                let toml::Value::Array(pins) = value else {
                    return Err(format!("`pins` must be a list of metrics, not {value}"));
                };
                self.pins = pins.into_iter().map(|p| parse_string(key, p)).collect::<Result<_, _>>()?;
            }
            "keys" => {
                let toml::Value::Table(keys) = value else {
                    return Err("`keys` must be a table: [keys]".to_owned());
                };
                for (action, value) in keys {
                    let list = match value {
                        toml::Value::Array(list) => list.into_iter().map(|v| parse_string(&action, v)).collect::<Result<_, _>>()?,
                        one => vec![parse_string(&action, one)?],
                    };
                    self.keys.insert(action, list);
                }
            }
            "recipes" => self.recipes = recipes::parse(value)?,
            unknown => return Err(unknown_word("key", unknown, &KEYS)),
        }
        Ok(())
    }
}

fn parse_string(key: &str, value: toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text),
        other => Err(format!("`{key}` must be a quoted string, not {other}")),
    }
}

fn one_of<T>(key: &str, word: &str, all: impl IntoIterator<Item = (&'static str, T)>) -> Result<T, String> {
    let mut known = Vec::new();
    for (name, value) in all {
        if name == word {
            return Ok(value);
        }
        known.push(name);
    }
    Err(unknown_word(key, word, &known))
}

/// Error message for an unknown word, which suggests the closest known word.
pub fn unknown_word(what: &str, word: &str, known: &[&str]) -> String {
    match nearest_match(word, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{word}`; did you mean `{near}`?"),
        None => format!("unknown {what} `{word}`; there are {}", known.join(", ")),
    }
}

/// Names and contents of the user's own themes: TOML files in the `themes` folder next to the configuration file.
pub fn load_themes(folder: Option<&Path>) -> Vec<(String, String)> {
    let entries = folder.and_then(|f| std::fs::read_dir(f.join("themes")).ok());
    let files = entries.into_iter().flatten().flatten().map(|e| e.path());
    let mut own: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    own.sort();
    own.iter()
        .filter_map(|p| Some((p.file_stem()?.to_string_lossy().into_owned(), private_files::read_small_text(p, MOST_BYTES).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_and_an_empty_one() {
        let text = "theme = \"light\"\ngroup = \"demangled\"\nsort = \"max\"\ncolor = \"256\"\nascii = true\nnsys = \"/x/nsys\"\n[keys]\nquit = [\"q\", \"ctrl-q\"]\nhelp = \"h\"\n";
        let c = Config::parse(text).unwrap();
        assert_eq!(
            (c.theme.as_deref(), c.group, c.sort.map(|s| s.word), c.color, c.ascii),
            (Some("light"), Some(GroupBy::Demangled), Some("max"), Some(ColorMode::Indexed), Some(true))
        );
        assert_eq!(c.keys["quit"], ["q", "ctrl-q"]);
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn unknown_words_are_refused_with_the_nearest_known_one() {
        assert_eq!(Config::parse("thme = 'x'").unwrap_err(), "unknown key `thme`; did you mean `theme`?");
        assert_eq!(Config::parse("sort = 'totl'").unwrap_err(), "unknown sort `totl`; did you mean `total`?");
        assert!(Config::parse("ascii = 'yes'").unwrap_err().contains("true or false"));
        assert!(Config::parse("= =").is_err());
    }

    #[test]
    fn colours_and_letters_follow_the_environment() {
        let env =
            |pairs: &'static [(&'static str, &'static str)]| move |name: &str| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_owned());
        assert_eq!(ColorMode::detect_from_env(env(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")])), ColorMode::True);
        assert_eq!(ColorMode::detect_from_env(env(&[("TERM", "screen-256color")])), ColorMode::Indexed);
        assert_eq!(ColorMode::detect_from_env(env(&[("TERM", "linux")])), ColorMode::Sixteen);
        assert_eq!(ColorMode::detect_from_env(env(&[("TERM", "xterm"), ("NO_COLOR", "1")])), ColorMode::None);
        assert_eq!(ColorMode::detect_from_env(env(&[])), ColorMode::None);
        assert!(utf8_locale(env(&[("LANG", "en_US.UTF-8")])));
        assert!(!utf8_locale(env(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")])));
    }
}
