//! A plan as a shell script: a header that lists the selected launches, then the commands.

use super::{PartId, Plan, Rerun, shell};
use crate::model::config;
use crate::model::text::escape_unsafe;

/// Appends a comment as a single line.
fn push_comment(out: &mut String, text: &str) {
    out.push_str("# ");
    out.push_str(&escape_unsafe(text));
    out.push('\n');
}

fn push_description(out: &mut String, command: &Rerun) {
    for s in &command.selects {
        let dims = |d: Option<[u32; 3]>| d.map_or_else(|| "?".to_owned(), config::format_dim3);
        let launch = s.launch.map_or_else(|| format!("number {}", s.nth), |l| format!("launch {}", l.0));
        let what = if s.grid.is_some() { format!(", grid {} block {}", dims(s.grid), dims(s.block)) } else { String::new() };
        push_comment(
            out,
            &format!("selects {launch}: {}{what}, {} in the report", s.demangled.as_deref().unwrap_or(&s.kernel), s.duration),
        );
    }
    for w in &command.warnings {
        push_comment(out, &format!("{}: {}", w.severity.as_str(), w.to_sentence()));
    }
}

/// Formats the command over several lines; the script's own arguments replace an unknown program.
fn command_lines(command: &Rerun) -> String {
    if command.is_runnable() {
        return command.shell_lines();
    }
    let groups: Vec<Vec<String>> = command.parts.iter().filter(|p| p.id != PartId::Program).map(|p| p.words.clone()).collect();
    format!("{} \\\n    \"$@\"", shell::command_lines(&groups))
}

/// Returns the script. `made_from` is the name of the report. If the report does not record the program, the script's
/// arguments are used instead.
pub fn shell_script(plan: &Plan, made_from: &str) -> String {
    if let [Rerun { wrapper: Some(wrapper), .. }] = &plan.commands[..] {
        let mut out = String::new();
        let (head, body) = wrapper.split_once('\n').unwrap_or(("#!/bin/sh", wrapper));
        out.push_str(head);
        out.push('\n');
        push_comment(&mut out, &format!("Made by warpscope from {made_from}."));
        push_description(&mut out, &plan.commands[0]);
        out.push_str(body);
        return out;
    }
    let mut out = "#!/bin/sh\n".to_owned();
    push_comment(&mut out, &format!("Made by warpscope from {made_from}: profiles the same launches again."));
    let needs_program = plan.commands.iter().any(|c| c.wrapper.is_none() && !c.is_runnable());
    if needs_program {
        push_comment(&mut out, "The report does not say which program ran: pass it and its arguments to this script.");
    }
    out.push_str("set -eu\n");
    if needs_program {
        out.push_str("if [ \"$#\" -eq 0 ]; then\n    echo \"usage: $0 PROGRAM ARGUMENTS...\" >&2\n    exit 2\nfi\n");
    }
    let directory = plan.commands.iter().find_map(|c| c.directory.as_deref());
    if let Some(directory) = directory.filter(|_| !needs_program) {
        out.extend(["cd -- ", &shell::quote(directory), "\n"]);
    }
    if let Some(folder) = &plan.folder {
        out.extend(["mkdir -p -- ", &shell::quote(folder), "\n"]);
    }
    for command in &plan.commands {
        out.push('\n');
        push_description(&mut out, command);
        if command.wrapper.is_some() {
            let text =
                "Several processes launch this at the same time: save this launch separately to get a script for the launcher to start.";
            push_comment(&mut out, text);
            out.push_str("echo \"$0: a launch of several processes at once needs a script of its own\" >&2\nexit 2\n");
            continue;
        }
        if let Some((folder, _)) = command.output.rsplit_once('/').filter(|_| plan.folder.is_none()) {
            out.extend(["mkdir -p -- ", &shell::quote(folder), "\n"]);
        }
        let text = command_lines(command);
        // If the script is interrupted, it later continues where it stopped.
        let report = shell::quote(&command.report_path());
        if plan.commands.len() > 1 && !command.overwrites_report() {
            out.extend(["if [ -e ", &report, " ]; then\n    echo ", &report, " already exists\nelse\n", &text, "\nfi\n"]);
            continue;
        }
        out.push_str(&text);
        out.push('\n');
    }
    out
}
