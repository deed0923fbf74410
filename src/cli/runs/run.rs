//! `warpscope run`: chooses a profiler and a recipe, checks the machine, and starts the run.

use super::super::failure::{Failure, UNABLE};
use super::super::global_args::GlobalArgs;
use super::super::values;
use super::super::values::check_kernel;
use super::super::values::parse_percent;
use super::super::which_args::Which;
use super::super::{event_loop, print, recipes};
use super::headless::{self, Holder};
use super::preflight::{format_check, preflight_checks};
use super::{start, tty};
use crate::config::Config;
use crate::launch::doctor::{Check, State};
use crate::launch::{locate_tools, tracer};
use crate::library::{GuidedStep, Library, LibraryError, NewRun};
use crate::rerun::recipes::{Prepared, Recipe, Role, User, Wanted, built_in_recipes, list_tools};
use crate::rerun::shell;
use clap::builder::NonEmptyStringValueParser;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// `warpscope run`.
#[derive(Clone, Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct RunArgs {
    /// Profiler: trace (built in), nsys, ncu, torch, rocprofv3 [default: trace if libcupti is found, else nsys, else ncu].
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Recipe, by its word in `warpscope recipes` [default: trace; of nsys exact, of ncu scan].
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// Shorthand for `--recipe trace-survey`: counters of the kernels that take the most time, without ncu; PERCENT of the run's time may be added [default: 3].
    #[arg(long, conflicts_with_all = ["recipe", "tool"], value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = parse_percent)]
    pub survey: Option<f64>,
    /// Measure counters of KERNEL's next launches while the program runs, or with #N of its N-th launch from 1, without ncu; may be repeated.
    #[arg(long, value_name = "KERNEL[#N]", value_parser = check_kernel)]
    pub measure: Vec<String>,
    /// Sample the stall reasons of KERNEL's first launch, or with #N of its N-th from 1, instruction by instruction, without ncu; may be repeated.
    #[arg(long, value_name = "KERNEL[#N]", value_parser = check_kernel)]
    pub stalls: Vec<String>,
    #[command(flatten)]
    pub which: Which,
    /// Built-in tracer only: stacks of the threads that launch, of Python code if the program has an interpreter and else of native code (auto, the default), of either, of Python and of native code where a thread runs no Python (both), or none.
    #[arg(long, value_name = "WHICH", value_parser = ["auto", "python", "native", "both", "off"])]
    pub stacks: Option<String>,
    /// Built-in tracer only: samples of each of these threads a second [default: 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub stack_rate: Option<u32>,
    /// NVTX range to record, for the recipe that needs one: NAME, or NAME@DOMAIN.
    #[arg(long, value_name = "NAME")]
    pub range: Option<String>,
    /// Only this kernel, by its exact name, for recipes that choose launches.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub kernel: Option<String>,
    /// Launches to skip first.
    #[arg(long, value_name = "N")]
    pub launch_skip: Option<u64>,
    /// Launches to profile.
    #[arg(long, value_name = "N")]
    pub launch_count: Option<u64>,
    /// Seconds that the tracer or PyTorch's profiler records.
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
    /// Under mpirun, srun or torchrun: one report per rank.
    #[arg(long)]
    pub ranks: bool,
    /// Report to write, without its suffix [default: in the run library].
    #[arg(long, short = 'o', value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Tag of the run; may be repeated.
    #[arg(long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tag: Vec<String>,
    /// Detach: the run continues even if this ssh session ends; `warpscope attach` shows it.
    #[arg(long, conflicts_with = "tty")]
    pub detach: bool,
    /// Give the terminal to the program, for prompts, full-screen output or a debugger. Its output is not kept.
    #[arg(long)]
    pub tty: bool,
    /// Without the explorer: output to stderr, the reports' names to stdout.
    #[arg(long)]
    pub plain: bool,
    /// Run even if preflight checks found a blocker.
    #[arg(long)]
    pub force: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub program: Vec<String>,
}

/// Environment variable: `off` excludes the built-in tracer from the automatic choice of a profiler. The user can still
/// choose the tracer explicitly.
const TRACER: &str = "WARPSCOPE_TRACER";

/// Returns true if a profiler is available. PyTorch's profiler belongs to the program's own Python installation: if it
/// is missing, the run reports that.
fn has_tool(tool: &str, nsys: Option<&Path>) -> bool {
    match tool {
        // The given path may not exist.
        "nsys" => locate_tools::find_nsys(nsys).iter().any(|p| p.is_file()),
        "torch" => true,
        "trace" => !tracer::OBJECT.is_empty(),
        other => locate_tools::find_tool(other).is_some(),
    }
}

/// Returns the requested recipe, or by default the best one for this machine, and a message about the choice.
fn choose_recipe<'a>(args: &RunArgs, nsys: Option<&Path>, users: &'a [User]) -> Result<(Recipe<'a>, Option<String>), Failure> {
    if args.survey.is_some() {
        return Ok((recipes::find_recipe("trace-survey", users)?, None));
    }
    if !args.measure.is_empty() || !args.stalls.is_empty() || args.stacks.is_some() || args.stack_rate.is_some() {
        let recipe = recipes::find_recipe(args.recipe.as_deref().unwrap_or("trace"), users)?;
        if recipe.tool != "trace" || args.tool.as_deref().is_some_and(|t| t != "trace") {
            return Err(Failure::wrong(
                "only the built-in tracer measures and samples stacks while the program runs: leave --tool out, or take one of its recipes",
            ));
        }
        return Ok((recipe, None));
    }
    if let Some(id) = &args.recipe {
        let recipe = recipes::find_recipe(id, users)?;
        if let Some(tool) = args.tool.as_deref().filter(|t| *t != recipe.tool) {
            return Err(Failure::wrong(format!("recipe `{id}` is for {}, not for {tool}", recipe.tool)));
        }
        return Ok((recipe, None));
    }
    if let Some(tool) = &args.tool {
        let first = built_in_recipes().find(|r| r.tool == tool).copied();
        return Ok((
            first.ok_or_else(|| Failure::wrong(format!("unknown profiler `{tool}`: the profilers are {}", list_tools().join(", "))))?,
            None,
        ));
    }
    // The kernel drivers' device nodes identify the GPU vendor.
    if Path::new("/dev/kfd").exists() && !Path::new("/dev/nvidiactl").exists() {
        if has_tool("rocprofv3", None) {
            return Ok((recipes::find_recipe("rocprof", users)?, None));
        }
        let text =
            "rocprofv3 was not found on this machine: install rocprofiler-sdk (`warpscope doctor` shows where warpscope looks for it)";
        return Err(Failure::unable(text.to_owned()));
    }
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let wanted = std::env::var_os(TRACER).is_none_or(|v| v != "off");
    if wanted && has_tool("trace", None) && !tracer::find_libraries(Path::new("/"), &args.program, variable).is_empty() {
        return Ok((recipes::find_recipe("trace", users)?, None));
    }
    if has_tool("nsys", nsys) {
        return Ok((recipes::find_recipe("exact", users)?, None));
    }
    if has_tool("ncu", None) {
        let scan = recipes::find_recipe("scan", users)?;
        return Ok((scan, Some(format!("nsys is not installed, so ncu scans instead: {}; cost: {}", scan.about, scan.cost))));
    }
    if has_tool("rocprofv3", None) {
        return Ok((recipes::find_recipe("rocprof", users)?, Some("neither nsys nor ncu is installed, so rocprofv3 records".to_owned())));
    }
    if wanted && has_tool("trace", None) {
        let said = "neither nsys nor ncu is installed, and no libcupti was found: the built-in tracer works if the program brings its own libcupti, as PyTorch does";
        return Ok((recipes::find_recipe("trace", users)?, Some(said.to_owned())));
    }
    let text =
        "neither nsys nor ncu was found on this machine: install one of them (`warpscope doctor` shows where warpscope looks for them)";
    Err(Failure::unable(text.to_owned()))
}

/// Facts about the run that are known before it has a number.
struct Chosen<'a> {
    recipe: Recipe<'a>,
    args: &'a RunArgs,
    directory: PathBuf,
    nsys: Option<PathBuf>,
}

impl Chosen<'_> {
    fn prepare_recipe(&self, output: &str) -> Result<Prepared, Failure> {
        let wanted = Wanted {
            program: self.args.program.clone(),
            output: output.to_owned(),
            range: self.args.range.clone(),
            kernel: self.args.kernel.clone(),
            skip: self.args.launch_skip,
            count: self.args.launch_count,
            seconds: self.args.seconds,
            ranks: self.args.ranks,
            measure: self.args.measure.clone(),
            stalls: self.args.stalls.clone(),
            only: self.args.which.to_args(),
            stacks: self.args.stacks.clone(),
            stack_rate: self.args.stack_rate,
            survey: self.args.survey.map(values::to_thousandths),
            directory: self.directory.to_str().map(str::to_owned),
        };
        let prepared = self.recipe.prepare(&wanted).map_err(|e| recipes::prepare_error(&self.recipe, &wanted, &e))?;
        match &prepared.by_hand {
            Some(why) => {
                Err(Failure::wrong(format!("{why}; `warpscope recipes {}` prints the command to complete by hand", self.recipe.id)))
            }
            None => Ok(prepared),
        }
    }

    /// Completes the run once its folder is known.
    fn complete_run(&self, folder: &Path) -> Result<NewRun, LibraryError> {
        let refused = LibraryError::Refused;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |source| LibraryError::File { path, source }
        };
        let output = match &self.args.output {
            // Remove the extension, because the profiler would append another one.
            Some(path) => {
                let whole = path.extension().is_some_and(|e| e == "nsys-rep" || e == "ncu-rep");
                self.directory.join(if whole { path.with_extension("") } else { path.clone() })
            }
            None => folder.join(self.recipe.tool).join("report"),
        };
        let place = output.parent().unwrap_or(folder).to_owned();
        if self.args.output.is_none() {
            std::fs::create_dir_all(&place).map_err(failed(&place))?;
        } else if !place.is_dir() {
            return Err(refused(format!("the folder {} does not exist", place.display())));
        }
        let name = output.to_str().ok_or_else(|| refused(format!("{}: the profilers accept only UTF-8 names", output.display())))?;
        let prepared = self.prepare_recipe(name).map_err(|e| refused(e.text))?;
        let inside = |name: &str| place.join(name);
        let patterns: Vec<String> = prepared.reports.iter().map(|p| inside(&p.to_string()).display().to_string()).collect();
        // If the file exists, nsys writes to another path, and ncu does not write at all.
        if let Some(taken) =
            prepared.reports.iter().filter(|p| p.tail.is_none()).map(|p| inside(&p.head)).find(|p| p.symlink_metadata().is_ok())
        {
            return Err(refused(format!("{} already exists; choose another name with -o", taken.display())));
        }
        let mut support = Vec::new();
        for (name, text) in &prepared.files {
            let path = inside(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(failed(parent))?;
            }
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed(&path))?;
            file.write_all(text.as_bytes()).map_err(failed(&path))?;
            support.push(path);
        }
        let mut argv = prepared.argv();
        super::files::find_tool(&mut argv, self.nsys.as_deref());
        let mut notes = prepared.notes.clone();
        notes.extend(super::files::drop_unsupported(&mut argv, self.args.program.len(), self.recipe.tool, self.args.force)?);
        Ok(NewRun {
            tool: self.recipe.tool.to_owned(),
            recipe: Some(self.recipe.id.to_owned()),
            argv,
            program: self.args.program.clone(),
            env: prepared.env.clone(),
            directory: self.directory.clone(),
            patterns,
            support,
            tags: self.args.tag.clone(),
            notes: notes.join("\n"),
            steps: user_steps(&prepared),
            ..NewRun::default()
        })
    }
}

/// Returns the steps for the user to perform while the server runs.
fn user_steps(prepared: &Prepared) -> Vec<GuidedStep> {
    let todo = prepared.steps.iter().filter(|s| s.role != Role::Start);
    todo.map(|s| GuidedStep {
        role: s.role.word().to_owned(),
        what: s.what.clone(),
        argv: s.argv.clone(),
        why: s.why.clone(),
        left_out: false,
    })
    .collect()
}

/// Prints the user's steps for a run without the explorer.
fn tell_steps(steps: &[GuidedStep]) {
    for (i, s) in steps.iter().enumerate() {
        let command = if s.argv.is_empty() { String::new() } else { format!(" {}", shell::command_line(&s.argv)) };
        print::error(&format!("step {}, in another terminal: {}{command}   ({}: {})", i + 1, s.what, s.role, s.why));
    }
}

/// Prints the results of preflight checks; blockers are errors unless `force` is set.
fn look_before(found: &[Check], force: bool) -> Result<(), Failure> {
    for check in found {
        let word = if check.state == State::Blocks && !force { "blocked" } else { "warning" };
        print::error(&format!("{word}: {}", format_check(check)));
    }
    if !force && found.iter().any(|c| c.state == State::Blocks) {
        return Err(Failure {
            text: "nothing was run; --force runs it anyway".to_owned(),
            code: UNABLE,
            reason: crate::cli::reason::Reason::Failed,
        });
    }
    Ok(())
}

/// Checks that the program exists and is not an option.
fn check_program(program: &[String], directory: &Path, force: bool) -> Result<(), Failure> {
    let Some(name) = program.first().filter(|n| !n.is_empty()) else {
        return Err(Failure::wrong("name the program: `warpscope run -- python3 train.py`"));
    };
    if name.starts_with('-') {
        let text = format!("{name} would be taken as a profiler option: the program comes first (a program of that name: ./{name})");
        return Err(Failure::wrong(text));
    }
    let there = if name.contains('/') { directory.join(name).is_file() } else { locate_tools::find_on_path(name).is_some() };
    if there || force {
        return Ok(());
    }
    let place = if name.contains('/') { "" } else { " on PATH" };
    Err(Failure::wrong(format!("program {name} not found{place}")))
}

/// `warpscope run`.
pub fn start_run(all: &GlobalArgs, args: &RunArgs, config: &Config) -> Result<(), Failure> {
    let directory = std::env::current_dir().map_err(|e| Failure::wrong(format!("the current directory: {e}")))?;
    check_program(&args.program, &directory, args.force)?;
    let nsys = all.nsys.clone().or_else(|| config.nsys.clone());
    let wanted = args.recipe.is_none() && args.tool.as_deref().is_none_or(|t| t == "nsys");
    if let Some(named) = nsys.as_deref().filter(|_| wanted && locate_tools::find_nsys(nsys.as_deref()).iter().all(|p| !p.is_file())) {
        return Err(Failure::wrong(format!("no nsys found at {}: correct --nsys, or `nsys` in the configuration", named.display())));
    }
    let users = recipes::user_recipes(config)?;
    let (recipe, said) = choose_recipe(args, nsys.as_deref(), &users)?;
    let chosen = Chosen { recipe, args, directory, nsys: nsys.clone() };
    // Report mistakes in the arguments before checking the machine.
    let trial = chosen.prepare_recipe("report")?;
    if let Some(said) = said {
        print::error(&said);
    }
    if !has_tool(recipe.tool, nsys.as_deref()) {
        let text = format!("{} was not found on this machine; `warpscope doctor` shows where warpscope looks for it", recipe.tool);
        return Err(Failure::unable(text));
    }
    let folder = args.output.as_ref().map(|o| chosen.directory.join(o));
    look_before(&preflight_checks(recipe.tool, &trial.argv(), folder.as_deref().and_then(Path::parent), nsys.as_deref()), args.force)?;
    let mut library = Library::open()?;
    let make = |_: i64, folder: &Path| chosen.complete_run(folder);
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.tty {
        if !terminal {
            return Err(Failure::wrong("--tty needs a terminal"));
        }
        let run = tty::run_in_terminal(&mut library, make)?;
        return if args.plain { headless::print_outcome(&run) } else { tty::open_reports(all, config, &run) };
    }
    let plain = args.detach || args.plain || !terminal;
    let asked = if plain && !args.detach { Some(headless::count_signals()?) } else { None };
    let started = start::start_run(&mut library, args.detach, make)?;
    if plain {
        print::error(&format!("run {}: {}", started.run.id, shell::command_line(&started.run.argv)));
        started.run.notes.lines().for_each(print::error);
        tell_steps(&started.run.steps);
    }
    if args.detach {
        print::error(&format!("it continues in the background; `warpscope attach {}` shows it", started.run.id));
        return print::lines(&[started.run.id.to_string()]);
    }
    if let Some(asked) = asked {
        let run = started.run.clone();
        let ended = headless::follow_to_end(library, &run, Holder::Mine(Box::new(started)), &asked)?;
        return headless::print_outcome(&ended);
    }
    event_loop::explore_run(all, config, started)
}
