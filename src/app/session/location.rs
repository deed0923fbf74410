//! Locations in the explorer, for the command line

/// Screen that can be named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Overview,
    Kernels,
    Launches,
    Timeline,
    Ranges,
    Memory,
    Ranks,
    Rerun,
    Metrics,
    Hints,
    Roofline,
    Source,
}

impl Show {
    /// All screens with their names.
    pub const ALL: [(&'static str, Self); 12] = [
        ("overview", Self::Overview),
        ("kernels", Self::Kernels),
        ("launches", Self::Launches),
        ("timeline", Self::Timeline),
        ("ranges", Self::Ranges),
        ("memory", Self::Memory),
        ("ranks", Self::Ranks),
        ("rerun", Self::Rerun),
        ("metrics", Self::Metrics),
        ("hints", Self::Hints),
        ("roofline", Self::Roofline),
        ("source", Self::Source),
    ];

    /// Name of the screen.
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|s| s.1 == self).map_or("", |s| s.0)
    }
}

/// Location in the first report of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    pub show: Option<Show>,
    /// Name of a group, as in the table of kernels.
    pub kernel: Option<String>,
    /// Number of a launch, from 0.
    pub launch: Option<u32>,
    /// Number of a result, from 0.
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
            ("--first", self.show.map(|s| s.as_str().to_owned())),
            ("--kernel", self.kernel.clone()),
            ("--launch", self.launch.map(|l| l.to_string())),
            ("--result", self.result.map(|r| r.to_string())),
            ("--range", self.range.clone()),
            ("--from", self.window.map(|w| format!("{}ns", w.0))),
            ("--to", self.window.map(|w| format!("{}ns", w.1))),
        ];
        let words = |(name, value): (&str, Option<String>)| match value {
            // Otherwise, a value with a leading dash would be parsed as an option.
            Some(value) if value.starts_with('-') => vec![format!("{name}={value}")],
            Some(value) => vec![name.to_owned(), value],
            None => Vec::new(),
        };
        pairs.into_iter().flat_map(words).collect()
    }

    /// Returns true if the location is only the initial screen of a timeline.
    pub fn is_plain(&self) -> bool {
        let Self { show, kernel, launch, result, range, window } = self;
        let first = matches!(show, None | Some(Show::Overview | Show::Kernels));
        first && kernel.is_none() && launch.is_none() && result.is_none() && range.is_none() && window.is_none()
    }
}
