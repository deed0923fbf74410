//! `warpscope recipes`: commands that record a program.

use super::failure::Failure;
use super::jobs::CheckJobsArgs;
use super::print;
use super::rerun::RerunFormat;
use crate::analysis::fuzzy::nearest_match;
use crate::config::Config;
use crate::model::text::escape_unsafe;
use crate::report;
use crate::report::document::Renderer;
use crate::rerun::recipes::{Prepared, Recipe, User, Wanted, list_tools};
use clap::Subcommand;
use std::io::IsTerminal;

/// `warpscope recipes check`.
#[derive(Debug, Subcommand)]
pub enum RecipesCommand {
    /// Check rocprofv3's input files: what their jobs really select, and what breaks in which release.
    Check(CheckJobsArgs),
}

/// `warpscope recipes`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RecipesArgs {
    #[command(subcommand)]
    pub command: Option<RecipesCommand>,
    /// The recipe; without one they are listed.
    pub recipe: Option<String>,
    /// NVTX range to record, for the recipe that needs one: NAME, or NAME@DOMAIN; an @ of the name itself is written \\@.
    #[arg(long, value_name = "NAME", requires = "recipe")]
    pub range: Option<String>,
    /// Kernel to profile, for recipes of ncu (exact function name) and rocprofv3 (beginning of the name that it prints).
    #[arg(long, value_name = "NAME", requires = "recipe")]
    pub kernel: Option<String>,
    /// Launches (TensorRT-LLM: iterations) to skip first.
    #[arg(long, value_name = "N", requires = "recipe")]
    pub launch_skip: Option<u64>,
    /// Launches (TensorRT-LLM: iterations) to profile.
    #[arg(long, value_name = "N", requires = "recipe")]
    pub launch_count: Option<u64>,
    /// Seconds that PyTorch traces [default: 60].
    #[arg(long, value_name = "N", requires = "recipe")]
    pub seconds: Option<u64>,
    /// Put the profiler between the launcher (torchrun, mpirun, mpiexec, srun) and the program: one report per rank.
    #[arg(long, requires = "recipe")]
    pub ranks: bool,
    /// Report to write, without its suffix [default: report].
    #[arg(long, short = 'o', value_name = "PATH")]
    pub output: Option<String>,
    /// Output format [default: text on a terminal, else shell].
    #[arg(long)]
    pub format: Option<RerunFormat>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "CMD")]
    pub program: Vec<String>,
}

/// Returns the user's own recipes after checking them.
pub fn user_recipes(config: &Config) -> Result<Vec<User>, Failure> {
    let users: Vec<User> = config
        .recipes
        .iter()
        .map(|(id, r)| User {
            id: id.clone(),
            tool: r.tool.clone(),
            about: r.about.clone(),
            when: r.when.clone(),
            cost: r.cost.clone(),
            argv: r.argv.clone(),
            env: r.env.clone(),
            reports: r.reports.clone(),
        })
        .collect();
    users
        .iter()
        .try_for_each(|u| u.check_recipe(|id| crate::rerun::recipes::built_in_recipe(id).is_some(), &list_tools()))
        .map_err(|e| Failure::wrong(format!("configuration: {e}")))?;
    Ok(users)
}

/// Finds a recipe by name; the error suggests the closest match.
pub fn find_recipe<'a>(id: &str, users: &'a [User]) -> Result<Recipe<'a>, Failure> {
    crate::rerun::recipes::find_recipe(id, users).ok_or_else(|| {
        let near = nearest_match(id, crate::rerun::recipes::all_recipes(users).map(|r| r.id));
        Failure::wrong(near.map_or_else(
            || format!("unknown recipe `{id}`; `warpscope recipes` lists them"),
            |n| format!("unknown recipe `{id}`; did you mean `{n}`?"),
        ))
    })
}

/// Converts the arguments into the input of a recipe.
pub fn to_wanted(args: &RecipesArgs) -> Wanted {
    Wanted {
        program: args.program.clone(),
        output: args.output.clone().unwrap_or_else(|| "report".to_owned()),
        range: args.range.clone(),
        kernel: args.kernel.clone(),
        skip: args.launch_skip,
        count: args.launch_count,
        seconds: args.seconds,
        survey: None,
        measure: Vec::new(),
        only: Vec::new(),
        stalls: Vec::new(),
        ranks: args.ranks,
        directory: std::env::current_dir().ok().and_then(|d| d.into_os_string().into_string().ok()),
        stacks: None,
        stack_rate: None,
    }
}

/// Returns the error for a recipe that cannot be prepared.
pub fn prepare_error(recipe: &Recipe<'_>, wanted: &Wanted, error: &str) -> Failure {
    let hint = if recipe.needs_range && wanted.range.is_none() { ": --range NAME (or NAME@DOMAIN)" } else { "" };
    Failure::wrong(format!("{error}{hint}"))
}

fn list_recipes(users: &[User]) -> Result<(), Failure> {
    let width = crate::rerun::recipes::all_recipes(users).map(|r| r.id.len()).max().unwrap_or(0);
    let lines: Vec<String> = crate::rerun::recipes::all_recipes(users)
        .flat_map(|r| {
            let said = |word: &str, text: &str| (!text.is_empty()).then(|| format!("{:width$}    {word}: {}", "", escape_unsafe(text)));
            let head = [escape_unsafe(r.about), "your own recipe".into()].into_iter().find(|a| !a.is_empty()).unwrap_or_default();
            [Some(format!("{:width$}  {}: {head}", r.id, r.tool)), said("when", r.when), said("cost", r.cost)].into_iter().flatten()
        })
        .collect();
    print::lines(&lines)
}

/// `warpscope recipes`: prints a command, or lists all recipes.
pub fn print_recipes(args: &RecipesArgs, config: &Config) -> Result<(), Failure> {
    let users = user_recipes(config)?;
    let Some(id) = &args.recipe else {
        return match args.format {
            Some(RerunFormat::Json) => print::to_stdout(|out| report::recipes::write_list(out, &users)),
            _ => list_recipes(&users),
        };
    };
    let recipe = find_recipe(id, &users)?;
    let wanted = to_wanted(args);
    let prepared = recipe.prepare(&wanted).map_err(|e| prepare_error(&recipe, &wanted, &e))?;
    show_recipe(&recipe, &prepared, args)
}

fn show_recipe(recipe: &Recipe<'_>, prepared: &Prepared, args: &RecipesArgs) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal();
    let format = args.format.unwrap_or(if terminal { RerunFormat::Text } else { RerunFormat::Shell });
    if format == RerunFormat::Shell {
        // Print notes to stderr, because scripts may run the command without printing it.
        for note in &prepared.notes {
            print::note(&format!("note: {note}"));
        }
    }
    let folder = args.output.as_deref().and_then(|o| o.rsplit_once('/')).map(|(f, _)| f);
    print::to_stdout(|out| match format {
        RerunFormat::Json => report::recipes::write_json(out, recipe, prepared),
        RerunFormat::Shell => report::recipes::write_shell(out, prepared, folder, terminal),
        RerunFormat::Script => report::recipes::write_script(out, recipe, prepared, folder, terminal),
        RerunFormat::Text => report::recipes::document(recipe, prepared).write(out, Renderer::Text, Some(print::page_width())),
        RerunFormat::Md => report::recipes::document(recipe, prepared).write(out, Renderer::Markdown, None),
        RerunFormat::Html => report::recipes::document(recipe, prepared).write(out, Renderer::Html, None),
    })
}
