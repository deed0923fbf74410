//! Recipes: commands that record a program, for every profiler. A recipe is a row in [`RECIPES`], or a table in the
//! user's configuration.
//!
//! A recipe is prepared for a program. The result has everything that a runner needs: the command's words with
//! explanations, environment variables, files to write first, expected reports, and the steps of a guided session.
//! Nothing here starts or writes anything.

mod all;
mod amd;
mod ncu;
mod nsys;
mod pattern;
mod prepared;
mod ranks;
mod recipe;
mod rows;
mod servers;
mod size;
mod steps;
mod torch;
mod trace;
pub mod user;

pub use all::{all_recipes, built_in_recipe, find_recipe, list_tools};
pub use pattern::Pattern;
pub use prepared::{Prepared, Wanted};
pub use recipe::Recipe;
pub use rows::RECIPES;
pub use size::expected_bytes;
pub use steps::{RecipeStep, Role};
pub use torch::{NO_TORCH, TRACE_SECONDS};
pub use user::User;

#[cfg(test)]
mod tests;
