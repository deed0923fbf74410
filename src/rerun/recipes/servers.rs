//! Recipes for inference servers: vLLM and `sglang`, whose recording is started and stopped over HTTP, and TensorRT-LLM,
//! which records numbered iterations.
//!
//! The options and variables come from vLLM's page on profiling (0.8 to 0.32), `sglang`'s sources
//! (`srt/entrypoints/http_server.py` and the scheduler's profiler, November 2026) and TensorRT-LLM's performance
//! analysis (0.19 to 1.3).

use super::nsys::{self, API_EACH, CUDA, Group, NO_CPU, NODES};
use super::pattern::Pattern;
use super::prepared::{Accepts, Place, Prepared, Wanted, program_part, program_words};
use super::ranks::Ranks;
use super::recipe::{CommandBuilder, Recipe};
use super::steps::{RecipeStep, Role};
use crate::rerun::{CommandPart, PartId};
use serde_json::json;

/// A server and the profiler that records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// vLLM 0.13 or later, under nsys.
    VllmNsys,
    /// vLLM 0.13 or later, traced by PyTorch.
    VllmTorch,
    /// vLLM before 0.13, traced by PyTorch.
    VllmTorchOld,
    SglangNsys,
    /// `sglang`, traced by PyTorch.
    SglangTorch,
    TrtllmNsys,
    /// TensorRT-LLM, traced by PyTorch.
    TrtllmTorch,
}

/// Default first iteration and default number of iterations for TensorRT-LLM, from its documentation.
const ITERATIONS: (u64, u64) = (100, 50);

/// Time for which vLLM's front end waits for its workers, ms: writing a trace takes minutes.
const RPC_TIMEOUT: &str = "1800000";

/// Explanations of the last step.
const NSYS_ENDS: &str = "nsys finishes its reports when the server exits.";
const TRACES_ARE_WRITTEN: &str = "The traces are already written.";

const TRTLLM: &[Group] = &[
    (&["--trace=cuda,nvtx,python-gil"], "CUDA, NVTX ranges, and who holds Python's GIL."),
    NO_CPU,
    NODES,
    (
        &["--capture-range=cudaProfilerApi", "--capture-range-end=stop"],
        "TensorRT-LLM opens and closes the recording itself, at the iterations that TLLM_PROFILE_START_STOP names, then keeps running.",
    ),
    (&["--trace-fork-before-exec=true"], "Its workers are started by MPI, or forked; they are traced, too."),
];

impl Server {
    /// Returns true if the recipe counts in iterations.
    fn counts_iterations(self) -> bool {
        matches!(self, Self::TrtllmNsys | Self::TrtllmTorch)
    }
}

/// Returns the value of an option that is written as `--name value` or `--name=value`.
fn option_value<'a>(argv: &'a [String], name: &str) -> Option<&'a str> {
    argv.iter().enumerate().find_map(
        |(i, w)| {
            if w == name { argv.get(i + 1).map(String::as_str) } else { w.strip_prefix(name)?.strip_prefix('=') }
        },
    )
}

fn has_option(argv: &[String], name: &str) -> bool {
    argv.iter().any(|w| w == name || w.strip_prefix(name).is_some_and(|rest| rest.starts_with(['=', '.'])))
}

/// Returns the word that follows a given word, unless it is an option.
fn word_after<'a>(argv: &'a [String], word: &str) -> Option<&'a str> {
    let at = argv.iter().position(|w| w.rsplit('/').next() == Some(word))?;
    argv.get(at + 1).map(String::as_str).filter(|w| !w.starts_with('-'))
}

/// Address and model of a server, from its command line.
struct Endpoint {
    url: String,
    model: String,
    key: Option<String>,
}

impl Endpoint {
    /// `port` is the port that the server uses by default.
    fn from_command(argv: &[String], command: &str, port: &str) -> Self {
        // A server that listens on all interfaces also answers on localhost.
        let host = option_value(argv, "--host").filter(|h| !matches!(*h, "0.0.0.0" | "::" | "")).unwrap_or("localhost");
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let model = option_value(argv, "--served-model-name")
            .or_else(|| word_after(argv, command))
            .or_else(|| option_value(argv, "--model").or_else(|| option_value(argv, "--model-path")))
            .unwrap_or("MODEL");
        Self {
            url: format!("http://{host}:{}", option_value(argv, "--port").unwrap_or(port)),
            model: model.to_owned(),
            key: option_value(argv, "--api-key").map(str::to_owned),
        }
    }

    /// Returns the step that waits for the server: `curl` retries once a second for up to half an hour.
    fn wait_step(&self) -> RecipeStep {
        let words = "curl --silent --fail --output /dev/null --retry 1800 --retry-delay 1 --retry-max-time 1800 --retry-connrefused";
        RecipeStep {
            role: Role::Wait,
            what: "Wait until the server answers.".to_owned(),
            argv: words.split(' ').map(str::to_owned).chain([format!("{}/health", self.url)]).collect(),
            why: "It loads the model and captures CUDA graphs first, which takes minutes under a profiler.".to_owned(),
        }
    }

    fn post_command(&self, path: &str) -> Vec<String> {
        let words = "curl --silent --show-error --fail --request POST";
        words.split(' ').map(str::to_owned).chain([format!("{}{path}", self.url)]).collect()
    }

    fn post_json_command(&self, path: &str, body: &serde_json::Value) -> Vec<String> {
        let mut argv = self.post_command(path);
        argv.extend(["--header".to_owned(), "Content-Type: application/json".to_owned()]);
        if let Some(key) = &self.key {
            argv.extend(["--header".to_owned(), format!("Authorization: Bearer {key}")]);
        }
        argv.extend(["--data".to_owned(), body.to_string()]);
        argv
    }

    fn completion_command(&self, tokens: u64) -> Vec<String> {
        let body = json!({ "model": self.model, "prompt": "San Francisco is a", "max_tokens": tokens });
        self.post_json_command("/v1/completions", &body)
    }

    /// Returns the steps for a server whose recording is started by `open` and stopped over HTTP.
    fn on_demand_steps(&self, open: Vec<String>, client: &str, stop: &str) -> Vec<RecipeStep> {
        vec![
            start_step(),
            self.wait_step(),
            step(
                Role::WarmUp,
                "Warm it up.",
                self.completion_command(16),
                "The first requests compile and autotune kernels, which would dominate the recording.",
            ),
            step(Role::Open, "Open the recording.", open, "Earlier requests are not recorded."),
            step(
                Role::Load,
                "Send the load that you want to profile: only a few requests, because traces grow fast.",
                self.completion_command(64),
                client,
            ),
            step(
                Role::Close,
                "Close the recording, and wait until it is written.",
                self.post_command("/stop_profile"),
                "The workers write their traces now, which can take minutes. If you open it again, the next recording gets its own report.",
            ),
            stop_step(stop),
        ]
    }
}

fn step(role: Role, what: &str, argv: Vec<String>, why: &str) -> RecipeStep {
    RecipeStep { role, what: what.to_owned(), argv, why: why.to_owned() }
}

fn start_step() -> RecipeStep {
    step(
        Role::Start,
        "Start the server under the profiler, and leave it running.",
        Vec::new(),
        "The command above, in a terminal of its own.",
    )
}

fn stop_step(why: &str) -> RecipeStep {
    step(Role::Stop, "End the server: Ctrl-C in its terminal, once.", Vec::new(), why)
}

impl CommandBuilder for Server {
    fn prepare(&self, _id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        prepare(*self, wanted, place)
    }

    fn accepts(&self) -> &'static [Accepts] {
        if self.counts_iterations() { &[Accepts::Launches] } else { &[] }
    }
}

fn prepare(server: Server, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    match server {
        Server::TrtllmNsys | Server::TrtllmTorch => prepare_trtllm(server, wanted, place),
        Server::SglangNsys | Server::SglangTorch => prepare_sglang(server, wanted, place),
        _ => prepare_vllm(server, wanted, place),
    }
}

fn prepare_vllm(server: Server, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let argv = &wanted.program;
    let serves = argv.iter().any(|w| w == "serve" || w.ends_with("api_server") || w.ends_with("api_server.py"));
    if !argv.is_empty() && !serves {
        return Err(
            "this recipe records a server: vllm serve MODEL OPTIONS; for vLLM inside a script use `exact`, or `profiler-api` with llm.start_profile()"
                .to_owned(),
        );
    }
    if has_option(argv, "--profiler-config") {
        return Err("the recipe sets vLLM's --profiler-config: remove it from the command".to_owned());
    }
    let set = |config: serde_json::Value, why: &str| CommandPart {
        id: PartId::Gate,
        words: vec!["--profiler-config".to_owned(), config.to_string()],
        why: why.to_owned(),
    };
    let stem = place.stem;
    let folder = format!("{stem}.vllm");
    let traces = Pattern::with_wildcard(format!("{folder}/"), ".pt.trace.json.gz");
    let path = place.absolute_path(wanted, &folder);
    let server_part = CommandPart { why: "The server.".to_owned(), ..program_part(argv) };
    let mut prepared = Prepared { env: vec![("VLLM_RPC_TIMEOUT".to_owned(), RPC_TIMEOUT.to_owned())], ..Prepared::default() };
    match server {
        Server::VllmNsys => {
            // nsys does not follow a fork without exec.
            prepared.env.push(("VLLM_WORKER_MULTIPROC_METHOD".to_owned(), "spawn".to_owned()));
            prepared.parts = nsys::option_parts(&[CUDA, NO_CPU, NODES, API_EACH], None);
            prepared.parts.push(nsys::output_part(&Ranks::Together, place));
            prepared.parts.push(server_part);
            let why =
                "The server calls cudaProfilerStart and cudaProfilerStop in its workers when /start_profile and /stop_profile are posted.";
            prepared.parts.push(set(json!({ "profiler": "cuda" }), why));
            prepared.reports = nsys::report_patterns(place, false, true);
        }
        Server::VllmTorch => {
            let why =
                "The server traces with PyTorch between /start_profile and /stop_profile, and writes one trace for each worker there.";
            prepared.parts = vec![server_part, set(json!({ "profiler": "torch", "torch_profiler_dir": path }), why)];
            prepared.reports = vec![traces];
        }
        _ => {
            prepared.env.push(("VLLM_TORCH_PROFILER_DIR".to_owned(), path.clone()));
            prepared.parts = vec![server_part];
            prepared.reports = vec![traces];
        }
    }
    if server != Server::VllmNsys && !path.starts_with('/') {
        prepared.notes.push(format!("vLLM wants an absolute path for its traces: put the directory before {path}."));
    }
    let at = Endpoint::from_command(argv, "serve", "8000");
    prepared.steps = at.on_demand_steps(
        at.post_command("/start_profile"),
        "Any client will do; `vllm bench serve --profile` opens and closes the recording itself.",
        if server == Server::VllmNsys { NSYS_ENDS } else { TRACES_ARE_WRITTEN },
    );
    Ok(prepared)
}

fn prepare_sglang(server: Server, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let argv = &wanted.program;
    let serves = argv.iter().any(|w| w == "serve" || w.ends_with("launch_server") || w.ends_with("launch_server.py"));
    if !argv.is_empty() && !serves {
        return Err("this recipe records a server: python -m sglang.launch_server OPTIONS, or sglang serve OPTIONS".to_owned());
    }
    let at = Endpoint::from_command(argv, "serve", "30000");
    let server_part = CommandPart { why: "The server.".to_owned(), ..program_part(argv) };
    let mut prepared = Prepared::default();
    let (body, stop) = if server == Server::SglangNsys {
        // SGLang spawns its workers, so nsys follows them.
        prepared.parts = nsys::option_parts(&[CUDA, NO_CPU, NODES, API_EACH], None);
        prepared.parts.push(nsys::output_part(&Ranks::Together, place));
        prepared.parts.push(server_part);
        prepared.reports = nsys::report_patterns(place, false, true);
        (json!({ "activities": ["CUDA_PROFILER"] }), NSYS_ENDS)
    } else {
        let folder = format!("{}.sglang", place.stem);
        let path = place.absolute_path(wanted, &folder);
        if !path.starts_with('/') {
            prepared.notes.push(format!("SGLang wants an absolute path for its traces: put the directory before {path}."));
        }
        prepared.parts = vec![server_part];
        prepared.reports = vec![Pattern::with_wildcard(format!("{folder}/"), ".trace.json.gz")];
        (json!({ "activities": ["CPU", "GPU"], "output_dir": path }), TRACES_ARE_WRITTEN)
    };
    prepared.steps = at.on_demand_steps(
        at.post_json_command("/start_profile", &body),
        "Any client will do; `python -m sglang.bench_serving --profile` opens and closes a recording of PyTorch's itself.",
        stop,
    );
    Ok(prepared)
}

fn prepare_trtllm(server: Server, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let argv = &wanted.program;
    let first = wanted.skip.unwrap_or(ITERATIONS.0);
    let last = first.saturating_add(wanted.count.unwrap_or(ITERATIONS.1));
    if argv.iter().any(|w| w.starts_with("TLLM_")) {
        return Err(
            "a variable is not a program: set it in the environment and start the command with trtllm-serve, trtllm-bench or python"
                .to_owned(),
        );
    }
    let mut env = vec![("TLLM_PROFILE_START_STOP".to_owned(), format!("{first}-{last}"))];
    let stem = place.stem;
    let mut prepared = Prepared::default();
    if server == Server::TrtllmNsys {
        env.push(("TLLM_LLMAPI_ENABLE_NVTX".to_owned(), "1".to_owned()));
        env.push(("TLLM_NVTX_DEBUG".to_owned(), "1".to_owned()));
        env.push(("TLLM_PROFILE_RECORD_GC".to_owned(), "1".to_owned()));
        prepared.parts = nsys::option_parts(TRTLLM, None);
        prepared.parts.push(nsys::output_part(&Ranks::Together, place));
        prepared.parts.push(program_part(argv));
        prepared.reports = nsys::report_patterns(place, false, false);
    } else {
        let path = place.absolute_path(wanted, &format!("{stem}.pt.trace.json"));
        if !path.starts_with('/') {
            prepared.notes.push(format!("TensorRT-LLM wants an absolute path for its trace: put the directory before {path}."));
        }
        env.push(("TLLM_TORCH_PROFILE_TRACE".to_owned(), path));
        let why = format!("The program; its PyTorch workflow traces iterations {first} to {last}.");
        prepared.parts = vec![CommandPart { id: PartId::Program, words: program_words(argv), why }];
        prepared.reports = vec![Pattern::with_wildcard(format!("{stem}.pt.trace"), "json")];
    }
    prepared.env = env;
    prepared.notes.push(format!(
        "Iterations {first} to {last} are recorded: the run must be longer than that; choose others with --launch-skip and --launch-count."
    ));
    // trtllm-bench generates its own load and exits when it is done.
    if argv.is_empty() || argv.iter().any(|w| w.rsplit('/').next() == Some("trtllm-serve")) {
        let at =
            Endpoint::from_command(argv, if word_after(argv, "trtllm-serve") == Some("serve") { "serve" } else { "trtllm-serve" }, "8000");
        prepared.steps = vec![
            start_step(),
            at.wait_step(),
            step(
                Role::Load,
                "Send load until the last recorded iteration has passed.",
                at.completion_command(last.saturating_add(50)),
                "Each generated token is about one iteration; the first ones, before the recording, warm the server up.",
            ),
            stop_step("The profiler finishes its report when the server exits."),
        ];
    }
    Ok(prepared)
}

pub(super) const RECIPES: &[Recipe<'static>] = &[
    Recipe::built_in(
        "vllm",
        "nsys",
        &Server::VllmNsys,
        [
            "timeline of a vLLM server on demand, step by step",
            "vllm serve, from 0.13 on: kernels and gaps under real load",
            "low outside the recording; the server starts more slowly, because its workers are spawned",
        ],
    ),
    Recipe::built_in(
        "vllm-torch",
        "torch",
        &Server::VllmTorch,
        [
            "PyTorch's trace of a vLLM server on demand, step by step",
            "vllm serve, from 0.13 on: which operator launched a kernel",
            "high: a few requests fill a trace, and writing it takes minutes",
        ],
    ),
    Recipe::built_in(
        "vllm-torch-old",
        "torch",
        &Server::VllmTorchOld,
        [
            "PyTorch's trace of a vLLM server before 0.13, by VLLM_TORCH_PROFILER_DIR",
            "a vllm serve without --profiler-config",
            "as `vllm-torch`",
        ],
    ),
    Recipe::built_in(
        "sglang",
        "nsys",
        &Server::SglangNsys,
        [
            "timeline of an SGLang server on demand, step by step",
            "sglang.launch_server: kernels and gaps under real load",
            "low outside the recording",
        ],
    ),
    Recipe::built_in(
        "sglang-torch",
        "torch",
        &Server::SglangTorch,
        [
            "PyTorch's trace of an SGLang server on demand, step by step",
            "sglang.launch_server: which operator launched a kernel",
            "high: a few requests fill a trace, and writing it takes minutes",
        ],
    ),
    Recipe::built_in(
        "trtllm",
        "nsys",
        &Server::TrtllmNsys,
        [
            "timeline of some iterations of TensorRT-LLM",
            "trtllm-serve or trtllm-bench; choose iterations by --launch-skip and --launch-count",
            "low outside the iterations; extra NVTX ranges and forks are traced, too",
        ],
    ),
    Recipe::built_in(
        "trtllm-torch",
        "torch",
        &Server::TrtllmTorch,
        [
            "PyTorch's trace of some iterations of TensorRT-LLM",
            "its PyTorch workflow: which operator launched a kernel",
            "high while it traces; not under nsys at the same time",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_from_the_command() {
        let argv = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let e = Endpoint::from_command(&argv("vllm serve org/model --port=9001 --host 0.0.0.0 --api-key k"), "serve", "8000");
        assert_eq!((e.url.as_str(), e.model.as_str(), e.key.as_deref()), ("http://localhost:9001", "org/model", Some("k")));
        assert!(e.completion_command(3).contains(&"Authorization: Bearer k".to_owned()));
        let e = Endpoint::from_command(&argv("python -m vllm.entrypoints.openai.api_server --model m --host ::1"), "serve", "8000");
        assert_eq!((e.url.as_str(), e.model.as_str()), ("http://[::1]:8000", "m"));
        let e = Endpoint::from_command(&argv("python -m sglang.launch_server --model-path org/m"), "serve", "30000");
        assert_eq!((e.url.as_str(), e.model.as_str()), ("http://localhost:30000", "org/m"));
    }
}
