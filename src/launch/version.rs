//! Versions of NVIDIA's tools, as the tools print them and as they are stored in reports.

use std::fmt;

/// Up to four numbers, such as `2025.3.2.474`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u32>);

impl Version {
    /// Finds the first version in a string: a year and at least two more numbers, separated by `.` (or by `@`, as in
    /// report headers).
    pub fn find_in(text: &str) -> Option<Self> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '@')).find_map(|word| {
            let numbers: Vec<u32> = word.split(['.', '@']).filter(|p| !p.is_empty()).map_while(|p| p.parse().ok()).take(4).collect();
            (numbers.len() >= 3 && (2018..2100).contains(&numbers[0])).then_some(Self(numbers))
        })
    }

    /// Returns true if a tool with this version can read a report of version `report`: it is from the same release or a
    /// newer one. The third and later numbers are builds of one release.
    pub fn can_read(&self, report: &Self) -> bool {
        self.0[..2] >= report.0[..2]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().take(3).map(u32::to_string).collect::<Vec<_>>().join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_tools_and_reports_spell_them() {
        let tool = Version::find_in("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0").unwrap();
        let report = Version::find_in("NVIDIA Tegra Profiler Report 2025@3@2@474-253236v0.").unwrap();
        assert_eq!((tool.to_string(), report.to_string()), ("2023.4.4".into(), "2025.3.2".into()));
        assert!(report.can_read(&tool) && !tool.can_read(&report) && tool.can_read(&tool));
        assert_eq!(Version::find_in("NVIDIA Tegra Profiler Report 1."), None);
    }
}
