//! Timelines of the built-in tracer: `warpscope trace` replaces itself with the program, and its tracer is loaded into
//! all of the program's processes.

use super::pattern::Pattern;
use super::prepared::{Accepts, Place, Prepared, Wanted, part, program_part};
use super::recipe::{CommandBuilder, Recipe};
use crate::rerun::PartId;

/// Options of a trace, and their explanations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub words: &'static [(&'static [&'static str], &'static str)],
}

/// File extension of the traces of a run.
const SUFFIX: &str = ".wstrace";

impl CommandBuilder for Options {
    fn prepare(&self, _id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        Ok(prepare(self, wanted, place))
    }

    fn accepts(&self) -> &'static [Accepts] {
        &[Accepts::Seconds]
    }

    fn ranks_refusal(&self) -> &'static str {
        "separate launcher: it writes a trace for each process anyway, so leave --ranks out"
    }
}

fn prepare(options: &Options, wanted: &Wanted, place: &Place<'_>) -> Prepared {
    let mut parts =
        vec![part(PartId::Tool, &["warpscope", "trace"], "The built-in tracer: becomes the program, and is loaded by CUDA's driver.")];
    for (words, why) in options.words {
        let word = |w: &&str| match wanted.survey {
            Some(share) if *w == "--survey" => format!("--survey={}", f64::from(share) / 10.0),
            _ => w.replace("{RANGE}", wanted.range.as_deref().unwrap_or_default()),
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        parts.push(part(PartId::Collect, &words, *why));
    }
    for kernel in &wanted.measure {
        let why = "Counters of the kernel's next launches, or of its N-th (#N), measured while the program runs.";
        parts.push(part(PartId::Collect, &["--measure", kernel], why));
    }
    for kernel in &wanted.stalls {
        let why = "Stall reasons of the kernel's first launch, or of its N-th (#N), sampled at each instruction.";
        parts.push(part(PartId::Collect, &["--stalls", kernel], why));
    }
    for [option, value] in &wanted.only {
        let why = if option == "--questions" {
            "Only the metrics that answer these questions."
        } else {
            "Other launches are neither counted nor measured."
        };
        parts.push(part(PartId::Collect, &[option, value], why));
    }
    if let Some(which) = &wanted.stacks {
        let why =
            if which == "off" { "No stacks are sampled." } else { "Stacks of the threads that launch: the lines that the GPU waits for." };
        parts.push(part(PartId::Collect, &["--stacks", which], why));
    }
    if let Some(rate) = wanted.stack_rate {
        parts.push(part(PartId::Collect, &["--stack-rate", &rate.to_string()], "So many samples of each thread a second."));
    }
    if serves_requests(&wanted.program) {
        let why = "The server's own metrics, once a second: requests, KV cache, latencies.";
        parts.push(part(PartId::Collect, &["--metrics"], why));
    }
    if let Some(seconds) = wanted.seconds {
        let why = "The recording ends after so many seconds; the program keeps running.";
        parts.push(part(PartId::End, &["--seconds", &seconds.to_string()], why));
    }
    let why = format!("The traces: {}.PID{SUFFIX}, one for each process that uses CUDA; `warpscope run` joins them.", place.output);
    // A name that begins with a hyphen would be parsed as an option.
    let name = if place.folder.is_none() { place.sibling_path(place.stem) } else { place.output.to_owned() };
    parts.push(part(PartId::Output, &["--output", &name], why));
    parts.push(program_part(&wanted.program));
    let stem = place.stem;
    let reports = vec![Pattern::exact(format!("{stem}{SUFFIX}")), Pattern::with_wildcard(format!("{stem}."), SUFFIX)];
    Prepared { parts, reports, ..Prepared::default() }
}

/// Returns true if a command starts a vLLM or `SGLang` server.
fn serves_requests(words: &[String]) -> bool {
    let is = |word: &String, name: &str| word.rsplit('/').next() == Some(name);
    words.windows(2).any(|pair| {
        pair[1] == "serve" && ["vllm", "sglang"].iter().any(|name| is(&pair[0], name))
            || (pair[0] == "-m" && (pair[1].starts_with("vllm.entrypoints.") || pair[1].starts_with("sglang.launch_server")))
    })
}

const fn row(id: &'static str, words: [&'static str; 3], options: &'static Options) -> Recipe<'static> {
    Recipe::built_in(id, "trace", options, words)
}

/// Costs were measured on an H200.
pub(super) const RECIPES: &[Recipe<'static>] = &[
    row(
        "trace",
        [
            "timeline of the built-in tracer, with exact launch counts for re-runs",
            "the first report of any program that uses CUDA; needs no nsys, only the libcupti that PyTorch and CUDA bring",
            "low: below nsys; about 15 bytes of trace per kernel with its call",
        ],
        &Options { words: &[] },
    ),
    row(
        "trace-light",
        [
            "kernels only, CUDA graphs as a whole",
            "a server or a job that must not be slowed down; memcpys, calls and kernels inside graphs are not wanted",
            "lowest: about 8 bytes of trace per kernel",
        ],
        &Options {
            words: &[
                (&["--lean"], "Kernels only, in launch order: no calls, memcpys and memsets."),
                (&["--graphs", "whole"], "A CUDA graph is one record; the kernels inside are not listed."),
            ],
        },
    ),
    Recipe {
        needs_range: true,
        ..row(
            "trace-range",
            [
                "trace of an NVTX range, each time that it is entered",
                "a long program with ranges",
                "low; nothing is written outside the range",
            ],
            &Options {
                words: &[(
                    &["--range", "{RANGE}"],
                    "What is launched inside is recorded; the program keeps running. RANGE or RANGE@DOMAIN, exact.",
                )],
            },
        )
    },
    row(
        "trace-profiler-api",
        [
            "trace between cudaProfilerStart and cudaProfilerStop, each time",
            "the program calls them (torch.cuda.profiler.start and stop)",
            "low; nothing is written outside",
        ],
        &Options { words: &[(&["--profiler-api"], "Recording begins with cudaProfilerStart and ends with cudaProfilerStop, each time.")] },
    ),
    row(
        "trace-closed",
        [
            "trace that is opened and closed by hand: `warpscope attach --open`, `--close`",
            "a server that runs for days",
            "next to nothing while it is closed",
        ],
        &Options { words: &[(&["--closed"], "Nothing is recorded until it is opened.")] },
    ),
    row(
        "trace-last",
        [
            "trace of the last 30 s, for as long as the program runs",
            "a server that is watched for hours (`warpscope watch`), or a crash that comes at some time",
            "low; the files on disk hold the last 30 to 60 s and do not grow",
        ],
        &Options {
            words: &[(
                &["--keep-last", "30"],
                "Only the last 30 s or a little more are kept; older rows are deleted while the program runs.",
            )],
        },
    ),
    row(
        "trace-survey",
        [
            "trace with counters of the kernels that take the most time, measured while the program runs",
            "why its kernels are slow, without a second run under ncu",
            "measuring adds up to 3% of the run's time; kernels in CUDA graphs, collectives and kernels that run side by side are not measured",
        ],
        &Options {
            words: &[(
                &["--survey"],
                "Counters of the kernels that take 90% of the time, three launches of each configuration; may add 3% of the time.",
            )],
        },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_how_they_are_started() {
        let serves = |line: &str| serves_requests(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in [
            "vllm serve model",
            "uv run /venv/bin/vllm serve m --port 1",
            "python3 -m vllm.entrypoints.openai.api_server --model m",
            "python -m sglang.launch_server --model m",
        ] {
            assert!(serves(line), "{line}");
        }
        for line in ["vllm bench serve", "python3 train.py", "python3 -m vllm", "./vllm", "echo serve vllm"] {
            assert!(!serves(line), "{line}");
        }
    }
}
