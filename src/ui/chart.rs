//! Text charts: columns of eighth blocks, and points in braille.

/// A histogram of `columns` × `rows` characters, top row first. Neighboring values are summed to fit the width.
pub fn histogram_lines(values: &[u64], columns: usize, rows: usize) -> Vec<String> {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let joined = sum_neighbours(values, columns);
    let most = joined.iter().copied().max().unwrap_or(0);
    (0..rows)
        .map(|row| {
            let below = (rows - 1 - row) * 8;
            joined
                .iter()
                .map(|&n| {
                    if n == 0 || most == 0 {
                        return ' ';
                    }
                    let height = ((n as f64 / most as f64 * (rows * 8) as f64).round() as usize).max(1);
                    LEVELS[height.saturating_sub(below).min(8)]
                })
                .collect()
        })
        .collect()
}

/// Sums neighboring values, so that at most `n` remain.
fn sum_neighbours(values: &[u64], n: usize) -> Vec<u64> {
    if n == 0 || values.is_empty() {
        return Vec::new();
    }
    let n = n.min(values.len());
    let mut out = vec![0; n];
    for (i, v) in values.iter().enumerate() {
        out[i * n / values.len()] += v;
    }
    out
}

/// Vertical extents in braille, top row first: each slice in `extents` becomes a column of dots from its minimum to its
/// maximum on a logarithmic scale between `low` and `high`.
pub fn extent_lines(extents: &[Option<(i64, i64)>], columns: usize, rows: usize, (low, high): (i64, i64)) -> Vec<String> {
    // Bits of the dots in a braille character, by column and by row from the top.
    const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    let mut cells = vec![0_u32; columns * rows];
    let dots = rows * 4;
    let (bottom, top) = ((low.max(1) as f64).ln(), (high.max(1) as f64).ln());
    let height = |v: i64| {
        let share = if top > bottom { ((v.max(1) as f64).ln() - bottom) / (top - bottom) } else { 0.5 };
        (share.clamp(0.0, 1.0) * (dots - 1) as f64).round() as usize
    };
    let wide = columns * 2;
    if wide > 0 && dots > 0 {
        for (i, extent) in extents.iter().enumerate() {
            let Some((least, greatest)) = *extent else {
                continue;
            };
            // With fewer slices than dot columns, there are gaps; with more, slices overlap.
            let x = (i * wide / extents.len()).min(wide - 1);
            for y in height(least)..=height(greatest) {
                let from_top = dots - 1 - y;
                cells[from_top / 4 * columns + x / 2] |= DOTS[x % 2][from_top % 4];
            }
        }
    }
    cells
        .chunks(columns.max(1))
        .map(|row| row.iter().map(|&c| char::from_u32(0x2800 + c).filter(|_| c > 0).unwrap_or(' ')).collect())
        .collect()
}

/// Values in order as a line of eighth blocks; neighbors are averaged to fit.
pub fn spark_line(values: &[f64], columns: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let n = columns.min(values.len());
    let most = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    (0..n)
        .map(|i| {
            let slice = &values[i * values.len() / n..((i + 1) * values.len() / n).max(i * values.len() / n + 1)];
            let mean = slice.iter().sum::<f64>() / slice.len() as f64;
            if most > 0.0 && mean.is_finite() { LEVELS[((mean / most * 7.0).round() as usize).min(7)] } else { LEVELS[0] }
        })
        .collect()
}

/// A full block.
pub const FULL: char = '█';

/// Heights as filled columns in eighths, top row first, scaled to `most`.
pub fn step_lines(heights: &[f64], most: f64, rows: usize) -> Vec<String> {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', FULL];
    (0..rows)
        .map(|row| {
            let below = (rows - 1 - row) * 8;
            let eighths = |h: f64| if most > 0.0 && h > 0.0 { ((h / most * (rows * 8) as f64).round() as usize).max(1) } else { 0 };
            heights.iter().map(|&h| LEVELS[eighths(h).saturating_sub(below).min(8)]).collect()
        })
        .collect()
}

/// Bits of the dots in a braille character, by column and by row from the top.
const BRAILLE: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Braille canvas; each cell has the style of the last dot drawn in it.
pub struct Canvas<S> {
    columns: usize,
    rows: usize,
    cells: Vec<(u32, Option<S>)>,
}

impl<S: Copy> Canvas<S> {
    /// Creates an empty canvas of `columns` × `rows` characters.
    pub fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, cells: vec![(0, None); columns * rows] }
    }

    /// Width and height in dots.
    pub fn size(&self) -> (usize, usize) {
        (self.columns * 2, self.rows * 4)
    }

    /// Sets a dot; (0, 0) is at the top left, and dots outside the canvas are ignored.
    pub fn set_dot(&mut self, x: usize, y: usize, style: S) {
        let (wide, tall) = self.size();
        if x < wide && y < tall {
            let cell = &mut self.cells[y / 4 * self.columns + x / 2];
            cell.0 |= BRAILLE[x % 2][y % 4];
            cell.1 = Some(style);
        }
    }

    /// Characters of a row with their styles.
    pub fn row_cells(&self, row: usize) -> impl Iterator<Item = (char, Option<S>)> + '_ {
        let cells = self.cells.get(row * self.columns..(row + 1) * self.columns).unwrap_or_default();
        cells.iter().map(|&(dots, style)| (if dots == 0 { ' ' } else { char::from_u32(0x2800 + dots).unwrap_or(' ') }, style))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_stands_on_its_base() {
        assert_eq!(histogram_lines(&[0, 1, 8, 16], 4, 2), ["   █", " ▁██"]);
        assert_eq!(histogram_lines(&[1, 1, 1, 1], 2, 1), ["██"]);
        assert_eq!(histogram_lines(&[], 4, 1), [""]);
    }

    #[test]
    fn extents_reach_from_least_to_greatest() {
        let drawn = extent_lines(&[Some((1, 1)), Some((1, 1000)), None, Some((1000, 1000))], 2, 1, (1, 1000));
        assert_eq!(drawn, ["⣸⠈"]);
        assert_eq!(extent_lines(&[Some((5, 5))], 1, 1, (5, 5)).len(), 1);
    }
}
