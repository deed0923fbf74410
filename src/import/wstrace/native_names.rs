//! Names of native functions: symbols of C, C++ and Rust, in the form in which they are shown.

use cpp_demangle::{DemangleOptions, Symbol};
use std::sync::Arc;

/// Longest symbol that is demangled, bytes.
const LONGEST: usize = 8192;

/// Returns the name with its namespaces, without parameters and return type; of a symbol in no known form, the symbol.
pub fn demangle_function(symbol: &str) -> Arc<str> {
    // Versions (`read@@GLIBC_2.2.5`) are in some symbol tables; compilers add `.cold` and the like to parts of functions.
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    if symbol.len() > LONGEST {
        return Arc::from(symbol.chars().take(LONGEST).collect::<String>());
    }
    let plain = symbol.split('.').next().unwrap_or(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(symbol).or_else(|_| rustc_demangle::try_demangle(plain)) {
        // The alternate form leaves out the hash.
        return Arc::from(shorten_arguments(&format!("{rust:#}")));
    }
    let options = DemangleOptions::default().no_params().no_return_type();
    let cpp = Symbol::new(plain.as_bytes()).ok().filter(|_| plain.starts_with("_Z"));
    cpp.and_then(|s| s.demangle_with_options(&options).ok())
        .map_or_else(|| Arc::from(plain_part(symbol)), |name| Arc::from(shorten_arguments(&name)))
}

/// Longest name that keeps its template arguments, bytes.
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
        // Arguments follow a name: `operator<` has none, and `<T as Trait>` begins one.
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

/// Leaves out what compilers add to the names of a function's parts and copies, and glibc to those for its own calls.
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
