//! Repairs malformed JSON written by older kineto versions and by scripts that rewrite traces: `nan` and `inf`,
//! unescaped quotes and control characters in names, invalid UTF-8, extra commas.

use std::fmt::Write;

/// Repairs these errors in a text; other errors remain.
pub fn repair_json(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = &*text;
    while let Some(c) = rest.chars().next() {
        match c {
            '"' => rest = repair_string(&rest[1..], &mut out),
            ',' if matches!(rest[1..].trim_start().chars().next(), Some('}' | ']')) => rest = &rest[1..],
            '-' | 'a'..='z' | 'A'..='Z' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len()).max(1);
                let (token, after) = rest.split_at(end);
                let number = token.trim_start_matches('-').to_ascii_lowercase();
                out.push_str(if matches!(&*number, "nan" | "inf" | "infinity") { "null" } else { token });
                rest = after;
            }
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Writes the string whose contents start at the beginning of `text`, and returns the text after it.
fn repair_string<'t>(text: &'t str, out: &mut String) -> &'t str {
    out.push('"');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '"' if matches!(after.trim_start().chars().next(), Some(',' | ':' | '}' | ']') | None) => {
                out.push('"');
                return after;
            }
            '"' => out.push_str("\\\""),
            '\\' => match escape_length(after) {
                0 => out.push_str("\\\\"),
                len => {
                    out.push_str(&rest[..=len]);
                    rest = &after[len..];
                    continue;
                }
            },
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
        rest = after;
    }
    out.push('"');
    rest
}

/// Length of an escape sequence, not counting its backslash; 0 if invalid.
fn escape_length(after: &str) -> usize {
    match after.as_bytes() {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
        [b'u', hex @ ..] if hex.len() >= 4 && hex[..4].iter().all(u8::is_ascii_hexdigit) => 5,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_traces_have_wrong() {
        for (broken, whole) in [
            (
                r#"{"a": nan, "b": -inf, "c": Infinity, "d": true, "e": -1.5e3}"#,
                r#"{"a": null, "b": null, "c": null, "d": true, "e": -1.5e3}"#,
            ),
            (r#"{"name": "say "hi" now", "x": 1}"#, r#"{"name": "say \"hi\" now", "x": 1}"#),
            (r#"{"p": "C:\path\u12", "q": "\u00e9\n"}"#, r#"{"p": "C:\\path\\u12", "q": "\u00e9\n"}"#),
            (r#"{"a": [1, 2, ], }"#, r#"{"a": [1, 2 ] }"#),
        ] {
            assert_eq!(repair_json(broken.as_bytes()), whole);
            serde_json::from_str::<serde_json::Value>(whole).unwrap();
        }
        assert_eq!(repair_json(b"{\"a\": \"x\n\xff\"}"), "{\"a\": \"x\\u000a\u{fffd}\"}");
    }
}
