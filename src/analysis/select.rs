//! Selects kernels by words that the user typed.

use super::fuzzy::Fuzzy;
use crate::analysis::readable::readable_name;
use crate::model::{Kernel, KernelId};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Result of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// These kernels: one, or several with the same function name.
    Kernels(BTreeSet<KernelId>),
    /// Several names match; these are the names.
    Ambiguous(Vec<String>),
    /// No name matches.
    Nothing,
}

/// Selects kernels by an exact readable, function, demangled or mangled name, or else by a fuzzy match that only one
/// name satisfies.
pub fn select_kernels(all: &[Kernel], selector: &str) -> Selected {
    let ids = |is: &dyn Fn(&Kernel) -> bool| -> BTreeSet<KernelId> {
        all.iter().zip(0..).filter(|(k, _)| is(k)).map(|(_, i)| KernelId(i)).collect()
    };
    let exact = [
        ids(&|k| k.function() == selector),
        ids(&|k| readable_name(k) == selector),
        ids(&|k| k.demangled() == selector),
        ids(&|k| k.mangled() == selector),
    ];
    for exact in exact {
        if !exact.is_empty() {
            return Selected::Kernels(exact);
        }
    }
    // Try the words as substrings first, then as letters with gaps in between.
    let words: Vec<String> = selector.split_whitespace().map(str::to_lowercase).collect();
    let literal = |name: &str| {
        let name = name.to_lowercase();
        words.iter().all(|w| name.contains(w))
    };
    let fuzzy = Fuzzy::new(selector);
    let matchers: [&dyn Fn(&str) -> bool; 2] = [&literal, &|name| fuzzy.matches(name)];
    for matches in matchers {
        let forms: [fn(&Kernel) -> Cow<'_, str>; 3] = [|k| k.function().into(), readable_name, |k| k.demangled().into()];
        for name in forms {
            let names: BTreeSet<Cow<'_, str>> = all.iter().map(name).filter(|n| matches(n)).collect();
            match names.len() {
                0 => {}
                1 => return Selected::Kernels(ids(&|k| names.contains(&name(k)))),
                _ => return Selected::Ambiguous(names.into_iter().map(Cow::into_owned).collect()),
            }
        }
    }
    Selected::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_before_fuzzy_and_fuzzy_must_be_unique() {
        let mut p = Vec::new();
        for (f, d) in [("foo", "foo(int *)"), ("foo", "foo(float *)"), ("foobar", "foobar(int)"), ("scale", "void a::scale<x>(y)")] {
            p.push(Kernel { function: Some(f.into()), demangled: Some(d.into()), ..Kernel::default() });
        }
        let ids = |v: &[u32]| Selected::Kernels(v.iter().map(|&i| KernelId(i)).collect());
        assert_eq!(select_kernels(&p, "foo"), ids(&[0, 1]));
        assert_eq!(select_kernels(&p, "foo(float *)"), ids(&[1]));
        assert_eq!(select_kernels(&p, "scl"), ids(&[3]));
        assert_eq!(select_kernels(&p, "fo"), Selected::Ambiguous(vec!["foo".into(), "foobar".into()]));
        assert_eq!(select_kernels(&p, "zzz"), Selected::Nothing);
    }
}
