//! User-defined recipes: argument lists with placeholders for the report and the range.

use super::pattern::Pattern;
use super::prepared::{Place, Prepared, Wanted, program_part};
use super::recipe::CommandBuilder;
use crate::analysis::fuzzy::nearest_match;
use crate::rerun::command::{CommandPart, PartId};
use crate::rerun::shell;

const OUTPUT: &str = "{OUTPUT}";
const RANGE: &str = "{RANGE}";

/// A user-defined recipe. Call [`check_recipe`](Self::check_recipe) before using it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub id: String,
    /// The profiler, one of [`list_tools`](super::list_tools).
    pub tool: String,
    pub about: String,
    /// When to use the recipe.
    pub when: String,
    pub cost: String,
    /// The command that precedes the program. `{OUTPUT}` is the report without extension, `{RANGE}` the NVTX range.
    pub argv: Vec<String>,
    /// Environment variables, with the same placeholders.
    pub env: Vec<(String, String)>,
    /// Reports: `{OUTPUT}` and its suffix, with at most one `*`.
    pub reports: Vec<String>,
}

/// Returns a word in braces that looks like a placeholder but is not one.
fn unknown_place(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(at, _)| {
        let inner = text[at + 1..].split_once('}')?.0;
        let place = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        // `%q{RANK}` and `${RANK}` belong to the profiler and the shell.
        let macro_of_others = text[..at].ends_with("%q") || text[..at].ends_with('$');
        (place && !macro_of_others && inner != "OUTPUT" && inner != "RANGE").then_some(inner)
    })
}

/// Replaces the placeholders in one pass, because the values may look like placeholders themselves.
fn fill_placeholders(text: &str, output: &str, range: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let places = [(OUTPUT, output), (RANGE, range)];
        if let Some((after, value)) = places.iter().find_map(|(place, value)| Some((from.strip_prefix(place)?, value))) {
            out.push_str(value);
            rest = after;
        } else {
            out.push('{');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out
}

impl CommandBuilder for User {
    fn prepare(&self, _id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        Ok(self.build(wanted, place))
    }

    fn range_refusal(&self) -> &'static str {
        "range: its argv has no {RANGE}"
    }
}

impl User {
    /// Checks that the recipe is valid, that its name is not one of a built-in recipe, and that its tool is one of
    /// `tools`; the error is one sentence with the recipe's name.
    pub fn check_recipe(&self, built_in: impl Fn(&str) -> bool, tools: &[&str]) -> Result<(), String> {
        let id = &self.id;
        let wrong = |what: String| Err(format!("recipe `{id}`: {what}"));
        if built_in(id) {
            return wrong("this is a built-in name; choose another".to_owned());
        }
        let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.starts_with('-') || !id.chars().all(fit) {
            return wrong("a name may contain letters, digits, - and _".to_owned());
        }
        if !tools.contains(&self.tool.as_str()) {
            let near = nearest_match(&self.tool, tools.iter().copied());
            let hint = near.map_or_else(|| format!("there are {}", tools.join(", ")), |n| format!("did you mean `{n}`?"));
            return wrong(format!("unknown tool `{}`; {hint}", self.tool));
        }
        if self.argv.first().is_none_or(String::is_empty) {
            return wrong("`argv` has no program: write [\"nsys\", \"profile\", …, \"-o\", \"{OUTPUT}\"]".to_owned());
        }
        let texts = self.argv.iter().chain(self.env.iter().map(|(_, v)| v)).chain(&self.reports);
        if let Some(place) = texts.clone().find_map(|t| unknown_place(t)) {
            return wrong(format!("unknown placeholder {{{place}}}; there are {OUTPUT} and {RANGE}"));
        }
        if let Some((name, _)) = self.env.iter().find(|(n, _)| n.is_empty() || n.contains(['=', '\0'])) {
            return wrong(format!("{name:?} is not a valid variable name"));
        }
        if texts.clone().any(|t| t.contains('\0')) {
            return wrong("a word contains a NUL byte".to_owned());
        }
        if let Some(report) =
            self.reports.iter().find(|r| !r.starts_with(OUTPUT) || r.matches('*').count() > 1 || r.contains("..") || r.contains(RANGE))
        {
            return wrong(format!("report {report:?}: write {OUTPUT} and what follows it, with at most one *"));
        }
        if !self.reports.is_empty() && !self.argv.iter().chain(self.env.iter().map(|(_, v)| v)).any(|w| w.contains(OUTPUT)) {
            return wrong(format!("nothing tells the profiler where the report goes: `argv` or `env` must contain {OUTPUT}"));
        }
        Ok(())
    }

    /// Returns true if the recipe uses an NVTX range.
    pub(super) fn needs_range(&self) -> bool {
        self.argv.iter().chain(self.env.iter().map(|(_, v)| v)).any(|w| w.contains(RANGE))
    }

    fn build(&self, wanted: &Wanted, place: &Place<'_>) -> Prepared {
        // nsys and ncu expand macros in report names.
        let macros = matches!(self.tool.as_str(), "nsys" | "ncu");
        let escaped = if macros { shell::output_path(place.output) } else { place.output.to_owned() };
        let range = wanted.range.as_deref().unwrap_or_default();
        let words: Vec<String> = self.argv.iter().map(|w| fill_placeholders(w, &escaped, range)).collect();
        let pattern = |report: &String| {
            let rest = report.strip_prefix(OUTPUT).unwrap_or(report);
            match rest.split_once('*') {
                None => Pattern::exact(format!("{}{rest}", place.stem)),
                Some((before, after)) => Pattern::with_wildcard(format!("{}{before}", place.stem), after),
            }
        };
        Prepared {
            parts: vec![
                CommandPart { id: PartId::Tool, words, why: format!("Your own recipe `{}`.", self.id) },
                program_part(&wanted.program),
            ],
            env: self.env.iter().map(|(n, v)| (n.clone(), fill_placeholders(v, place.output, range))).collect(),
            reports: self.reports.iter().map(pattern).collect(),
            ..Prepared::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rerun::recipes::{built_in_recipe, find_recipe, list_tools};

    fn built_in(id: &str) -> bool {
        built_in_recipe(id).is_some()
    }

    fn mine() -> User {
        User {
            id: "mine".into(),
            tool: "nsys".into(),
            argv: ["nsys", "profile", "-p", "{RANGE}", "-o", "{OUTPUT}.%q{RANK}"].map(str::to_owned).to_vec(),
            env: vec![("LOG".into(), "{OUTPUT}.log".into())],
            reports: vec!["{OUTPUT}.*.nsys-rep".into()],
            ..User::default()
        }
    }

    #[test]
    fn places_are_filled_and_the_program_comes_last() {
        let user = mine();
        user.check_recipe(built_in, &list_tools()).unwrap();
        let wanted = Wanted { program: vec!["./a b".into()], output: "d/r%".into(), range: Some("{OUTPUT}".into()), ..Wanted::default() };
        let prepared = find_recipe("mine", std::slice::from_ref(&user)).unwrap().prepare(&wanted).unwrap();
        assert_eq!(prepared.argv(), ["nsys", "profile", "-p", "{OUTPUT}", "-o", "d/r%%.%q{RANK}", "./a b"]);
        assert_eq!(prepared.env, [("LOG".to_owned(), "d/r%.log".to_owned())]);
        assert!(prepared.reports[0].matches("r%.3.nsys-rep"));
        assert!(
            find_recipe("mine", std::slice::from_ref(&user))
                .unwrap()
                .prepare(&Wanted { range: None, ..wanted })
                .unwrap_err()
                .contains("needs the name of an NVTX range")
        );
        assert!(find_recipe("mine", &[user]).is_some() && find_recipe("exact", &[]).is_some() && find_recipe("mine", &[]).is_none());
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_name() {
        let refused = |change: fn(&mut User)| {
            let mut user = mine();
            change(&mut user);
            user.check_recipe(built_in, &list_tools()).unwrap_err()
        };
        assert_eq!(refused(|u| u.id = "exact".into()), "recipe `exact`: this is a built-in name; choose another");
        assert_eq!(refused(|u| u.tool = "nsy".into()), "recipe `mine`: unknown tool `nsy`; did you mean `nsys`?");
        assert!(refused(|u| u.argv.clear()).contains("has no program"));
        assert!(refused(|u| u.argv.push("{OUT}".into())).contains("unknown placeholder {OUT}"));
        assert!(refused(|u| u.reports.push("other.nsys-rep".into())).contains("{OUTPUT} and what follows"));
        assert!(refused(|u| u.reports.push("{OUTPUT}/../x".into())).contains("at most one *"));
        assert!(refused(|u| u.env.push(("A=B".into(), String::new()))).contains("is not a valid variable name"));
        assert!(refused(|u| u.id = "a b".into()).contains("letters, digits"));
    }
}
