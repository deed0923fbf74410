//! The two regular expression engines of rocprofv3: `std::regex` (ECMAScript) up to `ROCm` 7.0, and AMD's own since
//! 7.1. AMD's engine has no non-capturing groups, look-around, back-references or `\b`, and does not backtrack into
//! groups and alternatives. The implementation follows the source of AMD's engine (`lib/common/regex.cpp`) and was
//! checked against a model of that engine.

/// Maximum number of steps of a search.
const STEPS: u32 = 4_000_000;
/// Maximum estimated number of paths for the older engine, which has no backtracking limit of its own: three `.*` on a
/// name of 190 characters.
const MOST_WAYS: f64 = 268_435_456.0;
/// Maximum depth of nested groups.
const DEEPEST: u32 = 64;

#[derive(Debug)]
enum Node {
    Letter(char),
    Any,
    Begin,
    End,
    Set { negated: bool, items: Vec<Item> },
    Group(Box<Node>),
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeat { of: Box<Node>, least: usize, most: Option<usize>, greedy: bool },
}

#[derive(Debug)]
enum Item {
    Between(char, char),
    Class(char),
}

impl Item {
    fn matches_char(&self, c: char) -> bool {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
        match *self {
            Self::Between(low, high) => (low..=high).contains(&c),
            Self::Class('d') => c.is_ascii_digit(),
            Self::Class('D') => !c.is_ascii_digit(),
            Self::Class('w') => word(c),
            Self::Class('W') => !word(c),
            Self::Class('s') => space(c),
            Self::Class(_) => !space(c),
        }
    }
}

fn is_class(c: char) -> bool {
    matches!(c, 'd' | 'D' | 'w' | 'W' | 's' | 'S')
}

/// Returns the character that an escape stands for if it is not a class.
fn unescape_char(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'f' => '\x0c',
        'v' => '\x0b',
        other => other,
    }
}

struct Reader<'a> {
    text: &'a [char],
    at: usize,
    depth: u32,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn consume_char(&mut self, c: char) -> bool {
        let is = self.peek() == Some(c);
        self.at += usize::from(is);
        is
    }

    fn parse_alternatives(&mut self) -> Result<Node, String> {
        let mut branches = vec![self.parse_sequence()?];
        while self.consume_char('|') {
            branches.push(self.parse_sequence()?);
        }
        Ok(if branches.len() == 1 { branches.swap_remove(0) } else { Node::Either(branches) })
    }

    fn parse_sequence(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while self.peek().is_some_and(|c| c != ')' && c != '|') {
            nodes.push(self.parse_repeat()?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::Sequence(nodes) })
    }

    /// Parses `{2}`, `{2,}` or `{2,5}` at this position; other braces are literals.
    fn parse_braces(&mut self) -> Option<(usize, Option<usize>)> {
        let inside: String = self.text.get(self.at + 1..)?.iter().take_while(|c| **c != '}').take(24).collect();
        let closed = self.text.get(self.at + 1 + inside.chars().count()) == Some(&'}');
        let (low, high) = inside.split_once(',').map_or((inside.as_str(), None), |(low, high)| (low, Some(high)));
        let number = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<usize>().ok()).flatten();
        let least = number(low).filter(|_| closed)?;
        let most = match high {
            None => Some(least),
            Some("") => None,
            Some(high) => Some(number(high)?),
        };
        self.at += inside.chars().count() + 2;
        Some(most.filter(|&m| m < least).map_or((least, most), |m| (m, Some(least))))
    }

    fn parse_repeat(&mut self) -> Result<Node, String> {
        let of = self.parse_atom()?;
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.parse_braces() {
                Some(range) => {
                    self.at -= 1;
                    range
                }
                None => return Ok(of),
            },
            _ => return Ok(of),
        };
        self.at += 1;
        let greedy = !self.consume_char('?');
        Ok(Node::Repeat { of: Box::new(of), least, most, greedy })
    }

    fn parse_atom(&mut self) -> Result<Node, String> {
        Ok(match self.next() {
            Some('.') => Node::Any,
            Some('^') => Node::Begin,
            Some('$') => Node::End,
            Some('[') => self.parse_set()?,
            Some('(') => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err("groups inside groups inside groups".to_owned());
                }
                let inner = self.parse_alternatives()?;
                self.depth -= 1;
                if !self.consume_char(')') {
                    return Err("a group is not closed".to_owned());
                }
                Node::Group(Box::new(inner))
            }
            Some('\\') => match self.next() {
                Some(c) if is_class(c) => Node::Set { negated: false, items: vec![Item::Class(c)] },
                Some(c) => Node::Letter(unescape_char(c)),
                None => Node::Letter('\\'),
            },
            Some(c) => Node::Letter(c),
            None => Node::Sequence(Vec::new()),
        })
    }

    fn parse_set(&mut self) -> Result<Node, String> {
        let negated = self.consume_char('^');
        let (mut items, mut before): (Vec<Item>, Option<char>) = (Vec::new(), None);
        loop {
            let mut c = self.next().ok_or("a character class is not closed")?;
            if c == ']' {
                break;
            }
            let escaped = c == '\\';
            if escaped && let Some(next) = self.next() {
                if is_class(next) {
                    items.push(Item::Class(next));
                    continue;
                }
                c = next;
            }
            if c == '-' && !escaped && before.is_some() && self.peek().is_some_and(|n| n != ']') {
                let mut high = self.next().unwrap_or(c);
                if high == '\\' {
                    high = self.next().unwrap_or(high);
                }
                let low = before.take().unwrap_or(c);
                items.push(Item::Between(low.min(high), low.max(high)));
                continue;
            }
            items.extend(before.map(|b| Item::Between(b, b)));
            before = Some(c);
        }
        items.extend(before.map(|b| Item::Between(b, b)));
        Ok(Node::Set { negated, items })
    }
}

struct Search<'a> {
    text: &'a [char],
    steps: u32,
}

impl Search<'_> {
    /// Returns the end positions after each number of repetitions, starting with zero.
    fn repeat_ends(&mut self, of: &Node, most: Option<usize>, at: usize) -> Vec<usize> {
        let (mut ends, mut last) = (vec![at], at);
        while most.is_none_or(|m| ends.len() <= m) {
            match self.match_node(of, last) {
                Some(end) if end != last => {
                    ends.push(end);
                    last = end;
                }
                _ => break,
            }
        }
        ends
    }

    fn match_sequence(&mut self, nodes: &[Node], at: usize) -> Option<usize> {
        let Some((node, rest)) = nodes.split_first() else { return Some(at) };
        let inner = match node {
            Node::Group(inner) if matches!(**inner, Node::Repeat { .. }) => inner,
            other => other,
        };
        let Node::Repeat { of, least, most, greedy } = inner else {
            let end = self.match_node(node, at)?;
            return self.match_sequence(rest, end);
        };
        let ends = self.repeat_ends(of, *most, at);
        let mut possible = ends.get(*least..)?.to_vec();
        if *greedy {
            possible.reverse();
        }
        possible.into_iter().find_map(|end| if self.steps == 0 { None } else { self.match_sequence(rest, end) })
    }

    /// Returns the end of the match if the node matches here.
    fn match_node(&mut self, node: &Node, at: usize) -> Option<usize> {
        self.steps = self.steps.checked_sub(1)?;
        let next = |is: bool| is.then_some(at + 1);
        let c = self.text.get(at).copied();
        match node {
            Node::Letter(letter) => next(c == Some(*letter)),
            Node::Any => next(c.is_some()),
            Node::Set { negated, items } => next(c.is_some_and(|c| items.iter().any(|i| i.matches_char(c)) != *negated)),
            Node::Begin => (at == 0).then_some(at),
            Node::End => (at == self.text.len()).then_some(at),
            Node::Group(inner) => self.match_node(inner, at),
            Node::Sequence(nodes) => self.match_sequence(nodes, at),
            Node::Either(branches) => branches.iter().find_map(|b| self.match_node(b, at)),
            Node::Repeat { of, least, most, greedy } => {
                let ends = self.repeat_ends(of, *most, at);
                if ends.len() <= *least {
                    None
                } else if *greedy {
                    ends.last().copied()
                } else {
                    ends.get(*least).copied()
                }
            }
        }
    }
}

/// A pattern as parsed by AMD's own engine.
#[derive(Debug)]
pub struct Pattern(Node);

impl Pattern {
    /// # Errors
    /// Fails if the engine would throw an exception, which terminates the program under rocprofv3.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let text: Vec<char> = pattern.chars().collect();
        let mut reader = Reader { text: &text, at: 0, depth: 0 };
        let node = reader.parse_alternatives()?;
        if reader.at < text.len() { Err("a bracket is closed that was not opened".to_owned()) } else { Ok(Self(node)) }
    }

    /// Returns true if the pattern matches anywhere in the text; `None` if the step limit is reached.
    pub fn find_match(&self, text: &str) -> Option<bool> {
        let text: Vec<char> = text.chars().collect();
        let mut search = Search { text: &text, steps: STEPS };
        let found = (0..=text.len()).any(|at| search.match_node(&self.0, at).is_some());
        (found || search.steps > 0).then_some(found)
    }
}

/// Describes constructs that the engines interpret differently: the construct, and AMD's interpretation of it.
pub fn engine_differences(pattern: &str) -> Vec<&'static str> {
    let mut out = Vec::new();
    let letters: Vec<char> = pattern.chars().collect();
    let (mut at, mut set) = (0, false);
    let mut add = |text: &'static str| {
        if !out.contains(&text) {
            out.push(text);
        }
    };
    while let Some(&c) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        match (c, next) {
            ('\\', Some('b' | 'B')) if !set => add("`\\b` is a word boundary up to ROCm 7.0 and the letter b from 7.1 on"),
            ('\\', Some('x' | 'u' | 'c')) => add("`\\x` and `\\u` are codes of characters up to ROCm 7.0 and letters from 7.1 on"),
            ('\\', Some('1'..='9')) if !set => add("`\\1` repeats a group up to ROCm 7.0 and is a digit from 7.1 on"),
            ('(', Some('?')) if !set => {
                add("`(?…` (look-around, or a group without capture) exists up to ROCm 7.0 only; later nothing matches");
            }
            ('[', Some(':')) if set => add("`[:…:]` is a class of characters up to ROCm 7.0 only"),
            _ => {}
        }
        match c {
            '\\' => at += 1,
            '[' if !set => set = true,
            ']' => set = false,
            _ => {}
        }
        at += 1;
    }
    out
}

/// Returns a group into which a correct match may have to backtrack, which AMD's engine does not do: the group contains
/// alternatives or repeats, and more than `.*` follows.
pub fn way_back(pattern: &str) -> Option<&str> {
    let (mut open, mut set, mut escaped): (Vec<(usize, bool)>, bool, bool) = (Vec::new(), false, false);
    for (at, c) in pattern.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' if !set => set = true,
            ']' => set = false,
            '(' if !set => open.push((at, false)),
            '|' | '*' | '+' if !set => open.iter_mut().for_each(|o| o.1 = true),
            ')' if !set => {
                let (from, choice) = open.pop()?;
                let rest = pattern.get(at + 1..)?;
                let done = rest.is_empty() || rest.starts_with(['|', ')']) || rest.starts_with(".*");
                if choice && !done {
                    return pattern.get(from..=at);
                }
            }
            _ => {}
        }
    }
    None
}

/// One alternative of a pattern, for [`count_pattern_paths`].
#[derive(Clone, Copy)]
struct Choice {
    /// Number of paths through the preceding alternatives.
    before: f64,
    /// Product of the path counts of all pieces except the last one, and the path count of the last piece.
    pieces: f64,
    last: f64,
    /// Number of loops over a single character or over an element with a single path.
    loops: u32,
}

impl Choice {
    const NEW: Self = Self { before: 0.0, pieces: 1.0, last: 1.0, loops: 0 };

    fn add_piece(&mut self, ways: f64) {
        self.pieces *= self.last;
        self.last = ways;
    }

    /// Returns the number of paths through all alternatives so far, with `n` characters distributed among the loops.
    fn count_paths(&self, n: f64) -> f64 {
        self.before + (1..=self.loops).map(f64::from).fold(self.pieces * self.last, |w, i| w * (n + i) / i)
    }
}

/// Estimates an upper bound on the paths that a backtracking engine may try on a text of `n` characters.
fn count_pattern_paths(pattern: &str, n: f64) -> f64 {
    let mut open = vec![Choice::NEW];
    let mut letters = pattern.chars().peekable();
    // `?` after a quantifier makes it lazy.
    let mut quantified = false;
    while let Some(c) = letters.next() {
        let nested = open.len() > 1;
        let Some(part) = open.last_mut() else { break };
        let lazy = std::mem::replace(&mut quantified, matches!(c, '*' | '+' | '?' | '{'));
        match c {
            '?' if lazy => {}
            '?' => part.last += 1.0,
            '*' | '+' | '{' => {
                let inside: String = if c == '{' { letters.by_ref().take_while(|&l| l != '}').collect() } else { String::new() };
                if part.last > 1.0 {
                    part.last = n.exp2();
                } else if c != '{' || inside.contains(',') {
                    part.loops += 1;
                }
            }
            '|' => *part = Choice { before: part.count_paths(n), ..Choice::NEW },
            '(' => {
                open.push(Choice::NEW);
                // The question mark of `(?:`, `(?=`, `(?!` is not a quantifier.
                let _ = letters.next_if_eq(&'?');
            }
            ')' if nested => {
                let inside = open.pop().map_or(1.0, |p| p.count_paths(n));
                if let Some(around) = open.last_mut() {
                    around.add_piece(inside);
                }
            }
            '[' => {
                let mut escaped = false;
                for l in letters.by_ref() {
                    if l == ']' && !escaped {
                        break;
                    }
                    escaped = l == '\\' && !escaped;
                }
                part.add_piece(1.0);
            }
            '\\' => {
                let _ = letters.next();
                part.add_piece(1.0);
            }
            _ => part.add_piece(1.0),
        }
    }
    open.iter().map(|p| p.count_paths(n)).product::<f64>() * (n + 1.0)
}

/// A pattern compiled by both engines.
pub struct Engines {
    pattern: String,
    old: Result<regress::Regex, String>,
    new: Result<Pattern, String>,
}

impl Engines {
    pub fn new(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), old: regress::Regex::new(pattern).map_err(|e| e.text), new: Pattern::new(pattern) }
    }

    /// Returns the errors in the pattern, first for `ROCm` 7.0 and older, then for 7.1 and newer.
    pub fn errors(&self) -> [Option<&str>; 2] {
        [self.old.as_ref().err().map(String::as_str), self.new.as_ref().err().map(String::as_str)]
    }

    /// Returns true if the pattern matches anywhere in the text, first for `ROCm` 7.0 and older, then for 7.1 and
    /// newer; `None` if unknown.
    pub fn find_matches(&self, text: &str) -> [Option<bool>; 2] {
        let letters = f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
        let short = count_pattern_paths(&self.pattern, letters) <= MOST_WAYS;
        let old = self.old.as_ref().ok().filter(|_| short).map(|r| r.find(text).is_some());
        [old, self.new.as_ref().ok().and_then(|p| p.find_match(text))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_would_take_for_ever_are_not_tried() {
        let name = "void gemm_kernel<float, 128, 64>(float const*, float*)";
        for (pattern, tried) in [
            ("(.*)*".repeat(25) + "zz", false),
            (".*".repeat(40) + "zz", false),
            ("a?".repeat(64) + "zz", false),
            ("(a|a)".repeat(64) + "zz", false),
            ("(?:(?:x+)+)+y".to_owned(), false),
            ("^.*gemm.*float.*$".to_owned(), true),
            (r"gemm_kernel<\w+, \d{1,3}, [^*+?{(|]*>\(".to_owned(), true),
            ("(gemm|conv)_kernel<.*?>".to_owned(), true),
            ((0..2_000).map(|n| format!("kernel_{n}|")).collect::<Vec<_>>().concat() + "gemm", true),
        ] {
            let old = Engines::new(&pattern).find_matches(name)[0];
            assert_eq!(old, tried.then_some(true), "{pattern:.40}");
        }
    }

    /// Text, pattern, result of a model of AMD's engine (`Err` if it throws), and result of `std::regex`.
    #[test]
    fn as_amds_engine_matches() {
        let cases = [
            ("foobar(int*)", r"^(foo|foobar)\(", Some(false), true),
            ("foobar(int*)", r"^foo\(|^foobar\(", Some(true), true),
            ("foobar(int*)", r"^(foobar|foo)\(", Some(true), true),
            ("ns::k<1>(int)", r"^(?:ns::k)", Some(false), true),
            ("a.b", r"\bb", Some(false), true),
            ("a:b", r"a\x3ab", Some(false), true),
            ("gemm", r"^(?!nccl)", Some(false), true),
            ("void f<float>(int)", r"^void f<float>\(int\)$", Some(true), true),
            ("aXb_c", r"(.*X.*)|(.*Y.*)", Some(true), true),
            ("xab", r"(a|ab)$", Some(false), true),
            ("f {lambda()#1}", r"\{lambda\(\)#1\}", Some(true), true),
            ("abc", r"(a.*)c", Some(false), true),
            ("aab", r"(a*)ab", Some(true), true),
            ("aaab", r"^a{2,}b$", Some(true), true),
            ("gemm_9", r"gemm_[^0-8]$", Some(true), true),
            ("x-y", r"[a\-z]y", Some(true), true),
        ];
        for (text, pattern, new, old) in cases {
            assert_eq!(Pattern::new(pattern).unwrap().find_match(text), new, "{pattern} in {text}");
            assert_eq!(Engines::new(pattern).find_matches(text)[0], Some(old), "{pattern} in {text}");
        }
        for pattern in ["(a", "a)", "[a"] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_forever() {
        let p = Pattern::new(r".*a.*b.*c.*d.*e.*f.*g.*h!").unwrap();
        assert_eq!(p.find_match(&"abcdefgh".repeat(200)), None);
        assert!(Pattern::new(&"(".repeat(1000)).is_err());
    }
}
