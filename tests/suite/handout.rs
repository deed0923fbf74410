//! Shareable reports: their contents, and what they must never contain.

use super::support::{edited, packed, root, run, scratch};
use std::path::{Path, PathBuf};

fn written(files: &[&Path], end: &str, more: &[&str]) -> String {
    let out: PathBuf = tempfile::Builder::new().suffix(end).tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    let files: Vec<&str> = files.iter().map(|f| f.to_str().unwrap()).collect();
    let (code, _, err) = run(&[&["report"], &files[..], &["--force", "-o", out.to_str().unwrap()], more].concat());
    assert_eq!(code, 0, "{err}");
    std::fs::read_to_string(out).unwrap()
}

/// Checks that opening and closing tags nest.
fn well_formed(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.split_once("</style>").unwrap().1.split_once("</head>").unwrap().1;
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            let last = open.pop();
            // `html` was opened before the checked part.
            assert!(last == Some(name) || last.is_none() && name == "html", "</{name}> closes {last:?}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Every command that prints a document can print it as text, Markdown and HTML.
#[test]
fn documents_have_three_forms() {
    const LLM: &str = "fixtures/demo/llm.sqlite.zst";
    const ZOO: &str = "fixtures/demo/zoo.ncu-rep.zst";
    let jobs = scratch().join("three_forms.yaml");
    std::fs::write(&jobs, "jobs:\n  - pmc: [SQ_WAVES]\n    kernel_include_regex: gemm\n").unwrap();
    let (slow, others) = ("fixtures/triage/slow_rank_rank1.sqlite.zst", "fixtures/triage/slow_rank_rank0.sqlite.zst");
    let commands: [(&[&str], &str); 11] = [
        (&["triage", LLM], "launch-bound"),
        (&["triage", slow, others], "all_reduce"),
        (&["ranks", slow, others], "all_reduce"),
        (&["memory", "fixtures/torch/memory/leak.pickle.gz"], "leak (mem.py:7)"),
        (&["hints", ZOO], "dram-bandwidth-bound"),
        (&["hints", ZOO, "--explain"], "at its limit"),
        (&["diff", LLM, "fixtures/nsys/whole_llm.sqlite.zst"], "kernel time"),
        (&["rerun", LLM, "--top", "1"], "--launch-count"),
        (&["recipes", "trace", "--", "./app", "<&>"], "nsys"),
        (&["recipes", "check", jobs.to_str().unwrap()], "SQ_WAVES"),
        (&["doctor"], "terminal"),
    ];
    for (command, says) in commands {
        for format in ["table", "md", "html"] {
            // Options precede the program of `recipes`.
            let (name, rest) = command.split_at(1 + usize::from(command.get(1) == Some(&"check")));
            let (_, out, err) = run(&[name, &["--format", format], rest].concat());
            assert!(out.replace('\\', "").contains(says), "{command:?} {format}: {says}\n{out}{err}");
            assert_eq!(out.starts_with("<!DOCTYPE html>"), format == "html", "{command:?} {format}");
            if format == "html" {
                well_formed(&out);
            }
        }
    }
    let (code, _, err) = run(&["hints", ZOO, "--explain", "--format", "csv"]);
    assert!(code == 2 && err.contains("--explain is for people"), "{code} {err}");
}

#[test]
fn pages_of_all_kinds_of_reports() {
    let at = |name: &str| root().join("fixtures").join(name);
    for (file, says) in [
        ("demo/llm.sqlite.zst", vec!["launch-bound", "Where the time went", "ncu --config-file off --kernel-name", "NVIDIA H200"]),
        ("demo/llm_decode.ncu-rep.zst", vec!["Kernels that were measured", "workload-imbalance", "--launch-skip"]),
        ("torch/memory/leak.pickle.gz", vec!["growth", "leak (mem.py:7)", "Memory"]),
        ("torch/llm.pt.trace.json.gz", vec!["Where the time went"]),
    ] {
        let html = written(&[&at(file)], ".html", &[]);
        well_formed(&html);
        let markdown = written(&[&at(file)], ".md", &[]);
        for word in says {
            assert!(html.contains(word), "{file}: {word}");
            assert!(markdown.replace('\\', "").contains(word), "{file}: {word}");
        }
        // The page loads no resources and runs no scripts.
        let lower = html.to_lowercase();
        for never in ["<script", "href=", "src=", "url(", "@import", "javascript:", "onload"] {
            assert!(!lower.contains(never), "{file}: {never}");
        }
    }
    let rank = |r: u32| at(&format!("triage/slow_rank_rank{r}.sqlite.zst"));
    let job = written(&[&rank(0), &rank(1)], ".html", &[]);
    well_formed(&job);
    assert!(job.contains("rank 1 arrives last"));
}

#[test]
fn texts_are_only_texts_and_paths_stay_at_home() {
    let evil = "'<script>alert(1)</script>&\"''`|' || char(27) || '[2J /home/me/secret/run.py'";
    let file = edited(
        "single",
        &format!(
            "UPDATE StringIds SET value = {evil} WHERE id IN (SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL)"
        ),
    );
    let html = written(&[&file], ".html", &[]);
    well_formed(&html);
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;") && !html.contains('\u{1b}'));
    // A command keeps the kernel's exact name, even with special characters: otherwise it would select another kernel.
    let (mut told, mut rest) = (String::new(), &*html);
    while let Some((before, after)) = rest.split_once("<pre>") {
        told.push_str(before);
        rest = after.split_once("</pre>").unwrap().1;
    }
    told.push_str(rest);
    assert!(!told.contains("/home/me") && told.contains("run.py"), "{told}");
    let markdown = written(&[&file], ".md", &[]);
    assert!(!markdown.contains("<script") || markdown.contains("\\<script"), "{markdown}");
    assert!(!markdown.contains('\u{1b}'));
    assert!(markdown.lines().filter(|l| !l.starts_with("ncu ")).all(|l| !l.contains("/home/me")), "{markdown}");
    assert!(written(&[&file], ".html", &["--paths"]).contains("/home/me/secret"));
    // The report must not contain the machine's environment variables.
    for name in ["single", "llm"] {
        let path = if name == "llm" { root().join("fixtures/demo/llm.sqlite.zst") } else { packed(name) };
        let html = written(&[&path], ".html", &["--paths"]);
        assert!(!html.contains("LD_LIBRARY_PATH") && !html.contains("HOSTNAME"), "{name}");
    }
}

#[test]
fn what_cannot_be_written_is_said() {
    let single = packed("single");
    let said = |args: &[&str]| run(&[&["report", single.to_str().unwrap()], args].concat());
    let (code, _, err) = said(&["-o", scratch().join("x.pdf").to_str().unwrap()]);
    assert!(code == 2 && err.contains(".html or .md"), "{err}");
    let own = scratch().join("own.md");
    std::fs::copy(&single, &own).unwrap();
    let (code, _, err) = run(&["report", own.to_str().unwrap(), "-o", own.to_str().unwrap(), "--force"]);
    assert!(code == 2 && err.contains("the report itself"), "{err}");
    let out = scratch().join("twice.md");
    assert_eq!(said(&["-o", out.to_str().unwrap()]).0, 0);
    let (code, _, err) = said(&["-o", out.to_str().unwrap()]);
    assert!(code == 2 && err.contains("--force replaces it"), "{err}");
    let (code, _, err) = run(&["report", packed("nogpu").to_str().unwrap(), "-o", scratch().join("n.md").to_str().unwrap()]);
    assert!(code == 2 && err.contains("nothing ran on a GPU"), "{err}");
}
