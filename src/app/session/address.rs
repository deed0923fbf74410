//! Places of the explorer as the command line names them.

/// A screen that the command line can name.
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
    /// All, with the words for them.
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

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|s| s.1 == self).map_or("", |s| s.0)
    }
}

/// What is to be shown of the first report of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    pub show: Option<Show>,
    /// Name of a group, as the table of kernels has it.
    pub kernel: Option<String>,
    /// Number of a launch, from 0.
    pub launch: Option<u32>,
    /// Number of a result, from 0.
    pub result: Option<usize>,
    /// Name of a range.
    pub range: Option<String>,
    /// ns: the window of the timeline, or what all screens are narrowed to.
    pub window: Option<(i64, i64)>,
}

impl Address {
    /// As options of the command line.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let pairs = [
            ("--first", self.show.map(|s| s.word().to_owned())),
            ("--kernel", self.kernel.clone()),
            ("--launch", self.launch.map(|l| l.to_string())),
            ("--result", self.result.map(|r| r.to_string())),
            ("--range", self.range.clone()),
            ("--from", self.window.map(|w| format!("{}ns", w.0))),
            ("--to", self.window.map(|w| format!("{}ns", w.1))),
        ];
        let words = |(name, value): (&str, Option<String>)| match value {
            // It would be taken for an option.
            Some(value) if value.starts_with('-') => vec![format!("{name}={value}")],
            Some(value) => vec![name.to_owned(), value],
            None => Vec::new(),
        };
        pairs.into_iter().flat_map(words).collect()
    }

    /// Whether it says nothing but which screen a timeline opens with.
    #[must_use]
    pub fn plain(&self) -> bool {
        let Self { show, kernel, launch, result, range, window } = self;
        let first = matches!(show, None | Some(Show::Overview | Show::Kernels));
        first && kernel.is_none() && launch.is_none() && result.is_none() && range.is_none() && window.is_none()
    }
}
