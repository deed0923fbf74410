//! One command and at most 2,000 tokens answer each question of `tests/evaluation`.

use super::schemas::{check, validators};
use super::support::{root, run};
use serde_json::Value;

/// Tokens of an answer, and the size of a token, bytes.
const TOKENS: usize = 2_000;
const TOKEN: usize = 4;

#[test]
fn one_command_and_two_thousand_tokens_answer_each_question() {
    let text = std::fs::read_to_string(root().join("tests/evaluation/questions.toml")).unwrap();
    let all: toml::Table = text.parse().unwrap();
    let questions = all["question"].as_array().unwrap();
    assert_eq!(questions.len(), 20);
    let validators = validators();
    for question in questions {
        let text = |name: &str| question[name].as_str().unwrap();
        let mut files = question["files"].as_array().unwrap().iter().map(|f| format!("fixtures/{}", f.as_str().unwrap()));
        let words: Vec<String> =
            text("command").split(' ').map(|w| if w == "FILE" { files.next().unwrap() } else { w.to_owned() }).collect();
        assert_eq!(files.next(), None);
        let budget = TOKENS.to_string();
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--format", "json", "--budget", &budget]).collect();
        let (code, out, err) = run(&args);
        assert_eq!(code, 0, "{args:?}: {err}");
        assert!(out.len() <= TOKENS * TOKEN, "{}: {} bytes", text("ask"), out.len());
        check(&validators, &args, &out);
        let document: Value = serde_json::from_str(&out).unwrap();
        let expected = serde_json::to_value(&question["answer"]).unwrap();
        assert_eq!(document.pointer(text("field")), Some(&expected), "{}: {out}", text("ask"));
    }
}
