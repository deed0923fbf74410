//! Names of the files that a command leaves.

use std::fmt;

/// A file that a command leaves: an exact name, or one with a `*` where the profiler puts a rank, a number or its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Path from the output's folder, up to the `*`; all of it where there is none.
    pub head: String,
    /// What follows the `*`; `None` for an exact name. The `*` stands for any text without a `/`, also for none.
    pub tail: Option<String>,
}

impl Pattern {
    #[must_use]
    pub fn exact(name: impl Into<String>) -> Self {
        Self { head: name.into(), tail: None }
    }

    /// A name with something in the middle.
    #[must_use]
    pub fn between(head: impl Into<String>, tail: impl Into<String>) -> Self {
        Self { head: head.into(), tail: Some(tail.into()) }
    }

    /// The folder that the file lies in, from the output's folder; empty for that folder itself.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.head.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Whether a path from the output's folder is one of these files.
    #[must_use]
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
        let p = Pattern::between("run.", ".nsys-rep");
        assert!(p.matches("run.0.nsys-rep") && p.matches("run.12.3.nsys-rep"));
        assert!(!p.matches("run.nsys-rep") && !p.matches("run.0.sqlite") && !p.matches("run.a/b.nsys-rep"));
        assert_eq!((p.to_string(), p.folder()), ("run.*.nsys-rep".to_owned(), ""));
        assert!(Pattern::exact("a*b").matches("a*b") && !Pattern::exact("a*b").matches("axb"));
        assert_eq!(Pattern::between("run.torch/", ".json.gz").folder(), "run.torch");
    }
}
