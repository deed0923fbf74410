//! Parser for numbers and units in the output of `ncu --csv`. Their format depends on the machine's locale, on
//! options (units may be scaled: `Gbyte/second`) and on the version of ncu.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// Such as `27,199.72`.
    Point,
    /// Such as `27.199,72`.
    Comma,
}

/// Statistics used to interpret a number in which one separator is followed by three digits (`117.344`).
///
/// ncu prints real numbers with two or six decimals (six on the raw page and for scaled units), and integers in
/// groups of three digits according to the locale; tested with 2024.1.1 and 2025.3.1 in five locales. A file can use
/// the same character for both purposes (raw page in a German locale: `0.001591` and `1.399.000`). The only ambiguous
/// numbers are those with three digits after a single separator; in ncu's own output, these are integers. If another
/// program has saved the table, real numbers have lost their trailing zeros.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// For point and comma, the number of cells in which the character groups digits, precedes two or six decimals,
    /// or precedes some other number of decimals.
    seen: [[u64; 3]; 2],
    doubtful: u64,
}

/// Separators found in a single number.
enum Shape {
    /// No separator.
    Whole,
    Groups(u8),
    /// Decimal separator and number of decimals.
    Decimals(u8, usize),
    /// A separator that either groups digits or precedes three decimals.
    Doubtful(u8),
}

/// Returns true for characters that can only group digits, as used by French and Swiss locales. A plain space groups
/// digits only if three digits follow.
fn is_group(c: char) -> bool {
    matches!(c, '\'' | '’' | '\u{a0}' | '\u{202f}' | ' ')
}

fn without_groups(text: &str) -> String {
    let grouped = |i: usize, c: char| {
        let rest = &text[i + c.len_utf8()..];
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        digits == 3 && text[..i].ends_with(|c: char| c.is_ascii_digit())
    };
    text.char_indices().filter(|&(i, c)| !(is_group(c) && grouped(i, c))).map(|(_, c)| c).collect()
}

fn sign_of(c: char) -> Option<u8> {
    match c {
        '.' => Some(0),
        ',' => Some(1),
        _ => None,
    }
}

/// Classifies a string of digits and separators; `None` for other strings.
fn classify_number(text: &str) -> Option<Shape> {
    let text = text.trim_start_matches(['-', '+']);
    if !text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(|c| c.is_ascii_digit() || sign_of(c).is_some()) {
        return None;
    }
    let signs: Vec<(usize, u8)> = text.char_indices().filter_map(|(i, c)| Some((i, sign_of(c)?))).collect();
    Some(match signs.as_slice() {
        [] => Shape::Whole,
        [(at, sign)] => {
            let (before, decimals) = (&text[..*at], text.len() - at - 1);
            if decimals == 3 && before.len() <= 3 && !before.starts_with('0') {
                Shape::Doubtful(*sign)
            } else {
                Shape::Decimals(*sign, decimals)
            }
        }
        [.., (at, last)] => {
            // All groups must have three digits; 2025.3.1 is a version.
            let single = signs.iter().filter(|(_, s)| s == last).count() == 1;
            let (whole, sign) = if single { (&text[..*at], signs[0].1) } else { (text, *last) };
            let parts: Vec<&str> = whole.split(['.', ',']).collect();
            let grouped = (1..=3).contains(&parts[0].len()) && parts[1..].iter().all(|p| p.len() == 3);
            let one_sign = signs.iter().filter(|(_, s)| *s == sign).count() == parts.len() - 1;
            match (grouped && one_sign, single) {
                (false, _) => return None,
                (true, true) => Shape::Decimals(*last, text.len() - at - 1),
                (true, false) => Shape::Groups(*last),
            }
        }
    })
}

/// Returns the number in a cell without `(!)`, and without the instances that `--print-metric-instances values` adds:
/// `7 (3; 4)`.
fn strip_decoration(text: &str) -> &str {
    let text = text.trim().trim_start_matches("(!)").trim();
    text.strip_suffix(')').and_then(|t| t.split_once(" (")).map_or(text, |(total, _)| total)
}

impl Evidence {
    /// Adds one cell to the statistics.
    pub fn add_cell(&mut self, text: &str) {
        match classify_number(&without_groups(strip_decoration(text))) {
            None | Some(Shape::Whole) => {}
            Some(Shape::Groups(sign)) => self.seen[usize::from(sign)][0] += 1,
            Some(Shape::Decimals(sign, 2 | 6)) => self.seen[usize::from(sign)][1] += 1,
            Some(Shape::Decimals(sign, _)) => self.seen[usize::from(sign)][2] += 1,
            Some(Shape::Doubtful(_)) => self.doubtful += 1,
        }
    }

    /// Returns true if this separator groups digits in an ambiguous number.
    fn is_grouping(&self, sign: u8) -> bool {
        let [groups, _, other] = self.seen[usize::from(sign)];
        groups > 0 || other == 0
    }

    /// Returns true if there are ambiguous numbers and no other numbers to indicate their meaning.
    pub fn is_ambiguous(&self) -> bool {
        self.doubtful > 0 && self.seen == [[0; 3]; 2]
    }
}

/// Parses a number; `None` for other text. Accepts `nan`, `inf` and ncu's `(!) nan`. `decimal`, if given, is the
/// decimal separator to assume in ambiguous numbers.
pub fn parse_number(text: &str, evidence: &Evidence, decimal: Option<Decimal>) -> Option<f64> {
    let plain = without_groups(strip_decoration(text));
    let bare = plain.trim_start_matches(['-', '+']);
    if bare.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    if bare.eq_ignore_ascii_case("inf") {
        return plain.parse().ok();
    }
    let point = match classify_number(&plain) {
        // Accept numbers with an exponent, but not words that Rust would parse (such as "infinity" in a device name).
        None => return bare.starts_with(|c: char| c.is_ascii_digit()).then(|| plain.parse().ok()).flatten(),
        Some(Shape::Whole | Shape::Groups(_)) => None,
        Some(Shape::Decimals(sign, _)) => Some(sign),
        Some(Shape::Doubtful(sign)) => {
            let groups = decimal.map_or_else(|| evidence.is_grouping(sign), |d| (d == Decimal::Comma) == (sign == 0));
            (!groups).then_some(sign)
        }
    };
    let digits: String = plain.chars().filter_map(|c| sign_of(c).map_or(Some(c), |s| (Some(s) == point).then_some('.'))).collect();
    digits.parse().ok()
}

/// Returns the base unit as spelled in [`super::units`], and the factor: `Gbyte/s` is `byte/second` times 1e9. ncu's
/// prefixes are powers of 1,000.
pub fn base_unit(unit: &str) -> (String, f64) {
    let (over, under) = unit.split_once('/').map_or((unit, None), |(over, under)| (over, Some(under)));
    let (name, scale) = split_prefix(over);
    let Some(under) = under else {
        return match name {
            "hz" => ("cycle/second".to_owned(), scale),
            "second" => ("nsecond".to_owned(), scale * 1e9),
            _ => (name.to_owned(), scale),
        };
    };
    let (per, by) = split_prefix(under);
    // ncu scales `%/Kbyte` as if the prefix were in the numerator: it prints 1.59 for 1591 %/byte.
    let by = if per == "byte" { by.recip() } else { by };
    (format!("{name}/{per}"), scale / by)
}

/// Splits a word of a unit into the word without its prefix, and the factor of the prefix.
fn split_prefix(word: &str) -> (&str, f64) {
    match word {
        "s" | "second" => return ("second", 1.0),
        "ms" | "msecond" => return ("second", 1e-3),
        "us" | "usecond" => return ("second", 1e-6),
        "ns" | "nsecond" => return ("second", 1e-9),
        "req" => return ("request", 1.0),
        _ => {}
    }
    for (prefix, scale) in [("K", 1e3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15)] {
        match word.strip_prefix(prefix) {
            Some("hz" | "Hz") => return ("hz", scale),
            Some(rest @ ("byte" | "inst" | "cycle" | "sector" | "request" | "warp" | "thread" | "block" | "sample")) => {
                return (rest, scale);
            }
            _ => {}
        }
    }
    if word == "Hz" { ("hz", 1.0) } else { (word, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> Evidence {
        let mut evidence = Evidence::default();
        for cell in cells {
            evidence.add_cell(cell);
        }
        evidence
    }

    #[test]
    fn the_file_settles_what_is_in_doubt() {
        // Other cells in the file, and the value that 117.344 then has.
        for (cells, want) in [
            (vec!["27,199.72"], 117_344.0),
            (vec!["27.199,72"], 117_344.0),
            (vec!["17.179.869.184", "0.001591"], 117_344.0),
            (vec!["0.500000"], 117_344.0),
            (vec!["0.125", "1.5"], 117.344),
            (vec!["1234.5678"], 117.344),
            (vec!["12", "1.2.3-rc", "H100", "nan"], 117_344.0),
        ] {
            assert_eq!(parse_number("117.344", &of(&cells), None), Some(want), "{cells:?}");
        }
        let none = of(&["117.344", "5"]);
        assert!(none.is_ambiguous() && !of(&["117.344", "0.50"]).is_ambiguous() && !of(&["117"]).is_ambiguous());
        assert_eq!(parse_number("117.344", &none, Some(Decimal::Point)), Some(117.344));
        assert_eq!(parse_number("117.344", &none, Some(Decimal::Comma)), Some(117_344.0));
        assert_eq!(parse_number("117,344", &none, Some(Decimal::Comma)), Some(117.344));
        assert_eq!(parse_number("0.001591", &none, Some(Decimal::Comma)), Some(0.001_591), "that one is in no doubt");
    }

    #[test]
    fn numbers_of_all_locales() {
        for (text, want) in [
            ("27,199.72", 27_199.72),
            ("27.199,72", 27_199.72),
            ("1.046.715.247.093,02", 1_046_715_247_093.02),
            ("56.981.760", 56_981_760.0),
            ("27\u{202f}199,72", 27_199.72),
            ("1 985,94", 1_985.94),
            ("27'199.72", 27_199.72),
            ("-0,00", 0.0),
            ("-1.5e-07", -1.5e-7),
            ("5 706 (50; 100)", 5_706.0),
            ("1 (Tesla T4)", 1.0),
            ("inf", f64::INFINITY),
        ] {
            assert_eq!(parse_number(text, &Evidence::default(), None), Some(want), "{text}");
        }
        assert!(parse_number("(!) nan", &Evidence::default(), None).is_some_and(f64::is_nan));
        for text in
            ["n/a", "", "NVIDIA H200", "infinity", "GH100 (a)", "3 4", "1.2.3-rc", "1.2.3", "2025.3.1.0", "570.86.15", "1.234,567.8"]
        {
            assert_eq!(parse_number(text, &Evidence::default(), None), None, "{text}");
        }
    }

    #[test]
    fn units_of_all_versions_become_one() {
        for (unit, want, scale) in [
            ("usecond", "nsecond", 1e3),
            ("us", "nsecond", 1e3),
            ("nsecond", "nsecond", 1.0),
            ("s", "nsecond", 1e9),
            ("Gbyte/second", "byte/second", 1e9),
            ("Tbyte/s", "byte/second", 1e12),
            ("cycle/nsecond", "cycle/second", 1e9),
            ("Ghz", "cycle/second", 1e9),
            ("hz", "cycle/second", 1.0),
            ("sector/nsecond", "sector/second", 1e9),
            ("Kbyte/block", "byte/block", 1e3),
            ("%/Kbyte", "%/byte", 1e3),
            ("register/thread", "register/thread", 1.0),
            ("%", "%", 1.0),
            ("SM", "SM", 1.0),
            ("", "", 1.0),
            ("%/", "%/", 1.0),
        ] {
            let (name, by) = base_unit(unit);
            assert!(name == want && (by / scale - 1.0).abs() < 1e-12, "{unit}: {name} {by}");
        }
    }
}
