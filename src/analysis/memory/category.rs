//! Purpose of memory, inferred from the allocating code and the lifetime because `PyTorch` does not record it. The
//! heuristics are the usual ones; they misclassify parameters that are created in an unusual way.

use super::ledger::{Ledger, Life};
use super::sites::Sites;
use super::steps::Steps;
use crate::model::api_call::NONE;

/// Purpose of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Allocated before the report began, by code that is not recorded; usually parameters and optimizer state.
    Earlier,
    Parameters,
    Gradients,
    OptimizerState,
    /// Allocated in the forward pass, and freed during or after the backward pass.
    Activations,
    /// Freed shortly after allocation.
    Temporary,
    Other,
}

impl Category {
    pub fn display_name(self) -> &'static str {
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

/// Purpose of an allocation as suggested by its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    Module,
    Optimizer,
    Backward,
    Forward,
    Nothing,
}

/// Determines the purpose of each allocation.
pub struct Categories<'a> {
    ledger: &'a Ledger,
    steps: &'a Steps,
    /// Purpose suggested by each stack, indexed by stack.
    hints: Vec<Hint>,
    /// Maximum lifetime of a temporary allocation, ns.
    soon: i64,
    /// Time of the first stack that contains autograd's engine; `None` if there is none.
    backward: Option<i64>,
}

/// Maximum lifetime of a temporary allocation, as a share of a step.
const SOON: f64 = 0.05;

impl<'a> Categories<'a> {
    pub fn new(sites: &Sites, ledger: &'a Ledger, steps: &'a Steps) -> Self {
        let hints = (0..u32::try_from(sites.stacks.len()).unwrap_or(0)).map(|stack| stack_hint(sites, stack)).collect();
        let length = steps.median_length().or_else(|| ledger.span().map(|s| s.1 - s.0)).unwrap_or(0);
        let proof: Vec<bool> = (0..u32::try_from(sites.stacks.len()).unwrap_or(0)).map(|stack| goes_back(sites, stack)).collect();
        let seen = |l: &&Life| l.start != NONE && proof.get(l.stack as usize) == Some(&true);
        let backward = if proof.contains(&true) { ledger.lives.iter().find(seen).map(|l| ledger.event_time(l.start)) } else { None };
        Self { ledger, steps, hints, soon: (length as f64 * SOON) as i64, backward }
    }

    pub fn classify_life(&self, life: &Life) -> Category {
        let hint = self.hints.get(life.stack as usize).copied();
        let start = (life.start != NONE).then(|| self.ledger.event_time(life.start));
        let end = (life.end != NONE).then(|| self.ledger.event_time(life.end));
        // True if the memory is held beyond the step in which it was allocated.
        let across = match (start, end) {
            (Some(start), Some(end)) => self.steps.step_at(start) != self.steps.step_at(end),
            (None, _) | (_, None) => true,
        };
        match (hint, start, end) {
            (Some(Hint::Module), ..) => Category::Parameters,
            (Some(Hint::Optimizer), ..) if across => Category::OptimizerState,
            (_, Some(start), Some(end)) if end - start <= self.soon => Category::Temporary,
            (Some(Hint::Optimizer), ..) => Category::Temporary,
            (Some(Hint::Backward), ..) => Category::Gradients,
            // Allocations by autograd's engine have no Python stack, but neither do some by other threads. A missing
            // stack therefore suggests gradients only once a stack has shown that `backward()` ran.
            (None, Some(start), _) if self.backward.is_some_and(|b| start >= b) => Category::Gradients,
            (Some(Hint::Forward), ..) => Category::Activations,
            (None, None, _) => Category::Earlier,
            _ => Category::Other,
        }
    }
}

/// Returns true if a stack computes gradients: it contains `backward()` itself, or a function called by autograd's
/// engine.
fn goes_back(sites: &Sites, stack: u32) -> bool {
    sites.stacks.frames_of(stack).any(|f| {
        let (file, function) = (&*f.file, &*f.function);
        file.contains("torch/autograd/__init__.py")
            || file.contains("torch/autograd/graph.py") && function == "_engine_run_backward"
            || file.contains("torch/_tensor.py") && function == "backward"
            || function.contains("torch::autograd::Engine")
            || function.starts_with("autograd::engine::")
    })
}

fn stack_hint(sites: &Sites, stack: u32) -> Hint {
    for frame in sites.stacks.frames_of(stack) {
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
