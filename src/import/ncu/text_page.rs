//! Lines of the text that ncu prints without `--csv`: for each result a line with its kernel, then tables of metrics.
//!
//! ```text
//! [1623] zoo@127.0.0.1
//!   copy(const float *, float *) (2112, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
//!     Section: GPU Speed Of Light Throughput
//!     ----------------------- ------------- ------------
//!     Metric Name               Metric Unit Metric Value
//!     ----------------------- ------------- ------------
//!     Duration                      usecond       131.97
//! ```
//!
//! The raw page has the titles above a single rule, and no sections.

use crate::import::text_table::rule_columns;
use std::ops::Range;

/// The line that begins a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultLine<'a> {
    pub name: &'a str,
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    pub context: Option<u64>,
    pub stream: Option<u64>,
    pub device: Option<u64>,
    pub compute_capability: Option<(u64, u64)>,
}

/// A metric as printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricLine<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    pub value: &'a str,
}

/// A line of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageLine<'a> {
    Process(u32),
    Result(ResultLine<'a>),
    Section(&'a str),
    Metric(MetricLine<'a>),
    /// Titles and rules of tables, and everything else.
    Other,
}

/// State between lines: the columns of the table in progress.
#[derive(Debug, Default)]
pub struct TextPage {
    /// Columns of the last rule, in characters.
    columns: Option<[Range<usize>; 3]>,
    /// True after the titles of a table of metrics.
    titled: bool,
}

impl TextPage {
    /// Interprets a line; `within` is false before the first result, where the program's own lines may look like rows.
    pub fn read_line<'a>(&mut self, line: &'a str, within: bool) -> PageLine<'a> {
        let line = line.trim_end_matches(['\r', '\n']);
        let bare = line.trim();
        if let Some(result) = parse_result(line) {
            *self = Self::default();
            return PageLine::Result(result);
        }
        if let Some(pid) = parse_process(line) {
            *self = Self::default();
            return PageLine::Process(pid);
        }
        if !within {
            return PageLine::Other;
        }
        if let Some(section) = bare.strip_prefix("Section: ") {
            *self = Self::default();
            return PageLine::Section(section);
        }
        if bare.is_empty() {
            *self = Self::default();
        } else if let Some(columns) = rule_columns(line) {
            self.columns = columns.try_into().ok();
        } else if bare.split_whitespace().eq(["Metric", "Name", "Metric", "Unit", "Metric", "Value"]) {
            self.titled = true;
        } else if self.titled
            && let Some(columns) = &self.columns
            && let Some(metric) = split_columns(line, columns)
        {
            return PageLine::Metric(metric);
        }
        PageLine::Other
    }
}

/// Splits a row into its three columns. The blanks between them must be blank; the value may be longer than its column.
fn split_columns<'a>(line: &'a str, columns: &[Range<usize>; 3]) -> Option<MetricLine<'a>> {
    // Columns count characters, slices bytes.
    let byte = |at: usize| line.char_indices().nth(at).map_or(line.len(), |(i, _)| i);
    let [name, unit, value] = columns;
    let part = |from: usize, to: usize| line.get(byte(from)..byte(to));
    let blank = |from: usize, to: usize| part(from, to).is_some_and(|t| t.trim().is_empty());
    if !blank(0, name.start) || !blank(name.end, unit.start) || !blank(unit.end, value.start) {
        return None;
    }
    let value = part(value.start, usize::MAX)?.trim();
    let name = part(name.start, name.end)?.trim();
    (!name.is_empty()).then(|| MetricLine { name, unit: part(unit.start, unit.end).unwrap_or_default().trim(), value })
}

/// Parses `[1623] zoo@127.0.0.1`; program and host may be missing.
fn parse_process(line: &str) -> Option<u32> {
    let (pid, program) = line.strip_prefix('[')?.split_once("] ")?;
    program.contains('@').then(|| pid.parse().ok())?
}

/// Parses `(2112, 1, 1)`.
fn parse_dims(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text.strip_prefix('(')?.strip_suffix(')')?.split(", ").map(|n| n.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Splits a name from the grid and block after it: `name (1, 1, 1)x(64, 1, 1)`.
fn split_shape(text: &str) -> Option<(&str, [u32; 3], [u32; 3])> {
    let (before, block) = text.rsplit_once(")x(")?;
    let (name, grid) = before.rsplit_once(" (")?;
    Some((name, parse_dims(&format!("({grid})"))?, parse_dims(&format!("({block}"))?))
}

/// Removes the time of day that old versions print after the name: `, 2021-Jan-31 12:34:56`.
fn without_time(text: &str) -> &str {
    let is_time = |t: &str| {
        let b = t.as_bytes();
        b.len() == 20
            && b[4] == b'-'
            && b[8] == b'-'
            && b[11] == b' '
            && b[14] == b':'
            && b[17] == b':'
            && b[..4].iter().all(u8::is_ascii_digit)
    };
    text.rsplit_once(", ").filter(|(_, t)| is_time(t)).map_or(text, |(before, _)| before)
}

/// Parses the line of a result, which is indented by two blanks. Ranges and graphs have no stream and no shape.
fn parse_result(line: &str) -> Option<ResultLine<'_>> {
    let text = line.strip_prefix("  ").filter(|t| !t.starts_with(' '))?;
    let (name, place) = text.rsplit_once(", Context ")?;
    let mut parts = place.split(", ");
    let mut out = ResultLine { context: Some(parts.next()?.trim().parse().ok()?), ..ResultLine::default() };
    for part in parts {
        let (key, value) = part.trim().split_once(' ')?;
        match key {
            "Stream" => out.stream = Some(value.parse().ok()?),
            "Device" => out.device = Some(value.parse().ok()?),
            "CC" => {
                let (major, minor) = value.split_once('.')?;
                out.compute_capability = Some((major.parse().ok()?, minor.parse().ok()?));
            }
            _ => return None,
        }
    }
    let name = without_time(name);
    out.name = match split_shape(name) {
        Some((name, grid, block)) => {
            (out.grid, out.block) = (Some(grid), Some(block));
            name
        }
        None => name,
    };
    (!out.name.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_results() {
        let found =
            parse_result("  copy(const float4 *, unsigned long) (2112, 1, 1)x(256, 2, 1), Context 1, Stream 7, Device 0, CC 9.0").unwrap();
        assert_eq!((found.name, found.grid, found.block), ("copy(const float4 *, unsigned long)", Some([2112, 1, 1]), Some([256, 2, 1])));
        assert_eq!((found.context, found.stream, found.device, found.compute_capability), (Some(1), Some(7), Some(0), Some((9, 0))));
        let old = parse_result("  saxpy(int, float), 2021-Jan-31 12:34:56, Context 1, Stream 7").unwrap();
        assert_eq!((old.name, old.grid, old.stream), ("saxpy(int, float)", None, Some(7)));
        assert_eq!(parse_result("  range, Context 1, Device 0, CC 9.0").unwrap().name, "range");
        for other in [
            "range, Context 1",
            "  loss, Context 1 of 3",
            "    x, Context 1, Stream 7",
            "  , Context 1, Stream 7",
            "  x, Context 1, Epoch 3",
        ] {
            assert_eq!(parse_result(other), None, "{other}");
        }
        assert_eq!((parse_process("[977] @"), parse_process("[1/4] step"), parse_process("[x] a@b")), (Some(977), None, None));
    }

    #[test]
    fn rows_are_read_below_titles_of_both_pages() {
        let rows = |text: &str| {
            let mut page = TextPage::default();
            let mut out = Vec::new();
            for line in text.lines() {
                if let PageLine::Metric(m) = page.read_line(line, true) {
                    out.push((m.name.to_owned(), m.unit.to_owned(), m.value.to_owned()));
                }
            }
            out
        };
        let details = "    Section: S\n    ---- ---- -----\n    Metric Name Metric Unit Metric Value\n    ---- ---- -----\n    A b     %  1.50\n    C          12,000\n    ---- ---- -----\n\n    D       %     2\n";
        assert_eq!(rows(details), [("A b", "%", "1.50"), ("C", "", "12,000")].map(|(a, b, c)| (a.into(), b.into(), c.into())));
        let raw = "  Metric Name Metric Unit Metric Value\n  ------- ---- -----\n  a__b.sum inst    12\n  a__c.sum  µs     3\n";
        assert_eq!(rows(raw).len(), 0, "a name that crosses its column is no row of this table");
        let raw = "  Metric Name Metric Unit Metric Value\n  -------- ---- -----\n  a__b.sum inst    12\n  a__c.sum   µs     3\n";
        assert_eq!(rows(raw)[1], ("a__c.sum".into(), "µs".into(), "3".into()));
        // The rule between two rules' texts is no table, and neither is a table of minima and maxima.
        assert!(rows("    ----- ------\n    INF   text\n").is_empty());
        assert!(rows("    --- --- --- --- ---\n    Metric Name Metric Unit Minimum Maximum Average\n    --- --- --- --- ---\n    a     %   1   2   3\n").is_empty());
    }
}
