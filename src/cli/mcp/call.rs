//! Calls in progress, each in its own child process.

use super::message::{Event, tool_result};
use crate::launch::child::start_own_command;
use serde_json::Value;
use std::collections::VecDeque;
use std::process::Child;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// A call and its process, shared by the server and the thread that waits for the call.
struct Call {
    id: Value,
    child: Arc<Mutex<Option<Child>>>,
}

/// Maximum number of concurrent calls: each one reads a report into memory.
const AT_ONCE: usize = 4;

/// Calls in progress, and calls waiting for one of those to end. All end with the server.
pub struct Calls {
    running: Vec<Call>,
    waiting: VecDeque<(Value, Vec<String>)>,
    done: Sender<Event>,
}

impl Drop for Calls {
    fn drop(&mut self) {
        for call in &self.running {
            stop(&call.child);
        }
    }
}

fn stop(child: &Mutex<Option<Child>>) {
    if let Some(child) = child.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        // The process may already have ended.
        let _ = child.kill();
    }
}

impl Calls {
    pub fn new(done: Sender<Event>) -> Self {
        Self { running: Vec::new(), waiting: VecDeque::new(), done }
    }

    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Returns true if a call of this request has not been answered yet.
    pub fn has(&self, id: &Value) -> bool {
        self.running.iter().any(|c| c.id == *id) || self.waiting.iter().any(|w| w.0 == *id)
    }

    /// Starts a command of this program, or queues it.
    pub fn start(&mut self, id: &Value, args: Vec<String>) {
        self.waiting.push_back((id.clone(), args));
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        while self.running.len() < AT_ONCE
            && let Some((id, args)) = self.waiting.pop_front()
        {
            let child = Arc::new(Mutex::new(None));
            self.running.push(Call { id: id.clone(), child: Arc::clone(&child) });
            let done = self.done.clone();
            std::thread::spawn(move || {
                let failed = |e| tool_result(&format!("warpscope could not be started: {e}"), true);
                let answer = run_command(&args, &child).unwrap_or_else(failed);
                // The server may have exited.
                let _ = done.send(Event::Done(id, answer));
            });
        }
    }

    /// Removes a call that has ended; returns false if it was canceled before.
    pub fn end(&mut self, id: &Value) -> bool {
        let before = self.running.len();
        self.running.retain(|c| c.id != *id);
        let ended = self.running.len() < before;
        self.start_waiting();
        ended
    }

    /// Stops a call; the protocol requires that it is not answered.
    pub fn cancel(&mut self, id: &Value) {
        for call in self.running.iter().filter(|c| c.id == *id) {
            stop(&call.child);
        }
        self.running.retain(|c| c.id != *id);
        self.waiting.retain(|w| w.0 != *id);
        self.start_waiting();
    }
}

/// Runs a command and returns its document as a tool result.
fn run_command(args: &[String], held: &Mutex<Option<Child>>) -> std::io::Result<Value> {
    // Read only stdout: the JSON document on it also contains notes and errors.
    let mut child = start_own_command(args)?;
    let output = child.stdout.take();
    *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    let mut text = String::new();
    if let Some(mut output) = output {
        std::io::Read::read_to_string(&mut output, &mut text)?;
    }
    let ended = held.lock().unwrap_or_else(PoisonError::into_inner).take();
    let status = ended.map(|mut child| child.wait()).transpose()?;
    let answered = status.is_some_and(|s| matches!(s.code(), Some(0 | 1)));
    Ok(tool_result(if text.is_empty() { "the command ended without an answer" } else { text.trim_end() }, !answered || text.is_empty()))
}
