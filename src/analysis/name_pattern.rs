//! Name patterns, equal for names that differ only in their numbers.

/// Replaces each number in a name by `#`; adjacent digits and `#` become a single `#`.
pub fn name_pattern(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut digits = false;
    for c in name.chars() {
        let digit = c.is_ascii_digit() || c == '#';
        if !digit {
            out.push(c);
        } else if !digits {
            out.push('#');
        }
        digits = digit;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_left_out() {
        assert_eq!(name_pattern("ProfilerStep#12"), "ProfilerStep#");
        assert_eq!(name_pattern("decode 07 of 15"), "decode # of #");
    }
}
