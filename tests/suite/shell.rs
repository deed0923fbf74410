//! Round trip of any name: argv → shell text → `sh` → argv.

use super::rerun::{based, one, profile};
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use warpscope::model::{Kernel, NameForm};
use warpscope::rerun::{Options, Plan, script, shell};

/// Splits a text with a POSIX shell and returns the words.
fn words(text: &str) -> Vec<String> {
    let mut sh = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sh.stdin.take().unwrap().write_all(format!("set -- {text}\nprintf '%s\\0' \"$@\"\n").as_bytes()).unwrap();
    let out = sh.wait_with_output().unwrap();
    assert!(out.status.success(), "{text}");
    let mut words: Vec<String> = String::from_utf8(out.stdout).unwrap().split('\0').map(str::to_owned).collect();
    words.pop();
    words
}

/// Text rich in characters that are special to a shell.
fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -~]{1,12}",
        2 => prop::sample::select(vec!["'", "\"", "$(id)", "`id`", "\n", " ", "<>()&*", "\\", "!x", "#", "~", "$HOME", "a;b", "|", "%s", "${x}", "\t", "--", "=", "カ", "é", "\u{202e}", "\u{1b}[2J"]).prop_map(str::to_owned),
        1 => "\\PC{1,8}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_survive_the_shell(argv in prop::collection::vec(name(), 1..6)) {
        prop_assert_eq!(words(&shell::command_line(&argv)), argv.clone());
        // Also over several lines.
        let groups: Vec<Vec<String>> = argv.iter().map(|w| vec![w.clone()]).collect();
        prop_assert_eq!(words(&shell::command_lines(&groups)), argv);
    }

    #[test]
    fn a_regular_expression_of_a_name_matches_the_name_alone(name in name()) {
        let regex = regex::Regex::new(&format!("^(?:{})$", shell::escape_regex(&name))).unwrap();
        prop_assert!(regex.is_match(&name));
        let (longer, other) = (format!("{name}x"), format!("x{name}"));
        prop_assert!(!regex.is_match(&longer));
        prop_assert!(!regex.is_match(&other));
    }
}

#[test]
fn long_names_survive() {
    let long = "a'$(x)`<T *>\n".repeat(160);
    assert!(long.len() > 2000);
    assert_eq!(words(&shell::command_line(&["ncu", &long])), ["ncu".to_owned(), long]);
}

/// A kernel with a malicious name, end to end: the script runs exactly the argv.
#[test]
fn a_script_runs_the_argv_and_nothing_else() {
    let mut profile = profile("single");
    let evil = "void k<'a'>(\"$(touch pwned)\" `touch pwned`\n; touch pwned #)";
    for kernel in &mut profile.kernels {
        if kernel.function.as_deref() == Some("saxpy") {
            *kernel = Kernel { function: Some("saxpy".into()), demangled: Some(evil.into()), ..Kernel::default() };
        }
    }
    let folder = tempfile::tempdir().unwrap();
    // An `ncu` that logs its arguments.
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let fake = bin.join("ncu");
    std::fs::write(&fake, "#!/bin/sh\nprintf '%s\\0' ncu \"$@\" >>\"$WROTE\"\n").unwrap();
    let mut mode = std::fs::metadata(&fake).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&fake, mode).unwrap();
    let options =
        Options { directory: Some(folder.path().display().to_string()), output: Some("r'100%".into()), ..based(NameForm::Demangled) };
    let rerun = one(&profile, 22, &options);
    assert!(rerun.argv().contains(&evil.to_owned()) && rerun.argv().contains(&"r'100%%".to_owned()));
    let argv = rerun.argv();
    let text = script::shell_script(&Plan { commands: vec![rerun], folder: None }, "evil\nname $(touch pwned)");
    let file = folder.path().join("again.sh");
    std::fs::write(&file, &text).unwrap();
    let wrote = folder.path().join("wrote");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let status = Command::new("sh").arg(&file).env("PATH", path).env("WROTE", &wrote).current_dir(folder.path()).status().unwrap();
    assert!(status.success());
    let mut got: Vec<String> = String::from_utf8(std::fs::read(&wrote).unwrap()).unwrap().split('\0').map(str::to_owned).collect();
    got.pop();
    assert_eq!(got, argv);
    assert!(!folder.path().join("pwned").exists());
}

/// Without a program the script asks for it, so that the command cannot be run by mistake.
#[test]
fn a_program_that_nobody_named_must_be_given() {
    let mut profile = profile("single");
    profile.capture.argv.clear();
    let rerun = one(&profile, 22, &Options::default());
    assert!(!rerun.is_runnable());
    assert!(rerun.warnings.iter().any(|w| w.id == "program-unknown"));
    assert_eq!(rerun.argv().last().unwrap(), "<PROGRAM AND ITS ARGUMENTS>");
    assert!(rerun.shell_line().ends_with("'<PROGRAM AND ITS ARGUMENTS>'"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("again.sh");
    std::fs::write(&file, script::shell_script(&Plan { commands: vec![rerun], folder: None }, "x")).unwrap();
    let out = Command::new("sh").arg(&file).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("usage:"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("    \"$@\"\n"), "{text}");
    let with = one(&profile, 22, &Options { program: Some(vec!["./launches".into(), "a b".into()]), ..Options::default() });
    assert!(with.is_runnable() && with.shell_line().ends_with("./launches 'a b'"));
    drop(Arc::new(profile));
}
