//! Metric sets and sections that ncu can collect, and their cost.
//!
//! Passes, seconds and bytes were measured with ncu 2025.3.1 on an H200 without clock control, on one-microsecond
//! kernels that use little memory (`tests/hardware/costs.sh`). A long kernel, or one whose memory must be saved and
//! restored between passes, costs more. Pass counts differ on other GPUs.

/// Cost of one result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    pub passes: u32,
    /// Seconds for a kernel with a negligible duration.
    pub seconds: f64,
    /// Bytes added to the report.
    pub bytes: u64,
}

/// A predefined group of sections, for `--set`.
#[derive(Debug, PartialEq)]
pub struct Set {
    pub word: &'static str,
    pub about: &'static str,
    /// Cost of one result.
    pub figure: Figure,
}

/// A section, for `--section`.
#[derive(Debug, PartialEq)]
pub struct Section {
    pub id: &'static str,
    pub about: &'static str,
    /// Cost of one result.
    pub figure: Figure,
}

/// A performance question and the sections that answer it.
#[derive(Debug, PartialEq)]
pub struct SectionList {
    /// Command-line name.
    pub word: &'static str,
    pub asks: &'static str,
    /// Sections, by [`Section::id`].
    pub sections: &'static [&'static str],
    /// Also imports the CUDA sources.
    pub source: bool,
    /// Cost of one result, which is less than the sum over the sections because they share passes.
    pub figure: Figure,
}

const fn figure(passes: u32, seconds: f64, bytes: u64) -> Figure {
    Figure { passes, seconds, bytes }
}

const fn set(word: &'static str, figure: Figure, about: &'static str) -> Set {
    Set { word, about, figure }
}

const fn section(id: &'static str, figure: Figure, about: &'static str) -> Section {
    Section { id, about, figure }
}

/// All sets except `source`, which is a [`SectionList`].
pub static SETS: &[Set] = &[
    set("basic", figure(10, 0.31, 53_000), "speed of light, launch, occupancy"),
    set("detailed", figure(20, 0.63, 110_000), "basic, memory, compute, source"),
    set("full", figure(38, 1.65, 930_000), "detailed, stalls, instructions"),
    set("roofline", figure(17, 0.39, 620_000), "all rooflines: half, single, double, tensor"),
    set("pmsampling", figure(9, 1.1, 240_000), "how the kernel behaves over its run time"),
    set("nvlink", figure(1, 0.05, 15_000), "NVLink traffic and topology"),
];

/// Sections worth selecting by name.
pub static SECTIONS: &[Section] = &[
    section("SpeedOfLight", figure(10, 0.31, 33_000), "compute and memory throughput, as percent of peak"),
    section("LaunchStats", figure(1, 0.01, 16_000), "grid, block, registers, shared memory, waves"),
    section("Occupancy", figure(1, 0.06, 29_000), "occupancy and what limits it"),
    section("WorkloadDistribution", figure(1, 0.07, 16_000), "how evenly SMs and memory slices are used"),
    section("MemoryWorkloadAnalysis", figure(9, 0.27, 18_000), "throughput and hit rates of L1, L2 and device memory"),
    section("MemoryWorkloadAnalysis_Chart", figure(14, 0.39, 33_000), "traffic between the memory units"),
    section("MemoryWorkloadAnalysis_Tables", figure(30, 0.94, 45_000), "sectors per request, bank conflicts, by unit"),
    section("ComputeWorkloadAnalysis", figure(11, 0.15, 28_000), "how busy each compute pipe is"),
    section("InstructionStats", figure(3, 0.05, 16_000), "instruction mix"),
    section("SchedulerStats", figure(1, 0.03, 17_000), "eligible and issued warps per cycle"),
    section("WarpStateStats", figure(9, 0.12, 19_000), "what warps wait for"),
    section("SourceCounters", figure(5, 0.21, 31_000), "stalls and traffic by source line and instruction"),
    section("SpeedOfLight_RooflineChart", figure(3, 0.10, 19_000), "single and double precision roofline"),
    section("PmSampling", figure(4, 0.38, 190_000), "utilization over the kernel's run time"),
];

/// Questions that a profile can answer.
pub static QUESTIONS: &[SectionList] = &[
    SectionList {
        word: "bound",
        asks: "is it bound by compute, memory or latency?",
        sections: &["SpeedOfLight", "LaunchStats", "Occupancy"],
        source: false,
        figure: figure(10, 0.30, 52_000),
    },
    SectionList {
        word: "memory",
        asks: "why is memory slow?",
        sections: &["SpeedOfLight", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables"],
        source: false,
        figure: figure(35, 1.13, 86_000),
    },
    SectionList {
        word: "stalls",
        asks: "what are its warps waiting for?",
        sections: &["SpeedOfLight", "SchedulerStats", "WarpStateStats"],
        source: false,
        figure: figure(17, 0.32, 41_000),
    },
    SectionList {
        word: "compute",
        asks: "which pipe is busy?",
        sections: &["SpeedOfLight", "ComputeWorkloadAnalysis", "InstructionStats"],
        source: false,
        figure: figure(13, 0.33, 50_000),
    },
    SectionList {
        word: "occupancy",
        asks: "what limits occupancy?",
        sections: &["LaunchStats", "Occupancy"],
        source: false,
        figure: figure(1, 0.06, 32_000),
    },
    SectionList {
        word: "source",
        asks: "which source line is it?",
        sections: &["SchedulerStats", "WarpStateStats", "SourceCounters"],
        source: true,
        figure: figure(13, 0.28, 40_000),
    },
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collect {
    /// A set, by its name.
    Set(String),
    /// Sections, by identifier or `regex:EXPR`.
    Sections(Vec<String>),
    /// Sections that answer a question, by its name.
    Question(&'static str),
}

impl Default for Collect {
    /// The smallest set that identifies the cause. On kernels with a known cause (`fixtures/hints`), the first hint was
    /// correct in 19 of 19 and 32 of 33 cases with `detailed`, and in 16 of 33 with `basic`; `detailed` takes twice as
    /// many passes.
    fn default() -> Self {
        Self::Set("detailed".to_owned())
    }
}

/// Cost of a re-run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Replay passes per result; `None` if a section is not in the tables.
    pub passes: Option<u32>,
    /// `passes` is an upper bound, because sections share passes.
    pub at_most: bool,
    /// Seconds in addition to the program's own run time, if this can be estimated.
    pub seconds: Option<f64>,
    /// Size of the report, bytes.
    pub bytes: Option<u64>,
    /// Number of program runs.
    pub runs: u32,
}

impl Collect {
    /// Returns the options for ncu.
    pub fn to_args(&self) -> Vec<String> {
        let sections = |ids: &mut dyn Iterator<Item = String>| ids.flat_map(|s| ["--section".to_owned(), s]).collect();
        match self {
            Self::Set(word) => vec!["--set".to_owned(), word.clone()],
            Self::Sections(ids) => sections(&mut ids.iter().cloned()),
            Self::Question(word) => sections(&mut find_question(word).into_iter().flat_map(|q| q.sections).map(|s| (*s).to_owned())),
        }
    }

    /// Returns a short human-readable label.
    pub fn label(&self) -> String {
        match self {
            Self::Set(word) => format!("set {word}"),
            Self::Sections(ids) if ids.len() == 1 => format!("section {}", ids[0]),
            Self::Sections(ids) => format!("{} sections", ids.len()),
            Self::Question(word) => find_question(word).map_or_else(|| (*word).to_owned(), |q| q.asks.to_owned()),
        }
    }

    /// Returns a description of the collected metrics that can end a sentence.
    pub fn describe(&self) -> String {
        match self {
            Self::Set(word) => {
                SETS.iter().find(|s| s.word == word).map_or_else(|| self.label(), |s| format!("{} ({})", s.about, self.label()))
            }
            Self::Question(word) => find_question(word).map_or_else(|| self.label(), |q| format!("what answers \"{}\"", q.asks)),
            Self::Sections(ids) => {
                let about = |id: &String| SECTIONS.iter().find(|s| s.id == id).map_or_else(|| id.clone(), |s| s.about.to_owned());
                ids.iter().map(about).collect::<Vec<_>>().join("; ")
            }
        }
    }

    /// Returns true if the CUDA sources are also collected.
    pub fn wants_source(&self) -> bool {
        matches!(self, Self::Question(word) if find_question(word).is_some_and(|q| q.source))
    }

    /// Returns the cost of one result and whether it is an upper bound (sections share passes); `None` if it is not
    /// in the tables.
    pub fn cost_per_result(&self) -> Option<(Figure, bool)> {
        match self {
            Self::Set(word) => SETS.iter().find(|s| s.word == word).map(|s| (s.figure, false)),
            Self::Question(word) => find_question(word).map(|q| (q.figure, false)),
            Self::Sections(ids) => {
                let of = |id: &String| SECTIONS.iter().find(|s| s.id == id).map(|s| s.figure);
                let add =
                    |a: Figure, b: Figure| Figure { passes: a.passes + b.passes, seconds: a.seconds + b.seconds, bytes: a.bytes + b.bytes };
                let sum = ids.iter().map(of).try_fold(Figure::default(), |sum, f| Some(add(sum, f?)))?;
                (!ids.is_empty()).then_some((sum, ids.len() > 1))
            }
        }
    }
}

/// Looks up a question by its name.
pub fn find_question(word: &str) -> Option<&'static SectionList> {
    QUESTIONS.iter().find(|q| q.word == word)
}

/// Startup time of ncu, seconds.
pub const START_SECONDS: f64 = 1.0;
/// Cost of a launch whose name does not match, seconds.
pub const OTHER_SECONDS: f64 = 60e-6;
/// Cost of a skipped launch whose name matches, seconds.
pub const SKIPPED_SECONDS: f64 = 130e-6;

/// Size of a report without results (strings and session), bytes.
pub const BASE_BYTES: u64 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_made_of_known_sections_and_costs_at_most_their_sum() {
        for q in QUESTIONS {
            let ids: Vec<String> = q.sections.iter().map(|s| (*s).to_owned()).collect();
            let (sum, at_most) = Collect::Sections(ids).cost_per_result().unwrap();
            assert!(at_most && q.figure.passes > 0 && q.figure.passes <= sum.passes, "{}", q.word);
            assert!(q.figure.seconds <= sum.seconds && q.figure.bytes <= sum.bytes, "{}", q.word);
            assert_eq!(Collect::Question(q.word).to_args().len(), q.sections.len() * 2);
        }
        assert_eq!(Collect::Sections(vec!["regex:.*".into()]).cost_per_result(), None, "what is not known has no figure");
        assert_eq!(Collect::default().to_args(), ["--set", "detailed"]);
    }
}
