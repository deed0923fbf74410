//! Profiling capabilities of this machine for the first screen, determined only from files. `warpscope doctor` checks
//! more.

use crate::app::session::Fact;
use crate::launch::{locate_tools, tracer};
use std::path::Path;

/// Counts the GPUs with device nodes of the NVIDIA driver.
fn count_nvidia_gpus() -> usize {
    let nodes = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("nvidia").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    nodes.filter(|e| e.file_name().to_str().is_some_and(number)).count()
}

pub fn machine_facts(nsys: Option<&Path>) -> Vec<Fact> {
    let gpus = count_nvidia_gpus();
    let amd = Path::new("/dev/kfd").exists();
    let gpu = match (gpus, amd) {
        (0, false) => (false, "none: reports can be opened and compared here, and recorded on another machine".to_owned()),
        (0, true) => (true, "an AMD GPU".to_owned()),
        (n, _) => (true, format!("{}, as the NVIDIA driver says", crate::model::units::format_count(n, "GPU"))),
    };
    let tool = |name: &'static str, path: Option<std::path::PathBuf>, with: &str, without: &str| {
        let text = path.as_ref().map_or_else(|| without.to_owned(), |p| format!("{with} ({})", p.display()));
        Fact { name, there: path.is_some(), text }
    };
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(std::path::PathBuf::from);
    vec![
        Fact { name: "GPU", there: gpu.0, text: gpu.1 },
        tool(
            "libcupti",
            tracer::find_libraries(Path::new("/"), &["python3".to_owned()], variable).into_iter().next().map(|l| l.path),
            "the built-in tracer records: warpscope run -- PROGRAM",
            "not found: the built-in tracer needs a program that brings it, as PyTorch does",
        ),
        tool(
            "nsys",
            locate_tools::find_nsys(nsys).into_iter().find(|p| p.is_file()),
            "records OS calls, CPU samples and Python stacks, too (warpscope recipes)",
            "not found: needed only for OS calls, CPU samples and GPU metrics",
        ),
        tool(
            "ncu",
            locate_tools::find_tool("ncu"),
            "measures single launches: r and R in the explorer",
            "not found: its reports can be opened",
        ),
        tool("rocprofv3", locate_tools::find_tool("rocprofv3"), "records programs on AMD GPUs", "not found (AMD GPUs only)"),
    ]
}
