//! Launch filter of a job: patterns for the kernel name, and launch numbers for each kernel symbol.

use super::read::{Job, Value};
use super::regex::Engines;

/// Maximum number of launches in a range; rocprofv3 stores every number in the range in memory.
const MOST: u64 = 10_000_000;

/// Name form that the patterns are matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// Demangled, with template arguments and parameters.
    Demangled,
    /// `truncate_kernels`: the base name.
    Truncated,
    /// `mangled_kernels`: the symbol, with `.kd`.
    Mangled,
}

/// Launch numbers, 1-based.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    All,
    /// Without a range, a thread trace records only the first launch of each kernel.
    First,
    /// Inclusive ranges, sorted and disjoint.
    These(Vec<(u64, u64)>),
}

impl Numbers {
    pub fn contains_number(&self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::First => number == 1,
            Self::These(ranges) => ranges.iter().any(|&(low, high)| (low..=high).contains(&number)),
        }
    }

    /// Formats the numbers for display: `1, 3–4`.
    pub fn describe(&self) -> String {
        let piece = |&(low, high): &(u64, u64)| if low == high { low.to_string() } else { format!("{low}–{high}") };
        match self {
            Self::All => "every launch".to_owned(),
            Self::First => "the first launch".to_owned(),
            Self::These(ranges) if ranges.is_empty() => "no launch".to_owned(),
            Self::These(ranges) => {
                let one = matches!(&ranges[..], [(low, high)] if low == high);
                format!("launch{} {}", if one { "" } else { "es" }, ranges.iter().map(piece).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Result of parsing a list of ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub ranges: Vec<(u64, u64)>,
    /// Items that are neither a number nor a range. If there are any, the tool library terminates the program at
    /// startup.
    pub wrong: Vec<String>,
    /// Contains 0.
    pub zero: bool,
    pub nested: bool,
    /// Contains ranges that are too long to be stored as a set of numbers.
    pub long: bool,
}

/// Parses ranges as rocprofv3's tool library does: it splits at brackets, commas and blanks, so nesting has no effect.
pub fn parse_ranges(texts: &[&str]) -> Written {
    let mut out = Written::default();
    let mut depth = 0;
    for text in texts {
        for c in text.chars() {
            depth += i32::from(c == '[') - i32::from(c == ']');
            out.nested |= depth > 1;
        }
        for piece in text.split(['[', ']', ',', ' ', '\t', '\n']).filter(|p| !p.is_empty()) {
            let number = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u64>().ok()).flatten();
            let (low, high) = piece.split_once('-').map_or((number(piece), number(piece)), |(low, high)| (number(low), number(high)));
            match (low, high) {
                (Some(low), Some(high)) => {
                    out.zero |= low == 0;
                    out.long |= high.saturating_sub(low) > MOST;
                    out.ranges.extend((high >= low.max(1)).then_some((low.max(1), high)));
                }
                _ => out.wrong.push(piece.to_owned()),
            }
        }
    }
    out.ranges.sort_unstable();
    let mut apart: Vec<(u64, u64)> = Vec::new();
    for (low, high) in std::mem::take(&mut out.ranges) {
        match apart.last_mut().filter(|last| low <= last.1.saturating_add(1)) {
            Some(last) => last.1 = last.1.max(high),
            None => apart.push((low, high)),
        }
    }
    out.ranges = apart;
    out
}

/// Launch filter of a job.
pub struct Filter {
    pub include: Option<String>,
    pub exclude: Option<String>,
    pub spelled: Spelled,
    pub numbers: Numbers,
    /// Only launches in regions that the program opens.
    pub regions: bool,
    including: Option<Engines>,
    excluding: Option<Engines>,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Returns the value of an option if rocprofv3 considers the option set.
pub(super) fn find_value<'a>(job: &'a Job, name: &str) -> Option<&'a Value> {
    job.keys.iter().find(|k| k.name == name).map(|k| &k.value).filter(|v| v.is_true())
}

fn find_text(job: &Job, name: &str) -> Option<String> {
    find_value(job, name).map(Value::to_text)
}

impl Filter {
    /// Returns the filter of a job that collects counters or a thread trace.
    pub fn from_job(job: &Job) -> Option<Self> {
        let has = |name: &str| find_value(job, name).is_some();
        let att = has("advanced_thread_trace");
        if !att && !has("pmc") && !has("pmc_groups") && !has("spm") {
            return None;
        }
        let spelled = match (has("mangled_kernels"), has("truncate_kernels")) {
            (true, _) => Spelled::Mangled,
            (false, true) => Spelled::Truncated,
            (false, false) => Spelled::Demangled,
        };
        let numbers = match find_value(job, "kernel_iteration_range") {
            None if att => Numbers::First,
            None => Numbers::All,
            Some(value) => {
                let list: Vec<String> = match value {
                    Value::List(list) => list.iter().map(Value::to_text).collect(),
                    one => vec![one.to_text()],
                };
                Numbers::These(parse_ranges(&list.iter().map(String::as_str).collect::<Vec<_>>()).ranges)
            }
        };
        let (include, exclude) = (find_text(job, "kernel_include_regex"), find_text(job, "kernel_exclude_regex"));
        let including = include.as_deref().map(Engines::new);
        let excluding = exclude.as_deref().map(Engines::new);
        Some(Self { include, exclude, spelled, numbers, regions: has("selected_regions"), including, excluding })
    }

    /// Returns true if the name is selected, first for `ROCm` 7.0 and older, then for 7.1 and newer; `None` if a
    /// pattern is invalid or takes too long.
    pub fn matches_name(&self, name: &str) -> [Option<bool>; 2] {
        let search = |engines: &Option<Engines>, without| engines.as_ref().map_or([Some(without); 2], |e| e.find_matches(name));
        let (include, exclude) = (search(&self.including, true), search(&self.excluding, false));
        [0, 1].map(|i| Some(include[i]? && !exclude[i]?))
    }

    /// Returns the errors in the patterns, first for `ROCm` 7.0 and older, then for 7.1 and newer.
    pub fn pattern_errors(&self) -> [Option<&str>; 2] {
        let both = [&self.including, &self.excluding].map(|e| e.as_ref().map_or([None; 2], Engines::errors));
        [0, 1].map(|i| both[0][i].or(both[1][i]))
    }

    /// Describes the selected kernels and launches.
    pub fn describe(&self) -> String {
        let name = match self.spelled {
            Spelled::Demangled => "demangled name",
            Spelled::Truncated => "base name (without template arguments and parameters)",
            Spelled::Mangled => "mangled name (with `.kd`)",
        };
        let of = match (&self.include, &self.exclude) {
            (None, None) => "each kernel".to_owned(),
            (Some(include), None) => format!("each kernel in whose {name} `{include}` is found"),
            (None, Some(exclude)) => format!("each kernel in whose {name} `{exclude}` is not found"),
            (Some(include), Some(exclude)) => format!("each kernel in whose {name} `{include}` is found and `{exclude}` is not"),
        };
        format!("{} of {of}", self.numbers.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_the_tool_library_cuts_them() {
        let of = |t: &[&str]| parse_ranges(t);
        assert_eq!(of(&["[1, [3-4]]"]), Written { ranges: vec![(1, 1), (3, 4)], nested: true, ..Written::default() });
        assert_eq!(of(&["[1-2]", "[3-4]", "[9]"]).ranges, [(1, 4), (9, 9)]);
        assert_eq!(of(&["[0]"]), Written { zero: true, ..Written::default() });
        assert_eq!(of(&["0-2"]).ranges, [(1, 2)]);
        assert_eq!(of(&["3-", "1:4", "a"]).wrong, ["3-", "1:4", "a"]);
        assert_eq!(of(&["5-3"]).ranges, []);
        assert!(of(&["1-100000000"]).long);
        assert_eq!(Numbers::These(of(&["1,3-4"]).ranges).describe(), "launches 1, 3–4");
    }
}
