//! Removes repeated metrics: if a result has several values of the same name, ncu shows the last one (tested with the
//! raw page of 2024.1.1, with a second duration before or after the first).

use crate::model::{ResultMetrics, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Keeps one value per name: the last value, in the position of the first.
pub fn last_of_each(names: &[Arc<str>], results: &mut [ResultMetrics]) {
    // Different ids may have the same name.
    let mut known: HashMap<&str, u32> = HashMap::new();
    let own: Vec<u32> = (0..).zip(names).map(|(at, name)| *known.entry(name).or_insert(at)).collect();
    let mut place: Vec<Option<usize>> = vec![None; names.len()];
    for result in results {
        let mut kept: Vec<(u32, Value)> = Vec::with_capacity(result.values.len());
        for (name, value) in std::mem::take(&mut result.values) {
            let name = own.get(name as usize).copied().unwrap_or(name);
            match place.get_mut(name as usize) {
                Some(Some(at)) => kept[*at].1 = value,
                Some(free) => {
                    *free = Some(kept.len());
                    kept.push((name, value));
                }
                None => kept.push((name, value)),
            }
        }
        for (name, _) in &kept {
            if let Some(used) = place.get_mut(*name as usize) {
                *used = None;
            }
        }
        result.values = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_name_counts() {
        let names: Vec<Arc<str>> = ["gpu__time_duration.sum", "sm__cycles_active.avg", "gpu__time_duration.sum"].map(Arc::from).into();
        let of = |values: &[(u32, u64)]| ResultMetrics::from_values(values.iter().map(|v| (v.0, Value::Integer(v.1))).collect());
        for (what, values, want) in [
            ("once", vec![(0, 5), (1, 6)], vec![(0, 5), (1, 6)]),
            ("twice under one number", vec![(0, 144_832), (1, 6), (0, 143_168)], vec![(0, 143_168), (1, 6)]),
            ("twice under two numbers", vec![(2, 144_832), (0, 143_168), (1, 6)], vec![(0, 143_168), (1, 6)]),
            ("three times", vec![(1, 1), (0, 1), (0, 2), (2, 3)], vec![(1, 1), (0, 3)]),
            ("a number without a name", vec![(9, 1), (9, 2)], vec![(9, 1), (9, 2)]),
        ] {
            // Results are independent of each other.
            let mut results = [of(&values), of(&[(0, 7)])];
            last_of_each(&names, &mut results);
            assert_eq!(results, [of(&want), of(&[(0, 7)])], "{what}");
        }
    }
}
