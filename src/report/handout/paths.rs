//! Paths are nobody's business but the machine's: what a report that is handed on says of them is the file's name.

/// The text with every absolute path in it cut to its last part.
#[must_use]
pub fn without(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let begins = before.is_none_or(|b| b.is_whitespace() || "\"'`=(,:[".contains(b));
        let path = if begins && (rest.starts_with('/') || rest.starts_with("~/")) {
            let end = rest.find(|c: char| c.is_whitespace() || "\"'`),:;]>".contains(c)).unwrap_or(rest.len());
            Some(&rest[..end])
        } else {
            None
        };
        match path {
            Some(path) if path.trim_end_matches('/').len() > 1 => {
                let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                out.push_str(name);
                before = name.chars().last();
                rest = &rest[path.len()..];
            }
            _ => {
                out.push(c);
                before = Some(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn only_names_of_files_stay() {
        assert_eq!(without("python3 /home/me/train.py --out=/data/x/ 'a b'"), "python3 train.py --out=x 'a b'");
        assert_eq!(without("step (/home/me/a.py:12), ~/b/c.py"), "step (a.py:12), c.py");
        assert_eq!(without("12 GB/s and 3/4 of /"), "12 GB/s and 3/4 of /");
        assert_eq!(without("void f<int>(int*) / é"), "void f<int>(int*) / é");
    }
}
