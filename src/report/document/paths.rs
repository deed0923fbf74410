//! Removal of private data from a shareable report: reduces paths to file names and drops secrets.

use crate::rerun::shell;

/// Characters that may precede a path in a string.
const BEFORE: &str = "\"'`=(,:[|;{@";
/// ncu options whose values are names of kernels and ranges, never paths.
const NAMES: [&str; 5] = ["--kernel-name", "--nvtx-include", "--nvtx-exclude", "--kernel-id", "--kernel-include-regex"];
/// Words in option names that indicate a secret value.
const SECRETS: [&str; 5] = ["token", "secret", "password", "passwd", "api-key"];

/// Returns the file name of a Unix or Windows path, ignoring trailing separators.
fn last_part(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns true if the string begins with a local path: an absolute path, a path in a home or parent folder, or a
/// Windows path.
fn starts_with_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    let windows = matches!(bytes, [drive, b':', b'\\', ..] if drive.is_ascii_alphabetic()) || text.starts_with("\\\\");
    let home = text.starts_with('~') && text.contains('/') || text.starts_with("$HOME") || text.starts_with("../");
    // A lone slash is not a path.
    let root = text.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || "._-~".contains(c)));
    windows || home || root
}

/// Returns the string with every path reduced to its last part. URLs are kept.
pub fn strip_paths(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let begins = before.is_none_or(|b| b.is_whitespace() || BEFORE.contains(b));
        let url = out.ends_with(':') && rest.starts_with("//");
        if url || !begins || !starts_with_path(rest) {
            // Keep the rest of a URL.
            let end = if url { rest.find(char::is_whitespace).unwrap_or(rest.len()) } else { c.len_utf8() };
            out.push_str(&rest[..end]);
            before = rest[..end].chars().last();
            rest = &rest[end..];
            continue;
        }
        // The colon of a drive letter does not end the path.
        let end = rest.char_indices().skip(2).find(|(_, c)| c.is_whitespace() || "\"'`),:;]>".contains(*c)).map_or(rest.len(), |e| e.0);
        let name = last_part(&rest[..end]);
        out.push_str(name);
        before = name.chars().last().or(Some('/'));
        rest = &rest[end..];
    }
    out
}

/// Removes a path or secret from an argument of a command.
fn redact_word(word: &str, named: bool) -> String {
    if named {
        return word.to_owned();
    }
    if let Some((option, value)) = word.split_once('=') {
        let lower = option.to_lowercase();
        if SECRETS.iter().any(|s| lower.contains(s)) {
            return format!("{option}=…");
        }
        return if starts_with_path(value) { format!("{option}={}", last_part(value)) } else { word.to_owned() };
    }
    // For example, `-I/usr/include`.
    let (option, value) = match word.as_bytes() {
        [b'-', letter, ..] if letter.is_ascii_alphabetic() => word.split_at(2),
        _ => ("", word),
    };
    if value.contains("://") {
        word.to_owned()
    } else if starts_with_path(value) {
        format!("{option}{}", last_part(value))
    } else {
        strip_paths(word)
    }
}

/// A command on a single line; `paths` keeps it unchanged.
pub fn command_line(argv: &[String], paths: bool) -> String {
    if paths {
        return shell::command_line(argv);
    }
    let mut out: Vec<String> = Vec::with_capacity(argv.len());
    let mut secret = false;
    for (at, text) in argv.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |b| argv[b].as_str());
        out.push(if std::mem::take(&mut secret) { "…".to_owned() } else { redact_word(text, NAMES.contains(&before)) });
        let lower = text.to_lowercase();
        secret = text.starts_with("--") && !text.contains('=') && SECRETS.iter().any(|s| lower.contains(s));
    }
    shell::command_line(&out)
}

#[cfg(test)]
mod tests {
    use super::{command_line, strip_paths};

    #[test]
    fn only_names_of_files_stay() {
        assert_eq!(strip_paths("python3 /home/me/train.py --out=/data/x/ 'a b'"), "python3 train.py --out=x 'a b'");
        assert_eq!(strip_paths("step (/home/me/a.py:12), ~/b/c.py"), "step (a.py:12), c.py");
        assert_eq!(strip_paths("12 GB/s and 3/4 of /"), "12 GB/s and 3/4 of /");
        assert_eq!(strip_paths("void f<int>(int*) / é"), "void f<int>(int*) / é");
        assert_eq!(strip_paths(r"at C:\Users\a\x.py, ../b/y.py;$HOME/z |/a/b"), "at x.py, y.py;z |b");
        assert_eq!(strip_paths("see http://a.example/b/c and file:///d/e"), "see http://a.example/b/c and file:///d/e");
    }

    #[test]
    fn commands_stay_commands() {
        let of = |words: &[&str]| command_line(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>(), false);
        assert_eq!(
            of(&["ncu", "--kernel-name", "f /a/b", "/opt/x y/python3", "-I/home/a/inc", "--out=/d/e f"]),
            "ncu --kernel-name 'f /a/b' python3 -Iinc '--out=e f'"
        );
        assert_eq!(of(&["x", "--token=abc", "--api-key", "def", "s3://a/b"]), "x '--token=…' --api-key '…' s3://a/b");
    }
}
