//! Determines the rank and the job of each report, including reports that do not record a rank.

use crate::model::digest::Digest;
use crate::model::units::format_count;
use std::collections::BTreeMap;

/// Source of the rank numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Recorded in the reports.
    Reports,
    /// File names.
    Names,
    /// Numbers of the GPUs that the ranks used.
    Devices,
    /// Order of the reports on the command line, as a last resort.
    Order,
}

impl Told {
    pub fn source_remark(self) -> Option<&'static str> {
        match self {
            Self::Reports => None,
            Self::Names => Some("the ranks are numbered by the names of the files"),
            Self::Devices => Some("the ranks are numbered by their GPUs: the report does not say which rank a process was"),
            Self::Order => Some("the ranks are numbered in the order in which the files were given: nothing says which is which"),
        }
    }
}

/// Maximum plausible number of ranks in a job.
const MOST_RANKS: u32 = 1 << 20;

/// Rank number in a file name, after the word `rank`: `job_rank12.nsys-rep`.
pub fn in_name(file: &str) -> Option<u32> {
    let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    // Use the first occurrence of the word that a number follows: in `slow_rank_rank0`, that is the second one.
    let number = |(at, word): (usize, &str)| {
        let after = name[at + word.len()..].trim_start_matches(['_', '-', '=', ' ']);
        after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    name.match_indices("rank").find_map(number)
}

/// Path of a file without the rank number, which is the same for all ranks of a job.
fn name_of_job(file: &str) -> String {
    let at = file.to_ascii_lowercase().rfind("rank").filter(|at| file.is_char_boundary(at + 4));
    let Some((before, after)) = at.map(|at| file.split_at(at + 4)) else { return String::new() };
    let digits = after.trim_start_matches(['_', '-', '=', ' ']);
    format!("{before}{}", digits.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Returns the number of jobs, and the job of each digest. There are several jobs if ranks occur more than once and the
/// file names, or else the times of the runs, separate the jobs.
pub fn split_jobs(all: &[Digest]) -> (usize, Vec<u32>) {
    let one = || (1, vec![0; all.len()]);
    let Some(ranks) = all.iter().map(|d| d.rank.or_else(|| in_name(&d.file))).collect::<Option<Vec<u32>>>() else { return one() };
    if are_distinct(&ranks) {
        return one();
    }
    let names: Vec<String> = all.iter().map(|d| name_of_job(&d.file)).collect();
    let mut order: Vec<&String> = names.iter().collect();
    order.sort();
    order.dedup();
    let by_name: Vec<u32> = names.iter().map(|n| (0..).zip(&order).find(|o| *o.1 == n).map_or(0, |o| o.0)).collect();
    [Some(by_name), jobs_by_time(all)].into_iter().flatten().find_map(|jobs| whole_jobs(&ranks, jobs)).unwrap_or_else(one)
}

/// Assigns reports to runs that do not overlap in time; `None` if the wall-clock time of a report is unknown.
fn jobs_by_time(all: &[Digest]) -> Option<Vec<u32>> {
    let times: Option<Vec<(i64, i64)>> =
        all.iter().map(|d| d.epoch.map(|e| (e.saturating_add(d.start), e.saturating_add(d.end)))).collect();
    let times = times?;
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_unstable_by_key(|&i| times[i]);
    let (mut out, mut job, mut until) = (vec![0; all.len()], 0, i64::MAX);
    for at in order {
        if times[at].0 > until {
            job += 1;
            until = times[at].1;
        }
        until = if until == i64::MAX { times[at].1 } else { until.max(times[at].1) };
        out[at] = job;
    }
    Some(out)
}

/// Accepts a division into jobs if there are several, none of which has a rank twice.
fn whole_jobs(ranks: &[u32], jobs: Vec<u32>) -> Option<(usize, Vec<u32>)> {
    let count = jobs.iter().max().map_or(0, |m| *m as usize + 1);
    let mut pairs: Vec<(u32, u32)> = jobs.iter().copied().zip(ranks.iter().copied()).collect();
    pairs.sort_unstable();
    (count > 1 && pairs.windows(2).all(|w| w[0] != w[1])).then_some((count, jobs))
}

/// Numbers in a file name, last first, except that a number after `rank` comes before all others: 12 for
/// `job_rank12.nsys-rep`.
fn parse_numbers(file: &str) -> Vec<u32> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    // In names such as `report.3.nsys-rep`, the number follows the dot.
    let text = if stem.chars().any(|c| c.is_ascii_digit()) { stem } else { name };
    let lower = text.to_ascii_lowercase();
    let digits = |from: &str| from.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    let after =
        lower.match_indices("rank").filter_map(|(at, word)| digits(lower[at + word.len()..].trim_start_matches(['_', '-', '=', ' '])));
    let mut all: Vec<u32> = text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    all.reverse();
    after.chain(all).collect()
}

fn are_distinct(list: &[u32]) -> bool {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|w| w[0] != w[1])
}

/// Removes digests of reports that were given twice or copied, and returns a remark for each.
pub fn without_doubles(all: &mut Vec<Digest>, reports: &mut Vec<usize>) -> Vec<String> {
    let what = |d: &Digest| (d.epoch, d.pid, d.device, d.start, d.end, d.launches, d.kernel_time);
    let mut remarks = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let earlier = all[..at].iter().find(|d| d.launches > 0 && what(d) == what(&all[at]) && d.tool == all[at].tool);
        match earlier.map(|d| d.file.clone()) {
            Some(file) => {
                remarks.push(if file == all[at].file {
                    format!("{file} is there twice; it counts once")
                } else {
                    format!("{} is the same as {file}; it counts once", all[at].file)
                });
                all.remove(at);
                reports.remove(at);
            }
            None => at += 1,
        }
    }
    remarks
}

/// Returns the rank numbers in the order of the digests, the source of the numbers, and remarks on problems with them.
pub fn identify_ranks(all: &[Digest]) -> (Vec<u32>, Told, Vec<String>) {
    let mut remarks = Vec::new();
    if let Some(told) = all.iter().map(|d| d.rank).collect::<Option<Vec<u32>>>() {
        let mut files: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for (rank, digest) in told.iter().zip(all) {
            files.entry(*rank).or_default().push(&digest.file);
        }
        for (rank, files) in files.iter().filter(|f| f.1.len() > 1) {
            remarks.push(format!("rank {rank} is there {} times: {}", files.len(), files.join(", ")));
        }
        let world = all.iter().filter_map(|d| d.world).max().or_else(|| files.keys().next_back().map(|last| last.saturating_add(1)));
        // A damaged report may claim more ranks than any job has.
        let world = world.unwrap_or(0).min(MOST_RANKS);
        let missing: Vec<u32> = (0..world).filter(|r| !files.contains_key(r)).collect();
        if !missing.is_empty() {
            remarks.push(format!(
                "of {} {} not there: {}; waiting for them is not seen",
                format_count(world, "rank"),
                if missing.len() == 1 { "one is".to_owned() } else { format!("{} are", missing.len()) },
                format_ranges(&missing)
            ));
        }
        return (told, Told::Reports, remarks);
    }
    let names: Option<Vec<Vec<u32>>> = all.iter().map(|d| Some(parse_numbers(&d.file)).filter(|n| !n.is_empty())).collect();
    if let Some(names) = names {
        let most = names.iter().map(Vec::len).min().unwrap_or(0);
        // Use the first position at which all names have different numbers.
        let found = (0..most).map(|at| names.iter().map(|n| n[at]).collect::<Vec<u32>>()).find(|list| are_distinct(list));
        if let Some(list) = found.filter(|l| l.iter().max().is_some_and(|&m| (m as usize) < l.len().saturating_mul(64))) {
            return (list, Told::Names, remarks);
        }
    }
    let devices: Option<Vec<u32>> = all.iter().map(|d| d.device).collect();
    if let Some(list) = devices.filter(|l| are_distinct(l)) {
        return (list, Told::Devices, remarks);
    }
    ((0..).take(all.len()).collect(), Told::Order, remarks)
}

/// Formats numbers as a list of ranges: `0–3, 7`.
pub fn format_ranges(list: &[u32]) -> String {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for n in sorted {
        match parts.last_mut() {
            Some(last) if last.1 + 1 == n => last.1 = n,
            _ => parts.push((n, n)),
        }
    }
    let shown = parts.iter().take(12).map(|&(a, b)| match b - a {
        0 => a.to_string(),
        1 => format!("{a}, {b}"),
        _ => format!("{a}–{b}"),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if parts.len() > 12 {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_from_names_where_they_differ() {
        let of = |files: &[&str]| {
            let all: Vec<Digest> = files.iter().map(|f| Digest { file: (*f).to_owned(), ..Digest::default() }).collect();
            let (numbers, told, _) = identify_ranks(&all);
            (numbers, told)
        };
        assert_eq!(of(&["a/job7_rank0.nsys-rep", "a/job7_rank11.nsys-rep"]), (vec![0, 11], Told::Names));
        assert_eq!(of(&["node3.1.nsys-rep", "node4.1.nsys-rep"]), (vec![3, 4], Told::Names));
        assert_eq!(of(&["report.1.sqlite", "report.0.sqlite"]), (vec![1, 0], Told::Names));
        assert_eq!(of(&["left.json", "right.json"]), (vec![0, 1], Told::Order));
    }

    #[test]
    fn ranks_that_are_there_several_times_are_of_several_jobs() {
        let named =
            |files: &[&str]| -> Vec<Digest> { files.iter().map(|f| Digest { file: (*f).to_owned(), ..Digest::default() }).collect() };
        let of = |files: &[&str]| split_jobs(&named(files));
        assert_eq!(
            of(&["even_rank0.sqlite", "even_rank1.sqlite", "slow_rank_rank0.sqlite", "slow_rank_rank1.sqlite"]),
            (2, vec![0, 0, 1, 1])
        );
        assert_eq!(of(&["a/rank_0.sqlite", "b/rank_0.sqlite"]), (2, vec![0, 1]));
        // These count as one job: no division into several is possible.
        assert_eq!(of(&["node1/rank0.sqlite", "node2/rank1.sqlite"]).0, 1);
        assert_eq!((of(&["rank0.sqlite", "rank0.sqlite"]).0, of(&["left.sqlite", "right.sqlite"]).0), (1, 1));
        // Consecutive runs, without informative names.
        let mut all = named(&["a", "b", "c", "d"]);
        for (at, digest) in (0_u32..).zip(&mut all) {
            let epoch = i64::from(at / 2) * 1_000;
            (digest.rank, digest.epoch, digest.start, digest.end) = (Some(at % 2), Some(epoch), 0, 900);
        }
        assert_eq!(split_jobs(&all), (2, vec![0, 0, 1, 1]));
        all[2].epoch = Some(500);
        assert_eq!(split_jobs(&all).0, 1, "they overlap");
    }

    #[test]
    fn missing_and_doubled_ranks_are_said() {
        let all: Vec<Digest> =
            [0, 1, 1, 5].map(|r| Digest { rank: Some(r), world: Some(8), file: format!("f{r}"), ..Digest::default() }).into();
        let (numbers, told, remarks) = identify_ranks(&all);
        assert_eq!((numbers, told), (vec![0, 1, 1, 5], Told::Reports));
        assert_eq!(remarks, ["rank 1 is there 2 times: f1, f1", "of 8 ranks 5 are not there: 2–4, 6, 7; waiting for them is not seen"]);
    }
}
