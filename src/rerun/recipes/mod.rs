//! Recipes: commands that record a program, for every profiler. A recipe is a row of its
//! profiler's file, or a table in the user's configuration.
//!
//! A recipe is prepared for a program. The result has everything that a runner needs: the command's words with
//! explanations, environment variables, files to write first, expected reports, and the steps of a guided session.
//! Nothing here starts or writes anything.

mod amd;
mod ncu;
mod nsys;
mod pattern;
mod prepared;
mod ranks;
mod recipe;
mod servers;
mod size;
mod steps;
mod torch;
mod trace;
pub mod user;

pub use pattern::Pattern;
pub use prepared::{Prepared, Wanted};
pub use recipe::Recipe;
pub use size::expected_bytes;
pub use steps::{RecipeStep, Role};
pub use torch::{NO_TORCH, TRACE_SECONDS};
pub use user::User;

/// Recipes of each profiler, and of servers.
const BY_PROFILER: [&[Recipe<'static>]; 6] = [trace::RECIPES, nsys::RECIPES, ncu::RECIPES, torch::RECIPES, amd::RECIPES, servers::RECIPES];

/// All built-in recipes.
pub fn built_in_recipes() -> impl Iterator<Item = &'static Recipe<'static>> {
    BY_PROFILER.into_iter().flatten()
}

/// Returns a built-in recipe by its name.
pub fn built_in_recipe(id: &str) -> Option<&'static Recipe<'static>> {
    built_in_recipes().find(|r| r.id == id)
}

/// Returns the profilers that built-in recipes start, in the order of their first recipes.
pub fn list_tools() -> Vec<&'static str> {
    let mut tools: Vec<&'static str> = Vec::new();
    for recipe in built_in_recipes() {
        if !tools.contains(&recipe.tool) {
            tools.push(recipe.tool);
        }
    }
    tools
}

fn from_user(user: &User) -> Recipe<'_> {
    Recipe {
        id: &user.id,
        tool: &user.tool,
        about: &user.about,
        when: &user.when,
        cost: &user.cost,
        needs_range: user.needs_range(),
        builder: user,
    }
}

/// Finds a recipe by its name among the built-in ones and the user's.
pub fn find_recipe<'a>(id: &str, users: &'a [User]) -> Option<Recipe<'a>> {
    built_in_recipe(id).copied().or_else(|| users.iter().find(|u| u.id == id).map(from_user))
}

/// Returns all recipes: the built-in ones, then the user's.
pub fn all_recipes(users: &[User]) -> impl Iterator<Item = Recipe<'_>> {
    // A `Recipe<'static>` as one that lives as long as the user's.
    fn shorten<'a>(recipe: &Recipe<'static>) -> Recipe<'a> {
        *recipe
    }
    built_in_recipes().map(shorten).chain(users.iter().map(from_user))
}

#[cfg(test)]
mod tests;
