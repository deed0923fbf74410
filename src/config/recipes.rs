//! The user's recording recipes (`[recipes.NAME]`), as plain data that is interpreted when used.

use super::{parse_string, unknown_word};
use std::collections::BTreeMap;

/// A recipe, as written in the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub tool: String,
    pub about: String,
    /// When to use the recipe.
    pub when: String,
    pub cost: String,
    /// Profiler command that precedes the program.
    pub argv: Vec<String>,
    /// Environment variables, sorted by name.
    pub env: Vec<(String, String)>,
    /// Reports that the recipe writes.
    pub reports: Vec<String>,
}

const KEYS: [&str; 7] = ["tool", "about", "when", "cost", "argv", "env", "reports"];

/// Parses the table `recipes`. The error is one sentence with the location.
pub(super) fn parse(value: toml::Value) -> Result<BTreeMap<String, Written>, String> {
    let toml::Value::Table(recipes) = value else {
        return Err("`recipes` must contain tables: [recipes.NAME]".to_owned());
    };
    recipes.into_iter().map(|(name, value)| Ok((name.clone(), parse_recipe(&name, value)?))).collect()
}

fn parse_recipe(name: &str, value: toml::Value) -> Result<Written, String> {
    let place = |key: &str| format!("recipes.{name}.{key}");
    let toml::Value::Table(table) = value else {
        return Err(format!("`recipes.{name}` must be a table: [recipes.{name}]"));
    };
    let mut written = Written::default();
    for (key, value) in table {
        let place = place(&key);
        match key.as_str() {
            "tool" => written.tool = parse_string(&place, value)?,
            "about" => written.about = parse_string(&place, value)?,
            "when" => written.when = parse_string(&place, value)?,
            "cost" => written.cost = parse_string(&place, value)?,
            "argv" => written.argv = parse_list(&place, value)?,
            "reports" => written.reports = parse_list(&place, value)?,
            "env" => {
                let toml::Value::Table(env) = value else {
                    return Err(format!("`{place}` must be a table: {{ NAME = \"value\" }}"));
                };
                written.env = env
                    .into_iter()
                    .map(|(variable, value)| Ok((variable.clone(), parse_string(&format!("{place}.{variable}"), value)?)))
                    .collect::<Result<_, String>>()?;
            }
            unknown => return Err(format!("recipes.{name}: {}", unknown_word("key", unknown, &KEYS))),
        }
    }
    for (key, missing) in [("tool", written.tool.is_empty()), ("argv", written.argv.is_empty())] {
        if missing {
            return Err(format!("`{}` is missing", place(key)));
        }
    }
    Ok(written)
}

fn parse_list(place: &str, value: toml::Value) -> Result<Vec<String>, String> {
    match value {
        toml::Value::Array(list) => list.into_iter().map(|v| parse_string(place, v)).collect(),
        other => Err(format!("`{place}` must be a list of strings, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn a_recipe_is_read_and_its_mistakes_are_named() {
        let text = "[recipes.mine]\ntool = \"nsys\"\nabout = \"a\"\nargv = [\"nsys\", \"profile\"]\nenv = { B = \"2\", A = \"1\" }\nreports = [\"{OUTPUT}.nsys-rep\"]\n";
        let config = Config::parse(text).unwrap();
        let mine = &config.recipes["mine"];
        assert_eq!((mine.tool.as_str(), mine.argv.len(), mine.env.len(), mine.reports.len()), ("nsys", 2, 2, 1));
        for (text, error) in [
            ("recipes = 3", "`recipes` must contain tables: [recipes.NAME]"),
            ("recipes.a = 3", "`recipes.a` must be a table: [recipes.a]"),
            ("[recipes.a]\ntool = \"nsys\"", "`recipes.a.argv` is missing"),
            ("[recipes.a]\nargv = [\"x\"]", "`recipes.a.tool` is missing"),
            ("[recipes.a]\nargv = \"nsys profile\"", "`recipes.a.argv` must be a list of strings, not \"nsys profile\""),
            ("[recipes.a]\nargv = [1]", "`recipes.a.argv` must be a quoted string, not 1"),
            ("[recipes.a]\nenv = { A = 1 }", "`recipes.a.env.A` must be a quoted string, not 1"),
            ("[recipes.a]\nargs = []", "recipes.a: unknown key `args`; did you mean `argv`?"),
        ] {
            assert_eq!(Config::parse(text).unwrap_err(), error, "{text}");
        }
    }
}
