//! Converts symbols of C, C++ and Rust functions to display names.

use cpp_demangle::{DemangleOptions, Symbol};
use std::sync::Arc;

/// Maximum length of symbols to demangle, bytes; longer symbols are truncated instead.
const LONGEST: usize = 8192;

/// Returns the name with its namespaces, but without parameters and return type. If the symbol cannot be demangled,
/// returns it without the affixes that [`plain_part`] removes.
pub fn demangle_function(symbol: &str) -> Arc<str> {
    // Some symbol tables contain versions (`read@@GLIBC_2.2.5`), and compilers append suffixes such as `.cold` to parts
    // of functions.
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    if symbol.len() > LONGEST {
        return Arc::from(symbol.chars().take(LONGEST).collect::<String>());
    }
    let plain = symbol.split('.').next().unwrap_or(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(symbol).or_else(|_| rustc_demangle::try_demangle(plain)) {
        // The alternate form (`{:#}`) omits the hash.
        return Arc::from(shorten_arguments(&format!("{rust:#}")));
    }
    let options = DemangleOptions::default().no_params().no_return_type();
    let cpp = Symbol::new(plain.as_bytes()).ok().filter(|_| plain.starts_with("_Z"));
    cpp.and_then(|s| s.demangle_with_options(&options).ok())
        .map_or_else(|| Arc::from(plain_part(symbol)), |name| Arc::from(shorten_arguments(&name)))
}

/// Maximum length of names whose template arguments are kept, bytes.
const LONGEST_WHOLE: usize = 80;

/// Replaces the template arguments of a long name with an ellipsis: `std::map<…>::operator[]`.
fn shorten_arguments(name: &str) -> String {
    if name.len() <= LONGEST_WHOLE {
        return name.to_owned();
    }
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        // `<` opens template arguments only after a name: it does not in `operator<`, nor at the start of
        // `<T as Trait>`.
        let opens = c == '<' && (depth > 0 || before.is_alphanumeric() || before == '_') && !name[..at].ends_with("operator");
        if opens {
            if depth == 0 {
                out.push_str("<…>");
            }
            depth += 1;
        } else if c == '>' && depth > 0 && before != '-' {
            depth -= 1;
        } else if depth == 0 {
            out.push(c);
        }
        before = c;
    }
    if depth == 0 { out } else { name.to_owned() }
}

/// Removes the suffixes that compilers append to the names of a function's parts and copies, and the prefix `__GI_` of
/// glibc's internal aliases.
fn plain_part(symbol: &str) -> &str {
    const ADDED: [&str; 5] = [".cold", ".part.", ".isra.", ".constprop.", ".llvm."];
    let symbol = symbol.strip_prefix("__GI_").unwrap_or(symbol);
    let end = ADDED.iter().filter_map(|added| symbol.find(added)).min().unwrap_or(symbol.len());
    if end == 0 { symbol } else { &symbol[..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("main", "main"),
            ("read@@GLIBC_2.2.5", "read"),
            ("work.constprop.0", "work"),
            ("work.cold", "work"),
            ("__GI___nanosleep", "__nanosleep"),
            (".hidden", ".hidden"),
            ("_ZN6loader5batch6decodeERKSsi", "loader::batch::decode"),
            ("_ZN6loader5batch6decodeERKSsi.cold", "loader::batch::decode"),
            ("_ZN3app6loader6decode17h0123456789abcdefE", "app::loader::decode"),
            ("_RNvNtCs1234_3app6loader6decode", "app::loader::decode"),
            (
                "_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiSt4lessIS5_ESaISt4pairIKS5_iEEEixEOS5_",
                "std::map<…>::operator[]",
            ),
            ("_ZN5batch4pairIiE4takeIfEEvv", "batch::pair<int>::take<float>"),
            ("_Z", "_Z"),
            ("", ""),
        ] {
            assert_eq!(&*demangle_function(symbol), name, "{symbol}");
        }
    }
}
