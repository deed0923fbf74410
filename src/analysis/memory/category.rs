//! What memory is for, by who asked for it and how long it was held. `PyTorch`'s records do not say: these are the usual heuristics, and a
//! parameter that is made in an unusual way is called something else.

use super::ledger::{Ledger, Life};
use super::sites::Sites;
use super::steps::Steps;
use crate::model::host_call::NONE;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Allocated before the report began, and who asked for it is not known: parameters and the optimizer's state as a rule.
    Earlier,
    Parameters,
    Gradients,
    OptimizerState,
    /// Made going forward, given back on the way back or after it.
    Activations,
    /// Given back soon.
    Temporary,
    Other,
}

impl Category {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Earlier => "earlier",
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activations => "activations",
            Self::Temporary => "temporary",
            Self::Other => "other",
        }
    }
}

/// What a stack says of what its memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    Module,
    Optimizer,
    Backward,
    Forward,
    Nothing,
}

/// Tells what memory is for.
pub struct Categories<'a> {
    ledger: &'a Ledger,
    steps: &'a Steps,
    /// By stack.
    hints: Vec<Hint>,
    /// ns: given back sooner than that is temporary.
    soon: i64,
    /// When the engine of autograd is first seen to run; `None` where no stack proves that it did.
    backward: Option<i64>,
}

/// Share of a step within which memory is given back that is temporary.
const SOON: f64 = 0.05;

impl<'a> Categories<'a> {
    #[must_use]
    pub fn new(sites: &Sites, ledger: &'a Ledger, steps: &'a Steps) -> Self {
        let hints = (0..u32::try_from(sites.stacks.len()).unwrap_or(0)).map(|stack| hint(sites, stack)).collect();
        let length = steps.length().or_else(|| ledger.span().map(|s| s.1 - s.0)).unwrap_or(0);
        let proof: Vec<bool> = (0..u32::try_from(sites.stacks.len()).unwrap_or(0)).map(|stack| goes_back(sites, stack)).collect();
        let seen = |l: &&Life| l.start != NONE && proof.get(l.stack as usize) == Some(&true);
        let backward = if proof.contains(&true) { ledger.lives.iter().find(seen).map(|l| ledger.time(l.start)) } else { None };
        Self { ledger, steps, hints, soon: (length as f64 * SOON) as i64, backward }
    }

    #[must_use]
    pub fn of(&self, life: &Life) -> Category {
        let hint = self.hints.get(life.stack as usize).copied();
        let start = (life.start != NONE).then(|| self.ledger.time(life.start));
        let end = (life.end != NONE).then(|| self.ledger.time(life.end));
        // Whether it is held into the next step.
        let across = match (start, end) {
            (Some(start), Some(end)) => self.steps.at(start) != self.steps.at(end),
            (None, _) | (_, None) => true,
        };
        match (hint, start, end) {
            (Some(Hint::Module), ..) => Category::Parameters,
            (Some(Hint::Optimizer), ..) if across => Category::OptimizerState,
            (_, Some(start), Some(end)) if end - start <= self.soon => Category::Temporary,
            (Some(Hint::Optimizer), ..) => Category::Temporary,
            (Some(Hint::Backward), ..) => Category::Gradients,
            // Python's stack ends where the engine of autograd begins; without a stack other threads allocate, too.
            (None, Some(start), _) if self.backward.is_some_and(|b| start >= b) => Category::Gradients,
            (Some(Hint::Forward), ..) => Category::Activations,
            (None, None, _) => Category::Earlier,
            _ => Category::Other,
        }
    }
}

/// True if a stack shows that gradients are computed: `backward()` itself, or what autograd's engine calls.
fn goes_back(sites: &Sites, stack: u32) -> bool {
    sites.stacks.of(stack).any(|f| {
        let (file, function) = (&*f.file, &*f.function);
        file.contains("torch/autograd/__init__.py")
            || file.contains("torch/autograd/graph.py") && function == "_engine_run_backward"
            || file.contains("torch/_tensor.py") && function == "backward"
            || function.contains("torch::autograd::Engine")
            || function.starts_with("autograd::engine::")
    })
}

fn hint(sites: &Sites, stack: u32) -> Hint {
    for frame in sites.stacks.of(stack) {
        let (file, function) = (&*frame.file, &*frame.function);
        if file.contains("torch/optim/") || function.starts_with("Optimizer.step#") {
            return Hint::Optimizer;
        }
        if file.contains("torch/nn/modules/module.py") && matches!(function, "_apply" | "to" | "cuda" | "convert") {
            return Hint::Module;
        }
        if file.contains("torch/nn/") && function == "__init__" {
            return Hint::Module;
        }
        if function.contains("torch::autograd::Engine") || function == "_engine_run_backward" || function.starts_with("autograd::engine::")
        {
            return Hint::Backward;
        }
        if function == "forward" {
            return Hint::Forward;
        }
    }
    Hint::Nothing
}
