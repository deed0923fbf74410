//! Name patterns: names that differ only in their numbers share one.

/// Replaces each number in a name with `#`; adjacent digits and `#` become a single `#`.
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

/// Normalizes a range name: numbers become `#`, and addresses of Python objects are removed.
pub fn normalize_label(label: &str) -> String {
    match label.split_once(" object at 0x") {
        Some((what, address)) => name_pattern(&format!("{what}{}", if address.ends_with('>') { ">" } else { "" })),
        None => name_pattern(label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_left_out() {
        assert_eq!(name_pattern("ProfilerStep#12"), "ProfilerStep#");
        assert_eq!(name_pattern("decode 07 of 15"), "decode # of #");
    }

    #[test]
    fn objects_of_python_are_alike_whatever_their_address() {
        assert_eq!(normalize_label("<built-in method item of Tensor object at 0x7fdc681f2030>"), "<built-in method item of Tensor>");
        assert_eq!(normalize_label("step 12"), "step #");
    }
}
