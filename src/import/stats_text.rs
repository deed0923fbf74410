//! Tables that `nsys stats` prints for people, as CSV:
//!
//! ```text
//!  Time (%)  Total Time (ns)  Instances  Avg (ns)   Name
//!  --------  ---------------  ---------  --------  ------
//!      62.1          9324111        100   93241.1  gemm
//! ```
//!
//! Its format `table` has the same columns between `|`, and `+` in its rules.

use super::text_table::rule_columns;
use std::io::{BufRead, Result};
use std::ops::Range;

/// Maximum length of a line, bytes: names are cut to 100 columns.
const LONGEST_LINE: u64 = 1 << 16;

/// Beginning of the line above a table, which names its report; several reports may precede that of kernels.
const HEADING: &str = " ** ";

/// Returns true if a text has such tables.
pub fn has_tables(head: &str) -> bool {
    let mut lines = head.lines();
    lines.any(|l| (l.starts_with(HEADING) && l.trim_end().ends_with("):")) || is_title(l))
}

/// Returns true for the titles of a table with kernels, or of one with launches.
fn is_title(line: &str) -> bool {
    let words = |all: &[&str]| all.iter().all(|w| line.contains(w));
    let kernels = words(&["Total Time (", " Instances "]) && line.trim_end_matches(['|', ' ']).ends_with("Name");
    line.starts_with([' ', '|']) && (kernels || words(&["Start (", "Duration (", " GrdX "]))
}

/// Columns of the rule of a table of figures, which has more than three.
fn table_columns(line: &str) -> Option<Vec<Range<usize>>> {
    rule_columns(line).filter(|columns| columns.len() > 3)
}

/// Cells of a row; the last one may be longer than its column, unless there are bars.
fn split_row(line: &str, columns: &[Range<usize>]) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    let last = if line.starts_with('|') { usize::MAX } else { columns.len().saturating_sub(1) };
    let cell = |(n, c): (usize, &Range<usize>)| {
        let end = if n == last { characters.len() } else { c.end };
        characters.get(c.start..end.min(characters.len())).unwrap_or_default().iter().collect::<String>().trim().to_owned()
    };
    columns.iter().enumerate().map(cell).collect()
}

/// Finds the first table of launches or, if there is none, of kernels; returns it as CSV. `keep` is asked before a row
/// is kept, with its size in bytes.
pub fn read_table(mut reader: impl BufRead, mut keep: impl FnMut(u64) -> bool) -> Result<Option<Vec<u8>>> {
    let (mut title, mut columns): (Option<String>, Option<Vec<Range<usize>>>) = (None, None);
    let (mut found, mut table): (Option<Vec<u8>>, Option<csv::Writer<Vec<u8>>>) = (None, None);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = std::io::Read::take(&mut reader, LONGEST_LINE).read_until(b'\n', &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end_matches(['\r', '\n']);
        if let (Some(writer), Some(columns)) = (&mut table, &columns)
            && !line.trim().is_empty()
            && table_columns(line).is_none()
        {
            if !keep(read as u64) {
                return Ok(found);
            }
            writer.write_record(split_row(line, columns))?;
            continue;
        }
        if let Some(writer) = table.take() {
            let launches = title.take().is_some_and(|t| t.contains("GrdX"));
            let finished = writer.into_inner().map_err(|e| std::io::Error::other(e.to_string()))?;
            if launches {
                return Ok(Some(finished));
            }
            found.get_or_insert(finished);
        }
        if read == 0 {
            return Ok(found);
        }
        if let (Some(titles), Some(ranges)) = (&title, table_columns(line)) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            writer.write_record(split_row(titles, &ranges))?;
            (table, columns) = (Some(writer), Some(ranges));
        } else {
            title = is_title(line).then(|| line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
 ** CUDA API Summary (cuda_api_sum):

 Time (%)  Total Time (ns)  Num Calls  Avg (ns)  Name
 --------  ---------------  ---------  --------  ----
    100.0               12          1      12.0  cuInit

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)           Name
 --------  ---------------  ---------  --------  ---------------------
     62.1        9,324,111        100   93241.1  void gemm<…>(int, …
     37.9          5690001        100   56900.0  µ(float *, long long)
";

    #[test]
    fn the_table_of_kernels_is_found_among_others() {
        assert!(has_tables(TEXT) && !has_tables(" ** note\n Instances Total"));
        let csv = String::from_utf8(read_table(TEXT.as_bytes(), |_| true).unwrap().unwrap()).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "Time (%),Total Time (ns),Instances,Avg (ns),Name");
        assert_eq!(lines[1], "62.1,\"9,324,111\",100,93241.1,\"void gemm<…>(int, …\"");
        assert_eq!(lines[2], "37.9,5690001,100,56900.0,\"µ(float *, long long)\"");
        assert_eq!(lines.len(), 3);
        for end in 0..TEXT.len() {
            let _ = read_table(&TEXT.as_bytes()[..end], |_| true).unwrap();
        }
        assert_eq!(read_table(TEXT.as_bytes(), |_| false).unwrap(), None);
        let bars = "
+----------+-----------------+-----------+----------+---------+
| Time (%) | Total Time (ns) | Instances | Avg (ns) |  Name   |
+----------+-----------------+-----------+----------+---------+
|    100.0 |         5690001 |       100 |  56900.0 | k(a, b) |
+----------+-----------------+-----------+----------+---------+
";
        let csv = String::from_utf8(read_table(bars.as_bytes(), |_| true).unwrap().unwrap()).unwrap();
        assert_eq!(csv, "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,5690001,100,56900.0,\"k(a, b)\"\n");
    }
}
