//! Tables that tools print for people, whose columns are those of a rule: `---- --- ------`.

use std::ops::Range;

/// Columns of a rule, in characters; `None` for any other line. `+` separates columns, too.
pub fn rule_columns(line: &str) -> Option<Vec<Range<usize>>> {
    let mut columns: Vec<Range<usize>> = Vec::new();
    for (at, c) in line.trim_end().chars().enumerate() {
        match c {
            ' ' | '+' => {}
            '-' => match columns.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => columns.push(at..at + 1),
            },
            _ => return None,
        }
    }
    (!columns.is_empty()).then_some(columns)
}
