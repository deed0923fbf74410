//! Looks up built-in and user-defined recipes.

use super::recipe::{Recipe, RecipeKind};
use super::rows::RECIPES;
use super::user::User;

/// Returns a built-in recipe by its name.
pub fn built_in_recipe(id: &str) -> Option<&'static Recipe<'static>> {
    RECIPES.iter().find(|r| r.id == id)
}

/// Returns the profilers that built-in recipes start, in the order of their first recipes.
pub fn list_tools() -> Vec<&'static str> {
    let mut tools: Vec<&'static str> = Vec::new();
    for recipe in RECIPES {
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
        how: RecipeKind::User(user),
    }
}

/// Finds a recipe by its name among the built-in ones and the user's.
pub fn find_recipe<'a>(id: &str, users: &'a [User]) -> Option<Recipe<'a>> {
    built_in_recipe(id).copied().or_else(|| users.iter().find(|u| u.id == id).map(from_user))
}

/// Returns all recipes: the built-in ones, then the user's.
pub fn all_recipes(users: &[User]) -> impl Iterator<Item = Recipe<'_>> {
    RECIPES.iter().copied().chain(users.iter().map(from_user))
}
