//! The tools: their declarations, and the command behind each of them.

use super::folders::Folders;
use crate::analysis::GroupBy;
use crate::analysis::triage::Phase;
use crate::report::output::TOKEN;
use crate::rerun::collect::QUESTIONS;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Instructions for an agent that has connected to the server.
pub const INSTRUCTIONS: &str = "Profiles of GPU programs (nsys, ncu, torch.profiler, rocprofv3, warpscope). Begin with `open` to find reports, then \
     `verdict` on a timeline or `explain_kernel` on a result of ncu. A field that is null was not recorded. Findings are `certain` only where what \
     decides was recorded: do what `confirm` says before you change a program at `likely` or `possible`. A share is the most that a change could \
     save of the judged time. Do not compare totals of runs that do different work. `next` has the commands that answer the next questions.";

/// Default and maximum size of an answer, in tokens.
const BUDGET: u64 = 2_000;
const MOST: u64 = 20_000;
const LEAST: u64 = 200;

/// Argument of a tool.
struct Argument {
    name: &'static str,
    kind: &'static str,
    about: &'static str,
    required: bool,
    use_as: Use,
    /// Allowed values, if they are known before a report is read.
    values: fn() -> Vec<&'static str>,
}

/// Use of an argument in the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A report: a path inside the folders.
    Report,
    /// Value of the option with this name.
    Option(&'static str),
}

const fn report(name: &'static str, about: &'static str) -> Argument {
    Argument { name, kind: "string", about, required: true, use_as: Use::Report, values: Vec::new }
}

const fn option(name: &'static str, kind: &'static str, flag: &'static str, about: &'static str) -> Argument {
    Argument { name, kind, about, required: false, use_as: Use::Option(flag), values: Vec::new }
}

const fn choice(name: &'static str, flag: &'static str, values: fn() -> Vec<&'static str>, about: &'static str) -> Argument {
    Argument { values, ..option(name, "string", flag, about) }
}

struct Tool {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// Command that produces the answer; empty for `open`.
    command: &'static str,
    arguments: &'static [Argument],
}

const PATH: &str = "Path of the report, absolute or relative to the server's folder.";
const KERNEL: &str = "Kernel: an exact name as `kernels` lists it, or a part of it that no other kernel has.";

const TOOLS: &[Tool] = &[
    Tool {
        name: "open",
        title: "Find and open reports",
        about: "Lists the reports in a folder (without a path: in the server's folders), or says what one report is of: tool, GPU, number of launches, \
                what was not recorded, and the first kernels.",
        command: "top",
        arguments: &[Argument { required: false, ..report("path", "Report or folder.") }],
    },
    Tool {
        name: "verdict",
        title: "Say what limits a run",
        about: "Says what limits the run of a timeline (nsys, torch.profiler, rocprofv3, warpscope): findings with evidence, the most that each \
                costs, what to change and how to confirm it. findings[0] is the verdict.",
        command: "triage",
        arguments: &[
            report("path", PATH),
            option("range", "string", "--range", "Judge only NVTX ranges or operators of this name."),
            choice("phase", "--phase", || Phase::ALL.iter().map(|p| p.1).collect(), "Judge a phase, by default the steady state."),
        ],
    },
    Tool {
        name: "kernels",
        title: "Rank the kernels",
        about: "Ranks kernels, or other groups of launches, by time, with the share of the run that each could save.",
        command: "top",
        arguments: &[
            report("path", PATH),
            choice(
                "by",
                "--by",
                || GroupBy::ALL.iter().map(|g| g.cli_name()).collect(),
                "Group by this, by default by kernel; line is the line of capture, for CUDA graphs.",
            ),
            option("filter", "string", "--filter", "Only kernels whose name contains this text."),
            option("limit", "integer", "--limit", "List at most this many."),
        ],
    },
    Tool {
        name: "explain_kernel",
        title: "Explain a kernel",
        about: "Says what limits a kernel and what to change, from the metrics of ncu or, as far as a launch alone says it, from a timeline.",
        command: "hints",
        arguments: &[
            report("path", PATH),
            option("kernel", "string", "--kernel", KERNEL),
            option("launch", "integer", "--launch", "Only this launch, by its number."),
        ],
    },
    Tool {
        name: "rerun_command",
        title: "Get the command that profiles a launch again",
        about: "Gives the exact ncu (or rocprofv3) command that profiles one launch of a timeline again: by default the median launch of a kernel. \
                Runs nothing.",
        command: "rerun",
        arguments: &[
            report("path", PATH),
            option("kernel", "string", "--kernel", KERNEL),
            option("launch", "integer", "--launch", "Instead of a kernel: a launch by its number."),
            choice("question", "--question", || QUESTIONS.iter().map(|q| q.word).collect(), "Collect only what answers this question."),
        ],
    },
    Tool {
        name: "diff",
        title: "Compare two runs",
        about: "Says what changed between two runs: kernels, parts of the time, findings, and if a change is significant.",
        command: "diff",
        arguments: &[
            report("before", "The earlier report."),
            report("after", "The later report."),
            option("limit", "integer", "--limit", "List at most this many kernels."),
        ],
    },
];

fn budget_argument() -> Value {
    json!({ "type": "integer", "minimum": LEAST, "maximum": MOST, "default": BUDGET, "description": "Size of the answer in tokens, about." })
}

/// Declarations of the tools.
pub fn list_tools() -> Vec<Value> {
    let declare = |tool: &Tool| {
        let mut properties = Map::new();
        for a in tool.arguments {
            let mut property = json!({ "type": a.kind, "description": a.about });
            let values = (a.values)();
            if !values.is_empty() {
                property["enum"] = values.into();
            }
            properties.insert(a.name.to_owned(), property);
        }
        properties.insert("budget".to_owned(), budget_argument());
        let required: Vec<&str> = tool.arguments.iter().filter(|a| a.required).map(|a| a.name).collect();
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.about,
            "inputSchema": { "type": "object", "properties": properties, "required": required, "additionalProperties": false },
            "annotations": { "title": tool.title, "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
        })
    };
    TOOLS.iter().map(declare).collect()
}

/// A call with valid arguments.
#[derive(Debug, PartialEq)]
pub enum Planned {
    /// Arguments of the command that produces the answer.
    Run(Vec<String>),
    Known(Value),
}

/// Reason why a call was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// Unknown tool: a protocol error.
    Unknown(String),
    /// Invalid argument that the agent can correct: a tool error.
    Argument(String),
}

/// Formats an argument of the declared type.
fn argument_text(argument: &Argument, value: &Value) -> Result<String, Refused> {
    let wrong = || Refused::Argument(format!("{}: {value} is not of type {}", argument.name, argument.kind));
    let values = (argument.values)();
    if !values.is_empty() && !value.as_str().is_some_and(|v| values.contains(&v)) {
        return Err(Refused::Argument(format!("{}: {value} is none of {}", argument.name, values.join(", "))));
    }
    match argument.kind {
        "string" => value.as_str().map(str::to_owned).ok_or_else(wrong),
        _ => value.as_u64().map(|n| n.to_string()).ok_or_else(wrong),
    }
}

/// Returns true if the folder is a single report: the traces of a run's processes.
fn is_report(folder: &Path) -> bool {
    let is_trace = |e: std::io::Result<std::fs::DirEntry>| e.is_ok_and(|e| e.path().extension().is_some_and(|x| x == "wstrace"));
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.any(is_trace))
}

/// Checks the arguments of a call and returns the command that answers it.
pub fn plan_call(folders: &Folders, name: &str, given: &Value) -> Result<Planned, Refused> {
    let Some(tool) = TOOLS.iter().find(|t| t.name == name) else {
        let names: Vec<&str> = TOOLS.iter().map(|t| t.name).collect();
        return Err(Refused::Unknown(format!("there is no tool {name:?}; the tools are {}", names.join(", "))));
    };
    let empty = Map::new();
    let given = match given {
        Value::Null => &empty,
        Value::Object(given) => given,
        _ => return Err(Refused::Argument("the arguments are not an object".to_owned())),
    };
    if let Some(unknown) = given.keys().find(|k| *k != "budget" && !tool.arguments.iter().any(|a| a.name == **k)) {
        let names: Vec<&str> = tool.arguments.iter().map(|a| a.name).chain(["budget"]).collect();
        return Err(Refused::Argument(format!("{name} has no argument {unknown:?}; it has {}", names.join(", "))));
    }
    let budget = match given.get("budget").filter(|b| !b.is_null()) {
        None => BUDGET,
        Some(b) => b
            .as_u64()
            .filter(|b| (LEAST..=MOST).contains(b))
            .ok_or_else(|| Refused::Argument(format!("budget: {b} is not a number of tokens from {LEAST} to {MOST}")))?,
    };
    let room = usize::try_from(budget).unwrap_or(usize::MAX).saturating_mul(TOKEN);
    let mut command = vec![tool.command.to_owned()];
    for argument in tool.arguments {
        let Some(value) = given.get(argument.name).filter(|v| !v.is_null()) else {
            if argument.required {
                return Err(Refused::Argument(format!("{name} needs the argument {:?}", argument.name)));
            }
            continue;
        };
        let text = argument_text(argument, value)?;
        match argument.use_as {
            Use::Report => {
                let path = folders.resolve(&text).map_err(Refused::Argument)?;
                if tool.name == "open" && path.is_dir() && !is_report(&path) {
                    return Ok(Planned::Known(folders.list_reports(Some(&path), room)));
                }
                // An absolute path cannot be mistaken for an option.
                command.push(path.display().to_string());
            }
            // A single word, so that the value cannot be mistaken for an option.
            Use::Option(flag) => command.push(format!("{flag}={text}")),
        }
    }
    if command.len() == 1 {
        return Ok(Planned::Known(folders.list_reports(None, room)));
    }
    if tool.name == "open" {
        command.push("--limit=3".to_owned());
    }
    command.extend(["--format=json".to_owned(), format!("--budget={budget}")]);
    Ok(Planned::Run(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_single_words_and_reports_are_in_the_folders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.sqlite"), "").unwrap();
        let folders = Folders::new(&[folder.path().to_owned()]).unwrap();
        let report = folder.path().canonicalize().unwrap().join("a.sqlite").display().to_string();
        let planned = plan_call(&folders, "explain_kernel", &json!({"path": "a.sqlite", "kernel": "--help", "budget": 200}));
        let words = ["hints", &report, "--kernel=--help", "--format=json", "--budget=200"].map(str::to_owned).to_vec();
        assert_eq!(planned, Ok(Planned::Run(words)));
        for (tool, arguments, says) in [
            ("explain_kernel", json!({}), "needs the argument \"path\""),
            ("explain_kernel", json!({"path": 7}), "not of type string"),
            ("explain_kernel", json!({"path": "a.sqlite", "launch": "0"}), "not of type integer"),
            ("explain_kernel", json!({"path": "a.sqlite", "kernle": "k"}), "has no argument \"kernle\"; it has path, kernel"),
            ("explain_kernel", json!({"path": "../x"}), "no such report in"),
            ("verdict", json!({"path": "a.sqlite", "budget": "much"}), "not a number of tokens"),
            ("verdict", json!({"path": "a.sqlite", "budget": 5}), "from 200 to 20000"),
            ("verdict", json!({"path": "a.sqlite", "phase": "end"}), "none of start-up"),
            ("verdict", json!([]), "not an object"),
        ] {
            let refused = plan_call(&folders, tool, &arguments);
            let Err(Refused::Argument(text)) = &refused else { panic!("{refused:?}") };
            assert!(text.contains(says), "{text}");
        }
        assert!(matches!(plan_call(&folders, "rm", &json!({})), Err(Refused::Unknown(_))));
        let Ok(Planned::Known(list)) = plan_call(&folders, "open", &Value::Null) else { panic!() };
        assert_eq!(list["reports"][0]["path"], report);
    }
}
