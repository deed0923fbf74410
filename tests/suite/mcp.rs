//! `warpscope mcp`: messages that a protocol client sends and receives, and data that it must never receive.

use super::schemas::{check, validators};
use super::support::{root, scratch};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(folder: &str) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
        command.args(["mcp", folder]).env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        let mut child = command.current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, input, output, last: 0 };
        let hello = server.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(
            (&hello["result"]["protocolVersion"], &hello["result"]["serverInfo"]["name"]),
            (&json!("2025-06-18"), &json!("warpscope"))
        );
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        server
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).to_string());
        self.last
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let answer = self.read();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    /// Text of a tool's answer, and true if it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        (text, answer["result"]["isError"].as_bool().unwrap())
    }

    /// Closes the server's input, which ends the server.
    fn close(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn six_tools_answer_within_their_budget() {
    let validators = validators();
    let mut server = Server::start("fixtures");
    let list = server.ask("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["open", "verdict", "kernels", "explain_kernel", "rerun_command", "diff"]);
    for tool in tools {
        jsonschema::meta::validate(&tool["inputSchema"]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
    }
    let llm = "demo/llm.sqlite.zst";
    for (tool, arguments, schema) in [
        ("open", json!({"path": llm}), "top"),
        ("verdict", json!({"path": llm}), "triage"),
        ("verdict", json!({"path": llm, "phase": "start-up", "budget": 1000}), "triage"),
        ("kernels", json!({"path": llm, "by": "config", "limit": 4}), "top"),
        ("explain_kernel", json!({"path": "demo/zoo.ncu-rep.zst"}), "hints"),
        ("explain_kernel", json!({"path": llm, "kernel": "CatArrayBatchedCopy"}), "hints"),
        ("rerun_command", json!({"path": llm, "kernel": "CatArrayBatchedCopy", "question": "memory"}), "rerun"),
        ("diff", json!({"before": llm, "after": "nsys/whole_llm.sqlite.zst"}), "diff"),
    ] {
        let (text, wrong) = server.call(tool, &arguments);
        assert!(!wrong && text.len() <= 8_800, "{tool} {arguments}: {} bytes: {text}", text.len());
        assert_eq!(check(&validators, &[tool], &text), schema);
    }
    let (text, wrong) = server.call("open", &json!({"budget": 1000}));
    let found: Value = serde_json::from_str(&text).unwrap();
    assert!(!wrong && text.len() <= 4_400 && found["found"].as_u64().unwrap() > 100, "{text}");
    let (text, _) = server.call("open", &json!({"path": "ranks"}));
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert!(listed["reports"].as_array().unwrap().iter().all(|r| r["path"].as_str().unwrap().contains("/fixtures/ranks/")), "{text}");
    server.close();
}

#[test]
fn what_is_wrong_is_said_and_nothing_else_is_read() {
    let mut server = Server::start("fixtures/demo");
    for (tool, arguments, says) in [
        ("verdict", json!({"path": "../triage/item_loop.sqlite.zst"}), "no such report in"),
        ("verdict", json!({"path": root().join("fixtures/triage/item_loop.sqlite.zst")}), "no such report in"),
        ("verdict", json!({"path": "/etc/passwd"}), "no such report in"),
        ("verdict", json!({"path": "--help"}), "no such report in"),
        ("verdict", json!({}), "needs the argument \"path\""),
        ("verdict", json!({"path": "zoo.ncu-rep.zst"}), "has no timeline"),
        ("kernels", json!({"path": "llm.sqlite.zst", "by": "colour"}), "is none of kernel"),
        ("kernels", json!({"path": "llm.sqlite.zst", "limit": -1}), "not of type integer"),
        ("kernels", json!({"path": "llm.sqlite.zst", "sort": "x"}), "has no argument \"sort\""),
        ("explain_kernel", json!({"path": "llm.sqlite.zst", "kernel": "--explain"}), "no kernel matches"),
    ] {
        let (text, wrong) = server.call(tool, &arguments);
        assert!(wrong && text.contains(says), "{tool} {arguments}: {text}");
    }
    assert_eq!(server.ask("tools/call", &json!({"name": "rm"}))["error"]["code"], -32602);
    assert_eq!(server.ask("resources/list", &json!({}))["error"]["code"], -32601);
    assert_eq!(server.ask("ping", &json!({}))["result"], json!({}));
    server.send("{\"jsonrpc\": \"2.0\", \"id\"");
    assert_eq!(server.read()["error"]["code"], -32700);
    // Invalid UTF-8 and a message without an end are refused, and the next message is answered.
    server.input.as_mut().unwrap().write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(server.read()["error"]["code"], -32700);
    server.send(&"x".repeat(3 << 20));
    assert_eq!(server.read()["error"]["message"], "a message has at most 1 MiB");
    assert_eq!(server.ask("ping", &json!({}))["result"], json!({}));
    server.close();
}

/// Calls are queued, and a call that reuses the id of another one is refused.
#[test]
fn many_calls_are_answered_once_each() {
    let mut server = Server::start("fixtures");
    let arguments = json!({"name": "kernels", "arguments": {"path": "demo/llm.sqlite.zst", "limit": 1}});
    let mut asked: Vec<u64> = (0..12).map(|_| server.request("tools/call", &arguments)).collect();
    server.send(&json!({"jsonrpc": "2.0", "id": server.last, "method": "tools/call", "params": arguments}).to_string());
    asked.push(server.last);
    let answers: Vec<Value> = asked.iter().map(|_| server.read()).collect();
    assert_eq!(answers.iter().filter(|a| a["error"]["code"] == -32600).count(), 1, "{answers:?}");
    let mut ids: Vec<u64> = answers.iter().map(|a| a["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, asked);
    server.close();
}

/// A cancelled call has no answer; the other calls run independently of it, and are answered before the server ends.
#[test]
fn calls_are_cancelled_and_run_beside_each_other() {
    let mut server = Server::start("fixtures");
    let arguments = json!({"name": "verdict", "arguments": {"path": "demo/llm.sqlite.zst"}});
    let first = server.request("tools/call", &arguments);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": first}}).to_string());
    let others: Vec<u64> = (0..3).map(|_| server.request("tools/call", &arguments)).collect();
    let mut answered: Vec<u64> = (0..3).map(|_| server.read()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, others);
    // Requests from before the end of the input are answered.
    let last = server.request("tools/call", &arguments);
    server.input = None;
    assert_eq!(server.read()["id"], last);
    assert!(server.child.wait().unwrap().success());
}
