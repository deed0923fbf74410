//! PyTorch traces of unmodified Python programs: a small script runs between Python and the program.

use super::pattern::Pattern;
use super::prepared::{Accepts, Place, Prepared, Wanted, part, program_words};
use super::ranks::{self, Ranks};
use super::recipe::{CommandBuilder, Recipe};
use crate::rerun::{CommandPart, PartId};

/// Default trace duration, seconds. Training a small layer on an H200 with torch 2.11 produced 110,000 events per
/// second; each traced second added 1.7 MB to the compressed trace and took 2.4 s to write (3.5 s for a loop of tiny
/// kernels).
pub const TRACE_SECONDS: u64 = 60;

/// Exit code of the command if Python has no torch; all other codes are the program's own.
pub const NO_TORCH: i32 = 97;

/// The script between Python and the program.
pub(super) const WRAPPER: &str = include_str!("torch_trace.py");

/// Python's options without an argument, except those that do not run the program (`-V`, `-h`) or run it differently
/// (`-i`, `-x`).
const FLAGS: &str = "bBdEIOPqsSuv";

/// Splits a Python command line before the script or `-m MODULE`.
fn split_python_command(argv: &[String]) -> Result<(Vec<String>, Vec<String>), String> {
    let python = argv.first().map_or("", String::as_str);
    let name = python.rsplit('/').next().unwrap_or_default();
    let version = name.strip_prefix("python").map(|v| v.trim_end_matches('t'));
    if !version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.')) {
        return Err(format!(
            "PyTorch is traced in a Python program, and {python} is not Python: write python SCRIPT ARGUMENTS or python -m MODULE ARGUMENTS"
        ));
    }
    let refuse = |word: &str, why: &str| Err(format!("python {word}: {why}; write python SCRIPT ARGUMENTS or python -m MODULE ARGUMENTS"));
    let mut at = 1;
    while let Some(word) = argv.get(at) {
        let Some(letters) = word.strip_prefix('-') else {
            return Ok((argv[..at].to_vec(), argv[at..].to_vec()));
        };
        if letters.is_empty() {
            return refuse("-", "a program from standard input cannot be traced");
        }
        if word == "--check-hash-based-pycs" {
            at += 2;
            continue;
        }
        let mut next = at + 1;
        for (i, letter) in letters.char_indices() {
            let value = &letters[i + letter.len_utf8()..];
            match letter {
                'W' | 'X' => {
                    next += usize::from(value.is_empty());
                    break;
                }
                'm' => {
                    // In `-um MODULE` and `-mMODULE`, letters before the `m` remain options of Python.
                    let mut head = argv[..at].to_vec();
                    if i > 0 {
                        head.push(format!("-{}", &letters[..i]));
                    }
                    let (module, from) =
                        if value.is_empty() { (argv.get(next).cloned(), next + 1) } else { (Some(value.to_owned()), next) };
                    let Some(module) = module else {
                        return refuse("-m", "no module is named");
                    };
                    let tail = ["-m".to_owned(), module].into_iter().chain(argv.iter().skip(from).cloned());
                    return Ok((head, tail.collect()));
                }
                'c' => return refuse("-c", "a program on the command line has no file; put it into one"),
                letter if FLAGS.contains(letter) => {}
                _ => return refuse(word, "with this option Python runs no script that could be traced"),
            }
        }
        at = next;
    }
    refuse("without a script", "there is nothing to trace")
}

/// The script that traces a program by torch.profiler.
#[derive(Clone, Copy, Debug)]
struct TorchTrace;

impl CommandBuilder for TorchTrace {
    fn prepare(&self, _id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        prepare(wanted, place)
    }

    fn accepts(&self) -> &'static [Accepts] {
        &[Accepts::Seconds, Accepts::Ranks]
    }
}

fn prepare(wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let launcher = ranks::launcher_name(&wanted.program);
    let ranks = match ranks::resolve_ranks(wanted, launcher.is_some(), |_| vec![part(PartId::Tool, &["python3", "WRAPPER"], "")]) {
        Ok(ranks) => ranks,
        Err(_) if launcher.is_some() => {
            return Err(format!(
                "cannot tell where the program starts in this command of {}: remove the option that warpscope does not know, or start the command of `warpscope recipes torch -- python SCRIPT` from the launcher",
                launcher.unwrap_or_default()
            ));
        }
        Err(e) => return Err(e),
    };
    let (head, inner) = match &ranks {
        Ranks::Each(launched) => (launched.head.clone(), launched.inner.clone()),
        _ => (Vec::new(), wanted.program.clone()),
    };
    let (python, tail) = if inner.is_empty() { (vec!["python3".to_owned()], program_words(&[])) } else { split_python_command(&inner)? };
    let stem = place.stem;
    let each = !head.is_empty();
    let wrapper = format!("{stem}.torch.py");
    let seconds = wanted.seconds.unwrap_or(TRACE_SECONDS);
    let (trace, report) = if each {
        (format!("{stem}.{{rank}}.pt.trace.json.gz"), Pattern::with_wildcard(format!("{stem}."), ".pt.trace.json.gz"))
    } else {
        (format!("{stem}.pt.trace.json.gz"), Pattern::exact(format!("{stem}.pt.trace.json.gz")))
    };
    if stem.contains("{rank}") {
        return Err("a trace's name must not contain {rank}: that becomes the rank".to_owned());
    }
    let mut parts = Vec::new();
    if each {
        parts.push(CommandPart { id: PartId::Processes, words: head, why: "The launcher, as it starts a program.".to_owned() });
    }
    parts.push(CommandPart { id: PartId::Program, words: python, why: "The program's Python, with its options.".to_owned() });
    let why = format!(
        "A script that is written beforehand: it runs the program as Python would, and traces it with torch.profiler from its `import torch` on. Exit code and traceback stay the program's; without torch the exit code is {NO_TORCH}."
    );
    parts.push(CommandPart { id: PartId::Tool, words: vec![place.sibling_path(&wrapper)], why });
    parts.push(part(
        PartId::Collect,
        &["--seconds", &seconds.to_string()],
        format!(
            "After {seconds} s the trace is written, which takes a while, and the program continues without tracing: otherwise a trace grows without bound."
        ),
    ));
    let why = if each {
        "The trace, one per rank. Written also when the program raises, exits, or is ended by SIGINT, SIGTERM or SIGHUP."
    } else {
        "The trace. Written also when the program raises, exits, or is ended by SIGINT, SIGTERM or SIGHUP."
    };
    parts.push(part(PartId::Output, &["--trace", &place.sibling_path(&trace)], why));
    parts.push(CommandPart { id: PartId::Program, words: tail, why: "The program and its arguments.".to_owned() });
    Ok(Prepared { parts, files: vec![(wrapper, WRAPPER.to_owned())], reports: vec![report], ..Prepared::default() })
}

pub(super) const RECIPES: &[Recipe<'static>] = &[Recipe::built_in(
    "torch",
    "torch",
    &TorchTrace,
    [
        "PyTorch's own trace (CPU and GPU) of an unmodified Python program",
        "which operator launched a kernel; or neither nsys nor ncu is installed",
        "for 60 s (--seconds) from `import torch` on; small kernels make 110,000 events a second, each second taking 1.7 MB compressed and 2.4 s to write; not under nsys or ncu, and not for a program that runs torch.profiler itself: only one of them can use CUPTI. A program that ends by os._exit or SIGKILL leaves no trace",
    ],
)];

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_as(text: &str) -> Result<String, String> {
        let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
        split_python_command(&argv).map(|(head, tail)| format!("{} | {}", head.join(" "), tail.join(" ")))
    }

    #[test]
    fn python_commands_are_parted_before_the_script() {
        for (text, want) in [
            ("python train.py -m x=1,2 --lr 3", "python | train.py -m x=1,2 --lr 3"),
            ("/venv/bin/python3.12 -u -W ignore -Xdev train.py -c 1", "/venv/bin/python3.12 -u -W ignore -Xdev | train.py -c 1"),
            ("python3 -m pkg.train -m a=1", "python3 | -m pkg.train -m a=1"),
            ("python3 -um pkg a", "python3 -u | -m pkg a"),
            ("python3.13t -mpkg a", "python3.13t | -m pkg a"),
            ("python -X importtime -OO -- x", "error"),
            ("python -c print(1)", "error"),
            ("python -", "error"),
            ("python -i a.py", "error"),
            ("python", "error"),
            ("python -m", "error"),
            ("vllm serve m", "error"),
            ("python-config x", "error"),
        ] {
            assert_eq!(taken_as(text).unwrap_or_else(|_| "error".to_owned()), want, "{text}");
        }
    }
}
