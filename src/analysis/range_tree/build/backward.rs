//! Operators of a backward pass, which autograd's engine runs on a thread of its own, and the forward operators that they
//! belong to.

use rustc_hash::FxHashMap;

/// Prefix of the operators that autograd's engine opens around the backward pass.
const ENGINE: &str = "autograd::engine::evaluate_function";

/// Returns true for the name of an operator of autograd's engine.
pub fn is_engine(name: &str) -> bool {
    name.starts_with(ENGINE)
}

/// Matches backward operators with their forward operators, to which autograd gives the same sequence number.
#[derive(Default)]
pub struct Backward {
    /// First operator with each sequence number: start, instance, thread.
    pub forward: FxHashMap<u32, (i64, u32, usize)>,
    /// Outermost engine operators: sequence number; start, instance, thread.
    pub engine: Vec<(u32, (i64, u32, usize))>,
}

impl Backward {
    pub fn add_forward(&mut self, sequence: u32, operator: (i64, u32, usize)) {
        let first = self.forward.entry(sequence).or_insert(operator);
        if operator.0 < first.0 {
            *first = operator;
        }
    }

    /// Adds an outermost engine operator: its start, instance and thread.
    pub fn add_engine(&mut self, sequence: u32, operator: (i64, u32, usize)) {
        self.engine.push((sequence, operator));
    }
}
