//! `warpscope mcp`: a Model Context Protocol server over stdin and stdout, for agents that do not use a shell.
//!
//! Each tool call runs a warpscope command in its own process and returns the resulting JSON, so a damaged or slow
//! report only affects that process.

/// `warpscope mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArgs {
    /// Folders whose reports may be read, with those below [default: the current folder].
    #[arg(value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
}

mod call;
mod folders;
mod message;
mod tools;

use super::failure::Failure;
use super::print;
use call::Calls;
use folders::Folders;
use message::{Event, Incoming, METHOD_NOT_FOUND, error_reply, reply};
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Protocol versions to which this server's messages conform, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Serves requests until the client closes stdin.
pub fn serve(args: &McpArgs) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        print::note("a server for coding agents, which reads JSON-RPC from stdin; `warpscope help agent` says how to register it");
    }
    let folders = Folders::new(&args.folders).map_err(Failure::wrong)?;
    let (send, events) = channel();
    let lines = send.clone();
    std::thread::spawn(move || read_messages(&lines));
    let result = answer_events(&folders, &events, send);
    match result {
        // A broken pipe means that the client is gone.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Maximum size of a message, bytes: requests are small.
const LONGEST: u64 = 1 << 20;

fn read_messages(send: &Sender<Event>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let Ok(1..) = input.by_ref().take(LONGEST).read_until(b'\n', &mut line) else { break };
        let message = if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
            // The rest of the line is not a message either.
            if input.skip_until(b'\n').is_err() {
                break;
            }
            Incoming::refuse("a message has at most 1 MiB")
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            Incoming::parse(&line)
        };
        if send.send(Event::Message(message)).is_err() {
            return;
        }
    }
    let _ = send.send(Event::Closed);
}

fn answer_events(folders: &Folders, events: &Receiver<Event>, done: Sender<Event>) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let mut write = |message: &Value| -> std::io::Result<()> {
        writeln!(out, "{message}")?;
        out.flush()
    };
    let mut calls = Calls::new(done);
    let mut closed = false;
    // Requests sent before the client closed its end are still answered.
    while !(closed && calls.is_empty())
        && let Ok(event) = events.recv()
    {
        match event {
            Event::Closed => closed = true,
            Event::Done(id, answer) => {
                if calls.end(&id) {
                    write(&reply(&id, &answer))?;
                }
            }
            Event::Message(Incoming::Wrong(answer)) => write(&answer)?,
            Event::Message(Incoming::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    calls.cancel(&params["requestId"]);
                }
            }
            Event::Message(Incoming::Request { id, method, params }) => {
                if let Some(answer) = answer_request(folders, &mut calls, &id, &method, &params) {
                    write(&answer)?;
                }
            }
        }
    }
    Ok(())
}

/// Answers a request, or starts the call that will answer it.
fn answer_request(folders: &Folders, calls: &mut Calls, id: &Value, method: &str, params: &Value) -> Option<Value> {
    let result = match method {
        "initialize" => json!({
            "protocolVersion": negotiate(params["protocolVersion"].as_str()),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "warpscope", "version": env!("CARGO_PKG_VERSION") },
            "instructions": tools::INSTRUCTIONS,
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools::list_tools() }),
        "tools/call" => match tools::plan_call(folders, params["name"].as_str().unwrap_or_default(), &params["arguments"]) {
            Ok(tools::Planned::Run(_)) if calls.has(id) => {
                return Some(error_reply(id, message::INVALID_REQUEST, "a request with this id is in progress"));
            }
            Ok(tools::Planned::Run(args)) => {
                calls.start(id, args);
                return None;
            }
            Ok(tools::Planned::Known(answer)) => message::tool_result(&answer.to_string(), false),
            Err(tools::Refused::Unknown(text)) => return Some(error_reply(id, message::INVALID_PARAMS, &text)),
            Err(tools::Refused::Argument(text)) => message::tool_result(&text, true),
        },
        _ => return Some(error_reply(id, METHOD_NOT_FOUND, &format!("this server has no method {method:?}"))),
    };
    Some(reply(id, &result))
}

/// The client's protocol version if the server supports it, otherwise the newest version that the server supports.
fn negotiate(wanted: Option<&str>) -> &'static str {
    VERSIONS.into_iter().find(|v| Some(*v) == wanted).unwrap_or(VERSIONS[0])
}
