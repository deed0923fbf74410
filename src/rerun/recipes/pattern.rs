//! Names of the files that a command writes.

use std::fmt;

/// A file that a command writes: an exact name, or one with a `*` for a rank, a number or another part that the
/// profiler chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Path relative to the output folder, up to the `*`; the whole path if there is no `*`.
    pub head: String,
    /// Text after the `*`; `None` for an exact name. The `*` matches any string without `/`, including the empty one.
    pub tail: Option<String>,
}

impl Pattern {
    pub fn exact(name: impl Into<String>) -> Self {
        Self { head: name.into(), tail: None }
    }

    /// Creates a pattern whose middle part may vary.
    pub fn with_wildcard(head: impl Into<String>, tail: impl Into<String>) -> Self {
        Self { head: head.into(), tail: Some(tail.into()) }
    }

    /// Returns the folder of the file relative to the output folder; empty for the output folder itself.
    pub fn folder(&self) -> &str {
        self.head.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns true if a path relative to the output folder matches the pattern.
    pub fn matches(&self, path: &str) -> bool {
        match &self.tail {
            None => path == self.head,
            Some(tail) => {
                path.strip_prefix(self.head.as_str()).and_then(|rest| rest.strip_suffix(tail.as_str())).is_some_and(|m| !m.contains('/'))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tail {
            None => f.write_str(&self.head),
            Some(tail) => write!(f, "{}*{tail}", self.head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_in_one_folder() {
        let p = Pattern::with_wildcard("run.", ".nsys-rep");
        assert!(p.matches("run.0.nsys-rep") && p.matches("run.12.3.nsys-rep"));
        assert!(!p.matches("run.nsys-rep") && !p.matches("run.0.sqlite") && !p.matches("run.a/b.nsys-rep"));
        assert_eq!((p.to_string(), p.folder()), ("run.*.nsys-rep".to_owned(), ""));
        assert!(Pattern::exact("a*b").matches("a*b") && !Pattern::exact("a*b").matches("axb"));
        assert_eq!(Pattern::with_wildcard("run.torch/", ".json.gz").folder(), "run.torch");
    }
}
