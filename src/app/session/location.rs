//! Locations in the explorer, for the command line

use crate::app::actions::KeyScope;

/// Location in the first report of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Screen, if it has a name on the command line.
    pub show: Option<KeyScope>,
    /// Name of a group, as in the kernel table.
    pub kernel: Option<String>,
    /// Index of a launch.
    pub launch: Option<u32>,
    /// Index of a result.
    pub result: Option<usize>,
    /// Name of a range.
    pub range: Option<String>,
    /// Window of the timeline, or time filter of all screens, ns.
    pub window: Option<(i64, i64)>,
}

impl Location {
    /// Command-line options of the location.
    pub fn to_args(&self) -> Vec<String> {
        let pairs = [
            ("--first", self.show.and_then(KeyScope::link_name).map(str::to_owned)),
            ("--kernel", self.kernel.clone()),
            ("--launch", self.launch.map(|l| l.to_string())),
            ("--result", self.result.map(|r| r.to_string())),
            ("--range", self.range.clone()),
            ("--from", self.window.map(|w| format!("{}ns", w.0))),
            ("--to", self.window.map(|w| format!("{}ns", w.1))),
        ];
        let words = |(name, value): (&str, Option<String>)| match value {
            // Without `=`, a value with a leading dash would be parsed as an option.
            Some(value) if value.starts_with('-') => vec![format!("{name}={value}")],
            Some(value) => vec![name.to_owned(), value],
            None => Vec::new(),
        };
        pairs.into_iter().flat_map(words).collect()
    }

    /// Returns true if the location is only the initial screen of a timeline.
    pub fn is_plain(&self) -> bool {
        let Self { show, kernel, launch, result, range, window } = self;
        let first = matches!(show, None | Some(KeyScope::Overview | KeyScope::Kernels));
        first && kernel.is_none() && launch.is_none() && result.is_none() && range.is_none() && window.is_none()
    }
}
