//! Messages of JSON-RPC 2.0, one per line.

use serde_json::{Value, json};

pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;

/// Event of the server's loop.
pub enum Event {
    Message(Incoming),
    /// A call ended: its request id and the answer.
    Done(Value, Value),
    /// The client closed its end.
    Closed,
}

/// Message from the client.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// Not a valid protocol message; holds the error response to send.
    Wrong(Value),
}

impl Incoming {
    /// Creates the answer to an unreadable line.
    pub fn refuse(why: &str) -> Self {
        Self::Wrong(error_reply(&Value::Null, PARSE_ERROR, why))
    }

    pub fn parse(line: &[u8]) -> Self {
        // Some clients send a byte order mark first.
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        let mut message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(e) => return Self::refuse(&format!("not JSON: {e}")),
        };
        let id = message.get("id").cloned();
        let Some(method) = message["method"].as_str().map(str::to_owned).filter(|_| message["jsonrpc"] == "2.0") else {
            return Self::Wrong(error_reply(&id.unwrap_or_default(), INVALID_REQUEST, "not a request of JSON-RPC 2.0"));
        };
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match id {
            // The answer must repeat the id exactly, but any number other than a 64-bit integer would be rounded.
            Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Self::Request { id, method, params },
            Some(_) => Self::Wrong(error_reply(&Value::Null, INVALID_REQUEST, "an id is a string or an integer of at most 64 bits")),
            None => Self::Notification { method, params },
        }
    }
}

pub fn reply(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub fn error_reply(id: &Value, code: i32, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
}

/// Result of a tool: a document or a sentence.
pub fn tool_result(text: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_other_lines_are_told_apart() {
        let request = Incoming::parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        assert_eq!(request, Incoming::Request { id: json!("a"), method: "ping".to_owned(), params: Value::Null });
        assert_eq!(Incoming::parse("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}".as_bytes()), request);
        let told = Incoming::parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"a":1}}"#);
        assert_eq!(told, Incoming::Notification { method: "notifications/initialized".to_owned(), params: json!({"a": 1}) });
        for (line, code) in [
            ("{", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("7", INVALID_REQUEST),
            ("\"\u{fffd}", PARSE_ERROR),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#, INVALID_REQUEST),
        ] {
            let Incoming::Wrong(answer) = Incoming::parse(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(answer["error"]["code"], code, "{line}");
        }
    }
}
