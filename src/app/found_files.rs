//! Reports found on this machine

use crate::import::folder::FoundReport;
use std::path::PathBuf;

/// Reports that were found in folders.
#[derive(Clone, Debug, Default)]
pub struct FileList {
    /// The first folder is the one whose parent can be listed next.
    pub folders: Vec<PathBuf>,
    /// Newest first.
    pub reports: Vec<FoundReport>,
    /// True if the search ended before it had seen all folders.
    pub cut: bool,
    /// Time of the search, milliseconds since 1970.
    pub now_ms: i64,
    /// True if the user asked for the list.
    pub shown: bool,
    /// File that was named instead of a folder.
    pub named: Option<PathBuf>,
}

impl FileList {
    /// Age of a report, such as `2 hours ago`; empty if it is unknown.
    pub fn age_of(&self, report: &FoundReport) -> String {
        let age = self.now_ms.saturating_sub(report.modified_ms);
        if report.modified_ms == 0 { String::new() } else { describe_age(u64::try_from(age / 1000).unwrap_or(0)) }
    }
}

/// Describes an age by its largest unit.
fn describe_age(seconds: u64) -> String {
    for (length, unit) in [(86_400, "day"), (3_600, "hour"), (60, "minute")] {
        if seconds >= length {
            return format!("{} ago", crate::model::units::format_count(seconds / length, unit));
        }
    }
    "just now".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_given_in_one_unit() {
        let ages = [0, 59, 60, 7_199, 7_200, 86_400 * 3].map(describe_age);
        assert_eq!(ages, ["just now", "just now", "1 minute ago", "1 hour ago", "2 hours ago", "3 days ago"]);
    }
}
