//! Sparkline: a value over time in one row, latest on the right.

/// The last `columns` shares (0 to 1) as eighth blocks, one column each; missing values are blank, and non-zero values
/// are always visible.
pub fn share_sparkline(shares: impl DoubleEndedIterator<Item = Option<f64>>, columns: usize) -> String {
    const LEVELS: [char; 9] = ['▁', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut out: Vec<char> = shares
        .rev()
        .take(columns)
        .map(|s| s.map_or(' ', |s| if s > 0.0 { LEVELS[((s.min(1.0) * 8.0).round() as usize).max(1)] } else { '·' }))
        .collect();
    out.resize(columns, ' ');
    out.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_on_the_right() {
        let all = [Some(0.0), Some(0.5), None, Some(1.0)];
        assert_eq!(share_sparkline(all.into_iter(), 6), "  ·▄ █");
        assert_eq!(share_sparkline(all.into_iter(), 2), " █");
        assert_eq!(share_sparkline([Some(0.01)].into_iter(), 1), "▁");
    }
}
