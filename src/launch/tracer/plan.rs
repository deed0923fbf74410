//! What the tracer measures while a program runs: a file that it reads, with the metrics that fit into one pass on each chip.

use super::super::private;
use super::Unable;
use std::path::{Path, PathBuf};

/// Groups of metrics by chip, made by `tests/compare/groups.py`.
const GROUPS: &str = include_str!("groups.txt");

/// Launches whose counters are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The kernel's mangled name, or its function's.
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
}

impl Measure {
    fn text(&self) -> String {
        // A line each.
        let chosen = self.chosen.iter().filter(|c| !c.kernel.contains('\n')).map(|c| match c.nth {
            _ if c.stalls => format!("stalls {} {}\n", c.nth.unwrap_or(0), c.kernel),
            Some(n) => format!("launch {n} {}\n", c.kernel),
            None => format!("next {}\n", c.kernel),
        });
        format!("survey {}\nshare 90\n{}{GROUPS}", self.survey, chosen.collect::<String>())
    }

    /// A file with the plan, which programs of this user can read. The same plan has the same name.
    pub fn plan(&self, cache: &Path) -> Result<PathBuf, Unable> {
        let text = self.text();
        private::keep(cache, &format!("measure-{:08x}.txt", crc32fast::hash(text.as_bytes())), text.as_bytes(), 0o600)
            .map_err(|source| Unable::Written { folder: cache.to_owned(), source })
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
        let text = Measure { survey: 30, chosen }.text();
        assert!(
            text.starts_with("survey 30\nshare 90\nnext gemm\nlaunch 3 _Z3fooPf\nstalls 1 sort\nchip GH100\ngroup "),
            "{}",
            &text[..90]
        );
    }
}
