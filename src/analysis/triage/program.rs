//! Kind of the program that was recorded.

use crate::model::{Profile, RangeOrigin};
use std::path::Path;

/// Programs that are written in Python, or that run others which may be.
const RUN_PYTHON: &[&str] = &[
    "accelerate",
    "bash",
    "conda",
    "deepspeed",
    "env",
    "ipython",
    "jupyter",
    "make",
    "mpiexec",
    "mpirun",
    "numactl",
    "pipenv",
    "poetry",
    "pytest",
    "ray",
    "sglang",
    "sh",
    "srun",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "torchrun",
    "trtllm-serve",
    "uv",
    "vllm",
    "zsh",
];

/// Returns false only if the recorded program is known and nothing about it is Python: neither its command line, nor its
/// threads, ranges and kernels.
pub fn may_be_python(profile: &Profile) -> bool {
    let Some(program) = profile.capture.argv.first() else { return true };
    let name = Path::new(program).file_name().map_or_else(String::new, |n| n.to_string_lossy().to_ascii_lowercase());
    let scripted = |word: &String| [".py", ".sh", ".ipynb"].iter().any(|end| word.ends_with(end));
    name.contains("python")
        || RUN_PYTHON.contains(&name.as_str())
        || profile.capture.argv.iter().any(scripted)
        || profile.source.tool == "torch"
        || profile.kernels.iter().any(|k| k.demangled.as_ref().is_some_and(|name| name.contains("at::native::")))
        || profile.threads.iter().any(|t| t.name.as_ref().is_some_and(|n| n.contains("python") || n.starts_with("pt_")))
        || profile.ranges.iter().any(|r| matches!(r.origin, RangeOrigin::Python | RangeOrigin::Operator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Source, Thread};

    #[test]
    fn only_a_known_program_without_a_trace_of_python_is_compiled() {
        let of = |argv: &[&str]| {
            let mut profile = Profile::new(Source::default());
            profile.capture.argv = argv.iter().map(|word| (*word).to_owned()).collect();
            profile
        };
        for (argv, python) in [
            (&[][..], true),
            (&["./launches", "single"], false),
            (&["/usr/bin/python3.12", "train"], true),
            (&["./train.py"], true),
            (&["bash", "-c", "./launches"], true),
            (&["/opt/bin/torchrun", "--nproc-per-node=2", "train"], true),
            (&["./bench", "run.sh"], true),
        ] {
            assert_eq!(may_be_python(&of(argv)), python, "{argv:?}");
        }
        let mut profile = of(&["./server"]);
        profile.threads.push(Thread { name: Some("python3".into()), ..Thread::default() });
        assert!(may_be_python(&profile));
    }
}
