//! What the tracer measures while a program runs: a file that it reads, with the metrics that fit into one pass on each chip.

use super::{Unable, start};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Groups of metrics by chip, and the metrics of each question; made by `tests/compare/groups.py`.
const GROUPS: &str = include_str!("groups.txt");
const QUESTIONS: &str = include_str!("questions.txt");

/// What can be asked of a launch, by its word.
pub fn questions() -> impl Iterator<Item = &'static str> {
    QUESTIONS.lines().filter_map(|l| l.split_once(' ')).map(|(word, _)| word)
}

/// [`GROUPS`] with the metrics of some questions only, as far as each chip has them; how they are spread over passes CUPTI decides.
fn groups_of(questions: &[String]) -> String {
    if questions.is_empty() {
        return GROUPS.to_owned();
    }
    let mut out = String::new();
    for chip in GROUPS.split("chip ").skip(1) {
        let (name, groups) = chip.split_once('\n').unwrap_or((chip, ""));
        let _ = writeln!(out, "chip {name}");
        if groups.starts_with("as ") {
            out.push_str(groups);
            continue;
        }
        let known: HashSet<&str> = groups.split_whitespace().collect();
        // In the order of the user: what is asked first is measured first.
        for word in questions {
            let of = QUESTIONS.lines().filter_map(|l| l.split_once(' ')).find(|(w, _)| w == word);
            let metrics: Vec<&str> = of.into_iter().flat_map(|(_, m)| m.split(' ')).filter(|m| known.contains(m)).collect();
            let _ = writeln!(out, "group {word} {}", metrics.join(" "));
        }
    }
    out
}

/// Launches whose counters are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The kernel's mangled name, its function's, or `regex:` with a POSIX extended regular expression that is looked for in the function's.
    pub kernel: String,
    /// One launch of it in a process, from 0, replayed for each pass; without it the next ones, one pass each.
    pub nth: Option<u64>,
    /// Its stall reasons are sampled, and it is not replayed for counters.
    pub stalls: bool,
}

/// What is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Share of the run's time that measuring the kernels that take the most time may add, in thousandths; 0 where they are not.
    pub survey: u32,
    pub chosen: Vec<Chosen>,
    pub only: Only,
    /// Words of [`questions`]; all metrics where there are none.
    pub questions: Vec<String>,
}

/// The launches that are chosen from, and counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Their grid, in blocks.
    pub grid: Option<[u32; 3]>,
    /// Their block, in threads.
    pub block: Option<[u32; 3]>,
    /// The NVTX range that they are made in.
    pub range: Option<NvtxRange>,
}

/// NVTX ranges: pushed on the launching thread, or started on any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvtxRange {
    /// Without a colon.
    pub domain: Option<String>,
    pub text: String,
    /// Which of them, from 1.
    pub nth: Option<u32>,
}

impl Measure {
    fn text(&self) -> String {
        // A line each.
        let mut only = String::new();
        for (word, size) in [("grid", self.only.grid), ("block", self.only.block)] {
            if let Some([x, y, z]) = size {
                let _ = writeln!(only, "{word} {x} {y} {z}");
            }
        }
        if let Some(range) = self.only.range.as_ref().filter(|r| !r.text.contains('\n')) {
            let _ = writeln!(only, "range {} {}:{}", range.nth.unwrap_or(0), range.domain.as_deref().unwrap_or_default(), range.text);
        }
        let chosen = self.chosen.iter().filter(|c| !c.kernel.contains('\n')).map(|c| match c.nth {
            _ if c.stalls => format!("stalls {} {}\n", c.nth.unwrap_or(0), c.kernel),
            Some(n) => format!("launch {n} {}\n", c.kernel),
            None => format!("next {}\n", c.kernel),
        });
        format!("survey {}\nshare 90\n{only}{}{}", self.survey, chosen.collect::<String>(), groups_of(&self.questions))
    }

    /// A file with the plan, which programs of this user can read. The same plan has the same name.
    pub fn plan(&self, cache: &Path) -> Result<PathBuf, Unable> {
        let text = self.text();
        start::put(cache, &format!("measure-{:08x}.txt", crc32fast::hash(text.as_bytes())), text.as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_has_its_groups_or_those_of_another() {
        let chips: Vec<&str> = GROUPS.lines().filter_map(|l| l.strip_prefix("chip ")).collect();
        assert!(chips.contains(&"GH100") && chips.contains(&"*"), "{chips:?}");
        for of in GROUPS.lines().filter_map(|l| l.strip_prefix("as ")) {
            assert!(chips.contains(&of), "{of}");
        }
        for (chip, next) in GROUPS.lines().zip(GROUPS.lines().skip(1)).filter(|(l, _)| l.starts_with("chip ")) {
            assert!(next.starts_with("group cause gpu__time_duration.sum ") || next.starts_with("as "), "{chip}: {next}");
        }
    }

    #[test]
    fn plans_in_the_objects_words() {
        let chosen = vec![
            Chosen { kernel: "gemm".into(), nth: None, stalls: false },
            Chosen { kernel: "_Z3fooPf".into(), nth: Some(3), stalls: false },
            Chosen { kernel: "sort".into(), nth: Some(1), stalls: true },
        ];
        let text = Measure { survey: 30, chosen: chosen.clone(), ..Measure::default() }.text();
        assert!(
            text.starts_with("survey 30\nshare 90\nnext gemm\nlaunch 3 _Z3fooPf\nstalls 1 sort\nchip GH100\ngroup "),
            "{}",
            &text[..90]
        );
    }

    #[test]
    fn launches_are_chosen_by_size_and_range_and_metrics_by_question() {
        let range = NvtxRange { domain: Some("app".into()), text: "step: two".into(), nth: Some(2) };
        let only = Only { grid: Some([8, 2, 1]), block: None, range: Some(range) };
        let chosen = vec![Chosen { kernel: "regex:^gemm".into(), nth: None, stalls: false }];
        let text = Measure { survey: 0, chosen, only, questions: vec!["roofline".into(), "stalls".into()] }.text();
        let head =
            "survey 0\nshare 90\ngrid 8 2 1\nrange 2 app:step: two\nnext regex:^gemm\nchip GH100\ngroup roofline gpu__time_duration.sum ";
        assert!(text.starts_with(head), "{}", &text[..150]);
        let chips = |text: &str| text.lines().filter(|l| l.starts_with("chip ")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(chips(&text), chips(GROUPS));
        assert_eq!(text.lines().filter(|l| l.starts_with("group stalls gpu__time")).count(), text.matches("\ngroup roofline ").count());
        // What a chip does not have is not asked of it.
        let turing = text.split("chip TU102\n").nth(1).unwrap().lines().next().unwrap();
        assert!(turing.contains("dram__bytes_read.sum") && !turing.contains("pipe_tc_cycles"), "{turing}");
        assert!(questions().eq(["roofline", "cause", "memory", "accesses", "stalls", "pipes", "operations"]));
    }
}
