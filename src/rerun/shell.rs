//! Quotes words for POSIX shells and escapes special characters in profiler options.

use crate::model::text::is_unsafe_to_show;
use std::fmt::Write;

/// Returns true if a word needs no quoting in a POSIX shell.
fn is_bare(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b))
}

/// Quotes a word for a POSIX shell. Uses only single quotes, because `$`, `` ` ``, `\` and `!` are special within
/// double quotes. Control and invisible characters are produced by `printf` at run time: as literals, they could end a
/// bracketed paste and inject key presses.
pub fn quote(word: &str) -> String {
    if is_bare(word) {
        return word.to_owned();
    }
    let mut out = String::from("'");
    for c in word.chars() {
        match c {
            '\'' => out.push_str(r"'\''"),
            c if c != '\n' && is_unsafe_to_show(c) => {
                out.push_str("'\"$(printf '");
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
                out.push_str("')\"'");
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Joins the words of a command into one line.
pub fn command_line<S: AsRef<str>>(argv: &[S]) -> String {
    // A first word with `=` would set a variable instead of naming a program.
    let word = |(i, w): (usize, &S)| {
        let w = w.as_ref();
        if i == 0 && w.contains('=') && is_bare(w) { format!("'{w}'") } else { quote(w) }
    };
    argv.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// Joins words that are not the start of a command into one line.
pub fn join_words<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Formats a command over several lines, one group of words per line, joined by backslashes.
pub fn command_lines(groups: &[Vec<String>]) -> String {
    let mut groups = groups.iter().filter(|g| !g.is_empty());
    let first = groups.next().map(|g| command_line(g));
    first.into_iter().chain(groups.map(|g| join_words(g))).collect::<Vec<_>>().join(" \\\n    ")
}

/// Escapes a path for an output option of ncu or nsys: both expand `%p`, `%h`, `%q{NAME}` …, and `%%` stands for a
/// percent sign.
pub fn output_path(path: &str) -> String {
    path.replace('%', "%%")
}

/// Escapes a string for a Boost (Perl) regular expression, in which `<`, `>`, `&`, `:`, `,` and blanks are not special.
pub fn escape_regex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if r"\^$.|?*+()[]{}".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns a name that is suitable for a file: letters, digits, `_`, `-` and `.`, at most 48 characters.
pub fn file_stem(name: &str) -> String {
    let ok = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let stem: String = name.trim().trim_end_matches("...").chars().map(ok).take(48).collect();
    let stem = stem.trim_start_matches(['-', '.']);
    if stem.is_empty() { "kernel".to_owned() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_when_they_must_be() {
        for (word, quoted) in [
            ("saxpy", "saxpy"),
            ("--set=basic", "--set=basic"),
            ("", "''"),
            ("a b", "'a b'"),
            ("print('it')", r"'print('\''it'\'')'"),
            ("foo(int *)", "'foo(int *)'"),
            ("$HOME `x` \"y\" !z", "'$HOME `x` \"y\" !z'"),
            ("a\nb", "'a\nb'"),
            ("é", "'é'"),
            ("r_100%%", "r_100%%"),
        ] {
            assert_eq!(quote(word), quoted);
        }
        assert_eq!(command_line(&["A=b", "c=d"]), "'A=b' c=d");
        assert_eq!(command_lines(&[vec!["ncu".into()], vec![], vec!["-k".into(), "a b".into()]]), "ncu \\\n    -k 'a b'");
    }

    #[test]
    fn names_become_regular_expressions_and_file_names() {
        assert_eq!(escape_regex("void vk<int (*)(float, char)>(T1 *)"), r"void vk<int \(\*\)\(float, char\)>\(T1 \*\)");
        assert_eq!(output_path("r_100%"), "r_100%%");
        assert_eq!(file_stem("void a::b<c>(d)"), "void_a__b_c__d_");
        assert_eq!(file_stem("../../x"), "_.._x");
        assert_eq!(file_stem("--x"), "x");
        assert_eq!(file_stem(" "), "kernel");
    }
}
