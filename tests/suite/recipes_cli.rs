//! `warpscope recipes` for other profilers, launchers, servers and the user's own recipes; the
//! script that traces PyTorch is really run.

use super::support::{run, scratch};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use warpscope::rerun::recipes::{NO_TORCH, built_in_recipes};

fn ok(args: &[&str]) -> String {
    let (code, out, err) = run(args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::var_os("PATH").and_then(|p| std::env::split_paths(&p).map(|d| d.join(name)).find(|f| f.is_file()))
}

#[test]
fn chosen_launches_ranks_and_servers_are_printed() {
    assert_eq!(
        ok(&["recipes", "ncu-sol", "--kernel", "saxpy", "--launch-skip", "5", "--launch-count", "1", "-o", "k", "--", "./app"]),
        "ncu --config-file off --kernel-name saxpy --launch-skip 5 --launch-count 1 --section SpeedOfLight --section LaunchStats --section Occupancy --export k ./app\n"
    );
    assert_eq!(
        ok(&["recipes", "rank", "--", "torchrun", "--nproc_per_node=2", "t.py", "a.b=c", "~x"]),
        "torchrun --nproc_per_node=2 --no-python nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node --output 'report.%q{RANK}' python3 t.py a.b=c '~x'\n"
    );
    let (code, _, err) = run(&["recipes", "exact", "--kernel", "k", "--", "x"]);
    assert!(code == 2 && err.contains("recipe exact takes no kernel"), "{err}");
    let (code, _, err) = run(&["recipes", "rank", "--", "mpirun", "--mystery", "1", "x"]);
    assert!(code == 2 && err.contains("write it by hand: mpirun OPTIONS nsys profile"), "{err}");
    let json: Value = serde_json::from_str(&ok(&["recipes", "vllm", "--format", "json", "--", "vllm", "serve", "m"])).unwrap();
    assert_eq!(json["env"]["VLLM_WORKER_MULTIPROC_METHOD"], "spawn");
    assert_eq!(json["steps"][3]["role"], "open");
    assert!(json["steps"][3]["shell"].as_str().unwrap().ends_with("http://localhost:8000/start_profile"));
    assert_eq!((json["runnable"].as_bool(), json["reports"][0].as_str()), (Some(true), Some("report.nsys-rep")));
    let text = ok(&["recipes", "vllm", "--format", "text", "--", "vllm", "serve", "m"]);
    assert!(text.contains("step 7   End the server") && text.contains("env VLLM_RPC_TIMEOUT=1800000"), "{text}");
    let (_, _, note) = run(&["recipes", "light", "--", "python", "t.py", "-m", "a=1,2"]);
    assert!(note.contains("Hydra multirun"), "{note}");
}

/// Every printed script must be valid shell syntax.
#[test]
fn every_script_is_read_by_a_shell() {
    for recipe in built_in_recipes() {
        let server = recipe.id.split('-').next().unwrap();
        let served = ["vllm", "sglang"].contains(&server);
        let program = if served { [server, "serve", "it's"].to_vec() } else { vec!["python3", "it's.py"] };
        let range: &[&str] = if recipe.needs_range { &["--range", "a b"] } else { &[] };
        for format in ["script", "shell"] {
            let text = ok(&[&["recipes", recipe.id, "-o", "a b/r", "--format", format], range, &["--"], &program].concat());
            let out = Command::new("sh").args(["-n", "-c", &text]).output().unwrap();
            assert!(out.status.success(), "{}: {}\n{text}", recipe.id, String::from_utf8_lossy(&out.stderr));
        }
    }
}

#[test]
fn recipes_of_the_user_are_listed_and_checked() {
    let file = scratch().join("recipes.toml");
    let text = "[recipes.mine]\ntool = \"nsys\"\nabout = \"kernels only\"\nargv = [\"nsys\", \"profile\", \"--trace=cuda\", \"-o\", \"{OUTPUT}\"]\nenv = { A = \"1 2\" }\nreports = [\"{OUTPUT}.nsys-rep\"]\n";
    fs::write(&file, text).unwrap();
    let config = file.to_str().unwrap();
    assert!(ok(&["--config", config, "recipes"]).contains("mine"));
    assert_eq!(
        ok(&["--config", config, "recipes", "mine", "-o", "d/r", "--", "./app", "x"]),
        "A='1 2' nsys profile --trace=cuda -o d/r ./app x\n"
    );
    let (code, _, err) = run(&["--config", config, "recipes", "mien"]);
    assert!(code == 2 && err.contains("did you mean `mine`?"), "{err}");
    for (change, sentence) in [
        (("recipes.mine", "recipes.exact"), "recipe `exact`: this is a built-in name; choose another"),
        (("{OUTPUT}", "{OUT}"), "unknown placeholder {OUT}; there are {OUTPUT} and {RANGE}"),
        (("argv", "agv"), "recipes.mine: unknown key `agv`; did you mean `argv`?"),
    ] {
        fs::write(&file, text.replace(change.0, change.1)).unwrap();
        let (code, _, err) = run(&["--config", config, "recipes"]);
        assert!(code == 2 && err.contains(sentence) && err.lines().count() == 1, "{err}");
    }
}

/// The profilers installed on this machine know every option that a recipe writes.
#[test]
fn the_real_profilers_know_the_options_when_they_are_there() {
    for (tool, help) in [("nsys", &["profile", "--help"][..]), ("ncu", &["--help"])] {
        let Some(path) = on_path(tool) else {
            println!("no {tool} on PATH: not checked");
            continue;
        };
        let help = Command::new(path).args(help).output().unwrap();
        let help = String::from_utf8_lossy(&help.stdout).into_owned() + &String::from_utf8_lossy(&help.stderr);
        for recipe in built_in_recipes().filter(|r| r.tool == tool && !["vllm", "sglang"].contains(&r.id)) {
            let range: &[&str] = if recipe.needs_range { &["--range", "a"] } else { &[] };
            let json: Value =
                serde_json::from_str(&ok(&[&["recipes", recipe.id, "--format", "json"], range, &["--", "x"]].concat())).unwrap();
            for word in json["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).filter(|w| w.starts_with("--")) {
                let option = word.split('=').next().unwrap();
                assert!(help.contains(option), "{}: {option} is no option of {tool}", recipe.id);
            }
        }
    }
}

/// Mock of torch: its profiler must be started and stopped on one thread, and writes the requested output.
const TORCH: &str = r#"
import enum, gzip, json, os, signal, threading, time
class ProfilerActivity(enum.Enum):
    CPU = 1
    CUDA = 2
def supported_activities():
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}
class profile:
    def __init__(self, activities):
        self.activities = activities
    def start(self):
        self.thread, self.began = threading.get_ident(), time.time()
    def stop(self):
        assert self.thread == threading.get_ident()
        self.seconds = time.time() - self.began
    def add_metadata_json(self, key, value):
        self.said = {key: json.loads(value)}
    def export_chrome_trace(self, path):
        for name in os.environ.get("WHILE_WRITING", "").split():
            os.kill(os.getpid(), getattr(signal, name))
        with gzip.open(path, "wt") as f:
            json.dump({"activities": [a.name for a in self.activities], "seconds": self.seconds, **self.said}, f)
"#;

/// Prints its environment, then does what its arguments say.
const PROGRAM: &str = r#"
import os, pickle, signal, sys, time
class Mine: pass
assert type(pickle.loads(pickle.dumps(Mine()))) is Mine
print(sys.argv, sys.path[0], __name__, __file__, __spec__ and __spec__.name)
if sys.argv[1] == "none": sys.exit(0)
import torch
if sys.argv[1] == "exit": sys.exit(7)
if sys.argv[1] == "raise": raise ValueError("x")
if sys.argv[1] == "sleep": time.sleep(6); print("slept")
if sys.argv[1] == "term": os.chdir("/"); os.kill(os.getpid(), signal.SIGTERM); time.sleep(20)
if sys.argv[1] == "int": os.kill(os.getpid(), signal.SIGINT); time.sleep(20)
if sys.argv[1] == "fork":
    pid = os.fork()
    if pid == 0: sys.exit(5)
    print(os.waitpid(pid, 0)[1] >> 8)
"#;

struct Traced {
    folder: PathBuf,
}

impl Traced {
    /// A folder with a program, a module, the torch mock and the recipe's script.
    fn new() -> Self {
        let folder = tempfile::tempdir_in(scratch()).unwrap().keep();
        fs::create_dir_all(folder.join("lib/torch")).unwrap();
        fs::create_dir_all(folder.join("pkg")).unwrap();
        fs::write(folder.join("lib/torch/__init__.py"), "").unwrap();
        fs::write(folder.join("lib/torch/profiler.py"), TORCH).unwrap();
        fs::write(folder.join("pkg/p.py"), PROGRAM).unwrap();
        Self { folder }
    }

    fn start(&self, torch: bool, argv: &[String]) -> Output {
        self.start_with(torch, argv, "")
    }

    fn start_with(&self, torch: bool, argv: &[String], while_writing: &str) -> Output {
        let mut command = Command::new(&argv[0]);
        command.env("WHILE_WRITING", while_writing);
        command.args(&argv[1..]).current_dir(&self.folder).env_remove("RANK").env_remove("SLURM_PROCID");
        if torch {
            command.env("PYTHONPATH", self.folder.join("lib"));
        }
        command.output().unwrap()
    }

    /// Runs the program without the recipe, and with it.
    fn both(&self, program: &str, seconds: &str) -> (Output, Output) {
        let (plain, argv) = self.commands(program, seconds);
        (self.start(true, &plain), self.start(true, &argv))
    }

    /// Words of the plain command, and of the recipe's command; writes the files that the recipe needs.
    fn commands(&self, program: &str, seconds: &str) -> (Vec<String>, Vec<String>) {
        let words: Vec<&str> = program.split(' ').collect();
        let json = ok(&[&["recipes", "torch", "-o", "out/t", "--seconds", seconds, "--format", "json", "--"], &words[..]].concat());
        let json: Value = serde_json::from_str(&json).unwrap();
        fs::create_dir_all(self.folder.join("out")).unwrap();
        for file in json["files"].as_array().unwrap() {
            let path = self.folder.join("out").join(file["path"].as_str().unwrap());
            fs::write(path, file["text"].as_str().unwrap()).unwrap();
        }
        let argv: Vec<String> = json["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect();
        (words.iter().map(|w| (*w).to_owned()).collect(), argv)
    }

    fn trace(&self) -> Option<Value> {
        let path = self.folder.join("out/t.pt.trace.json.gz");
        let bytes = fs::read(&path).ok()?;
        fs::remove_file(path).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
        Some(serde_json::from_str(&text).unwrap())
    }
}

fn python() -> bool {
    let there = on_path("python3").is_some_and(|p: PathBuf| Path::new(&p).exists());
    if !there {
        println!("no python3 on PATH: not checked");
    }
    there
}

#[test]
fn a_traced_program_is_as_it_is_without() {
    if !python() {
        return;
    }
    let t = Traced::new();
    for program in [
        "python3 pkg/p.py ok a.b=c",
        "python3 -u -m pkg.p ok -m",
        "python3 pkg/p.py exit",
        "python3 pkg/p.py raise",
        "python3 -m pkg.p raise",
        "python3 pkg/p.py int",
        "python3 pkg/p.py term",
        "python3 pkg/p.py fork",
    ] {
        let (plain, traced) = t.both(program, "60");
        assert_eq!(traced.status, plain.status, "{program}");
        assert_eq!(String::from_utf8_lossy(&traced.stdout), String::from_utf8_lossy(&plain.stdout), "{program}");
        let own = |out: &Output| {
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            text.lines().filter(|l| !l.starts_with("warpscope: ")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(own(&traced), own(&plain), "{program}: the traceback");
        let trace = t.trace().unwrap_or_else(|| panic!("{program}: no trace: {}", String::from_utf8_lossy(&traced.stderr)));
        assert_eq!(trace["activities"].to_string(), r#"["CPU","CUDA"]"#, "{program}");
        let said = &trace["warpscope"];
        let argv: Vec<&str> = said["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
        assert_eq!(argv.join(" ").split_once(' ').unwrap().1, program.split_once(' ').unwrap().1, "how to run it again");
        assert!(argv[0].contains("python3"), "{argv:?}");
        assert_eq!((said["whole"].as_bool(), said["directory"].as_str()), (Some(true), t.folder.to_str()), "{program}");
        let rest: Vec<_> = fs::read_dir(t.folder.join("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(rest, ["t.torch.py"], "{program}: nothing else is left");
    }
}

#[test]
fn a_trace_ends_in_time_and_says_why_there_is_none() {
    if !python() {
        return;
    }
    let t = Traced::new();
    let (_, out) = t.both("python3 pkg/p.py sleep", "0");
    assert!(String::from_utf8_lossy(&out.stdout).ends_with("slept\n") && out.status.success());
    let seconds = t.trace().unwrap()["seconds"].as_f64().unwrap();
    assert!(seconds < 5.5, "the program went on for six seconds: {seconds}");
    let (_, out) = t.both("python3 pkg/p.py none", "60");
    assert!(out.status.success() && t.trace().is_none());
    assert!(String::from_utf8_lossy(&out.stderr).contains("the program did not import torch"));
    let (plain, out) = t.both("python3 pkg/absent.py", "60");
    assert_eq!((out.status, out.stderr), (plain.status, plain.stderr));
    if t.start(false, &["python3", "-c", "import torch"].map(str::to_owned)).status.success() {
        println!("this python3 has torch: its absence is not checked");
        return;
    }
    let argv = ["python3", "out/t.torch.py", "--seconds", "1", "--trace", "out/t.gz", "pkg/p.py", "ok"].map(str::to_owned);
    let out = t.start(false, &argv);
    assert_eq!(out.status.code(), Some(NO_TORCH));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(text.contains("has no torch: install it there") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_trace_that_is_being_written_is_written_to_its_end() {
    use std::os::unix::process::ExitStatusExt;
    if !python() {
        return;
    }
    let t = Traced::new();
    let (_, argv) = t.commands("python3 pkg/p.py ok", "60");
    for (signals, code, signal) in
        [("SIGTERM", None, Some(15)), ("SIGHUP SIGHUP", None, Some(1)), ("SIGINT SIGTERM", None, Some(15)), ("SIGINT", Some(130), Some(2))]
    {
        let out = t.start_with(true, &argv, signals);
        assert!(t.trace().is_some(), "{signals}: {}", String::from_utf8_lossy(&out.stderr));
        let ended = out.status;
        assert!(ended.signal() == signal || code.is_some() && ended.code() == code, "{signals}: {ended:?}");
    }
    // Killed by a signal, with another signal while the trace is written.
    let (_, argv) = t.commands("python3 pkg/p.py term", "60");
    let out = t.start_with(true, &argv, "SIGTERM");
    assert!(t.trace().is_some() && out.status.signal() == Some(15), "{:?}", out.status);
}
