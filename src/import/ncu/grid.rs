//! Converts grid sizes to blocks: ncu 2020.1 and 2020.2 stored the grid of a launch in threads, but metrics in blocks.

use crate::model::{Metrics, ResultMetrics};

/// Versions that store grid sizes in threads.
const IN_THREADS: [&str; 2] = ["2020.1.", "2020.2."];

/// Converts grids from threads to blocks if the launch's metrics contradict the grid or, if there are no such
/// metrics, if this version of ncu stored threads.
pub fn in_blocks(metrics: &mut Metrics) {
    let known = metrics.source.version.as_deref().is_some_and(|v| IN_THREADS.iter().any(|p| v.starts_with(p)));
    let grids: Vec<Option<[u32; 3]>> = metrics.results.iter().map(|r| grid_in_blocks(metrics, r, known)).collect();
    for (result, grid) in metrics.results.iter_mut().zip(grids) {
        result.grid = grid.or(result.grid);
    }
}

fn product(of: [u32; 3]) -> u64 {
    of.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
}

/// Returns the grid in blocks; `None` if it already is, or if this is unknown.
fn grid_in_blocks(metrics: &Metrics, result: &ResultMetrics, known: bool) -> Option<[u32; 3]> {
    let (grid, block) = result.grid.zip(result.block)?;
    let integer = |name: &str| metrics.integer(result, name).filter(|n| *n > 0);
    let dim = |d: &str| integer(&format!("launch__grid_dim_{d}")).and_then(|n| u32::try_from(n).ok());
    let dims = match ["x", "y", "z"].map(dim) {
        [Some(x), Some(y), Some(z)] => Some([x, y, z]),
        _ => None,
    };
    let size = integer("launch__grid_size").or_else(|| dims.map(product));
    let divided = || {
        let parts: Vec<u32> = grid.iter().zip(block).filter(|(g, b)| *b > 0 && *g % b == 0).map(|(g, b)| g / b).collect();
        <[u32; 3]>::try_from(parts).ok()
    };
    match size {
        Some(size) if size == product(grid) => None,
        Some(size) if size.saturating_mul(product(block)) == product(grid) => {
            dims.filter(|d| product(*d) == size).or_else(|| divided().filter(|d| product(*d) == size))
        }
        None if known => divided(),
        // The metrics contradict the grid for some other reason, or there is no evidence.
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Source, Value};
    use std::sync::Arc;

    #[test]
    fn only_grids_in_threads_are_changed() {
        let size = |n: u64| vec![("launch__grid_size", n)];
        let dims = |d: [u64; 3]| vec![("launch__grid_dim_x", d[0]), ("launch__grid_dim_y", d[1]), ("launch__grid_dim_z", d[2])];
        for (version, grid, block, pairs, want) in [
            // Metrics decide, whatever the version.
            (None, [156_160, 1, 1], [128, 1, 1], [size(1220), dims([1220, 1, 1])].concat(), [1220, 1, 1]),
            (None, [156_160, 1, 1], [128, 1, 1], size(1220), [1220, 1, 1]),
            (Some("2020.1.2.0"), [64, 96, 4], [16, 8, 2], size(96), [4, 12, 2]),
            (Some("2020.2.0.0"), [64, 96, 4], [16, 8, 2], dims([4, 12, 2]), [4, 12, 2]),
            // Metrics and grid agree.
            (Some("2020.2.0.0"), [1220, 1, 1], [128, 1, 1], size(1220), [1220, 1, 1]),
            (Some("2024.1.1.0"), [1220, 1, 1], [128, 1, 1], size(1220), [1220, 1, 1]),
            (Some("2020.1.0.0"), [7, 1, 1], [1, 1, 1], size(7), [7, 1, 1]),
            // If there are no metrics, the version decides.
            (Some("2020.2.1.0"), [1024, 32, 1], [256, 2, 1], vec![], [4, 16, 1]),
            (Some("2020.2.1.0"), [1000, 1, 1], [256, 1, 1], vec![], [1000, 1, 1]),
            (Some("2020.3.0.0"), [1024, 1, 1], [256, 1, 1], vec![], [1024, 1, 1]),
            (None, [1024, 1, 1], [256, 1, 1], vec![], [1024, 1, 1]),
            // Metrics contradict the grid in some other way.
            (Some("2020.1.0.0"), [1024, 1, 1], [256, 1, 1], size(5), [1024, 1, 1]),
        ] {
            let mut metrics = Metrics { source: Source { version: version.map(str::to_owned), ..Source::default() }, ..Metrics::default() };
            metrics.names = pairs.iter().map(|p| Arc::from(p.0)).collect();
            let values = (0..).zip(&pairs).map(|(at, p)| (at, Value::Integer(p.1))).collect();
            metrics.results.push(ResultMetrics { grid: Some(grid), block: Some(block), ..ResultMetrics::from_values(values) });
            in_blocks(&mut metrics);
            assert_eq!(metrics.results[0].grid, Some(want), "{version:?} {grid:?} {block:?} {pairs:?}");
        }
    }
}
