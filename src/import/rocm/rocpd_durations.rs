//! Durations of all dispatches in a rocpd database by kernel, which is all that a table of kernels needs: 8 bytes per
//! dispatch.

use crate::import::budget::Budget;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{self, NULL, find_layout};
use crate::import::{ImportError, Job};
use crate::model::launches::TimesBuilder;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Dispatch numbers above this multiple of the number of rows are implausible: most dispatches would be missing.
const MOST_TIMES: usize = 4;

/// Data from the tables that dispatches refer to.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Indices of symbols and of processes, by id.
    pub symbols: &'a FxHashMap<i64, u32>,
    pub processes: &'a FxHashMap<i64, u32>,
    /// Index of the process to use for dispatches whose process is unknown.
    pub last: u32,
}

/// Kernel and duration of each dispatch, in file order.
#[derive(Debug, Default)]
pub struct Durations {
    /// Index of the kernel symbol.
    pub symbols: Vec<u32>,
    /// Durations, ns.
    pub times: TimesBuilder,
    /// Number of dispatch numbers that are missing from the sequence.
    pub missing: u64,
    /// Number of rows with dangling references.
    pub broken: u64,
}

/// Set of the dispatch numbers that occur in a process.
#[derive(Default)]
struct Numbers {
    words: Vec<u64>,
    rows: u64,
}

impl Numbers {
    /// Adds a number; returns false if it is implausible, or if there is no memory left for it.
    fn note(&mut self, number: i64, most: usize, memory: &Budget) -> bool {
        let Some(at) = usize::try_from(number).ok().filter(|n| *n <= most) else { return false };
        if at > 0 {
            if self.words.len() <= at / 64 {
                let more = at / 64 + 1 - self.words.len();
                if !memory.try_spend(8 * more as u64) {
                    return false;
                }
                self.words.resize(at / 64 + 1, 0);
            }
            self.words[at / 64] |= 1 << (at % 64);
            self.rows += 1;
        }
        true
    }

    fn merge(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
        self.rows += other.rows;
    }

    fn distinct(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    fn highest(&self) -> u64 {
        let last = self.words.iter().rposition(|w| *w != 0);
        last.map_or(0, |at| at as u64 * 64 + u64::from(self.words[at].ilog2()))
    }
}

/// One chunk of the table: symbols, durations in 32 bits, and durations that do not fit.
struct Piece {
    chunk: usize,
    symbols: Vec<u32>,
    short: Vec<u32>,
    wide: Vec<(u32, i64)>,
}

#[derive(Default)]
struct State {
    pieces: Vec<Piece>,
    /// Dispatch numbers by process.
    numbers: FxHashMap<u32, Numbers>,
    broken: u64,
    odd: bool,
}

/// Symbol indices by id, in a vector for the small ids that AMD assigns.
struct Symbols<'a> {
    dense: Vec<u32>,
    others: &'a FxHashMap<i64, u32>,
}

impl<'a> Symbols<'a> {
    const DENSE: i64 = 1 << 16;

    fn new(ids: &'a FxHashMap<i64, u32>) -> Self {
        let most = ids.keys().copied().filter(|id| (0..Self::DENSE).contains(id)).max().unwrap_or(-1);
        let mut dense = vec![u32::MAX; usize::try_from(most + 1).unwrap_or(0)];
        for (&id, &index) in ids {
            if let Some(place) = usize::try_from(id).ok().and_then(|id| dense.get_mut(id)) {
                *place = index;
            }
        }
        Self { dense, others: ids }
    }

    fn find(&self, id: i64) -> Option<u32> {
        let small = usize::try_from(id).ok().and_then(|id| self.dense.get(id)).copied().filter(|index| *index != u32::MAX);
        small.or_else(|| self.others.get(&id).copied())
    }
}

/// Reads the dispatches of one database into `out`; returns false if a dispatch number occurs twice, which means that
/// rows do not correspond to launches one to one.
pub fn read_durations(db: &Db, table: &str, known: Known<'_>, job: &Job<'_>, out: &mut Durations) -> Result<bool, ImportError> {
    if !db.has_table(table) {
        return Ok(true);
    }
    let (layout, memory, symbols) = (find_layout(db, table)?, db.memory_budget(), Symbols::new(known.symbols));
    let most = layout.rows.saturating_mul(MOST_TIMES);
    let columns = ["pid", "kernel_id", "dispatch_id", "start", "end"];
    let states = scan::scan_integers(db, table, columns, ("kernels", layout), job, State::default, |state, chunk, rows| {
        memory.charge_bytes(8 * rows.len() as u64)?;
        let mut piece = Piece { chunk, symbols: Vec::with_capacity(rows.len()), short: Vec::with_capacity(rows.len()), wide: Vec::new() };
        let mut last = (NULL, None);
        for &[pid, kernel, number, start, end] in rows {
            if last.0 != kernel {
                last = (kernel, symbols.find(kernel));
            }
            let Some(symbol) = last.1.filter(|_| start != NULL) else {
                state.broken += 1;
                continue;
            };
            if number != NULL {
                let process = known.processes.get(&pid).copied().unwrap_or(known.last);
                state.odd |= !state.numbers.entry(process).or_default().note(number, most, memory);
            }
            let end = if end == NULL { start } else { end };
            let (short, wide) = TimesBuilder::squeeze_value((start > 0 && end >= start).then(|| end - start));
            piece.wide.extend(u32::try_from(piece.short.len()).ok().zip(wide));
            piece.symbols.push(symbol);
            piece.short.push(short);
        }
        state.pieces.push(piece);
        Ok(())
    })?;
    let mut numbers: FxHashMap<u32, Numbers> = FxHashMap::default();
    let mut pieces = Vec::new();
    for state in states {
        for (pid, of) in &state.numbers {
            numbers.entry(*pid).or_default().merge(of);
        }
        out.broken += state.broken;
        if state.odd {
            return Ok(false);
        }
        pieces.extend(state.pieces);
    }
    if numbers.values().any(|n| n.distinct() != n.rows) {
        return Ok(false);
    }
    out.missing += numbers.values().map(|n| n.highest() - n.distinct()).sum::<u64>();
    pieces.sort_by_key(|p| p.chunk);
    let mut short = Vec::with_capacity(pieces.iter().map(|p| p.short.len()).sum());
    let mut wide: BTreeMap<u32, i64> = BTreeMap::new();
    out.symbols.reserve_exact(short.capacity());
    for piece in pieces {
        let before = u32::try_from(short.len()).unwrap_or(u32::MAX);
        wide.extend(piece.wide.into_iter().map(|(at, value)| (before.saturating_add(at), value)));
        short.extend(piece.short);
        out.symbols.extend(piece.symbols);
    }
    out.times.append(TimesBuilder::from_parts(short, wide));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_once() {
        let mut one = Numbers::default();
        let memory = Budget::of_rows(std::path::Path::new("x"), 100);
        assert!([1, 2, 64, 0].into_iter().all(|n| one.note(n, 1000, &memory)));
        assert!(!one.note(-1, 1000, &memory) && !one.note(1001, 1000, &memory));
        // Sixteen words of memory exceed the remaining budget.
        assert!(!one.note(1000, 1000, &memory) && memory.bytes_left() == 100 - 16);
        let mut other = Numbers::default();
        assert!([3, 200].into_iter().all(|n| other.note(n, 1000, &memory)));
        one.merge(&other);
        assert_eq!((one.distinct(), one.rows, one.highest()), (5, 5, 200));
        one.merge(&other);
        assert_eq!((one.distinct(), one.rows), (5, 7));
        assert_eq!(Numbers::default().highest(), 0);
    }

    #[test]
    fn symbols_have_any_id() {
        let ids: FxHashMap<i64, u32> = [(3, 0), (1 << 40, 1), (-5, 2)].into_iter().collect();
        let symbols = Symbols::new(&ids);
        assert_eq!([3, 1 << 40, -5, 0, 4].map(|id| symbols.find(id)), [Some(0), Some(1), Some(2), None, None]);
    }
}
