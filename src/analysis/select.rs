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
        // `sum` for `sum (reduce_kernel)`, unless several kernels are called that.
        only_name(all, |k| readable_name(k).split(" (").next() == Some(selector)),
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
                1 => {
                    // A function's name must not hide other kernels whose readable names match, too.
                    let other = |k: &&Kernel| !names.contains(&name(k)) && matches(&readable_name(k));
                    let others: BTreeSet<Cow<'_, str>> = all.iter().filter(other).map(readable_name).collect();
                    if others.is_empty() {
                        return Selected::Kernels(ids(&|k| names.contains(&name(k))));
                    }
                    return Selected::Ambiguous(names.into_iter().chain(others).map(Cow::into_owned).collect());
                }
                _ => return Selected::Ambiguous(names.into_iter().map(Cow::into_owned).collect()),
            }
        }
    }
    Selected::Nothing
}

/// Returns the kernels that satisfy a condition, if all of them have the same readable name; else none.
fn only_name(all: &[Kernel], is: impl Fn(&Kernel) -> bool) -> BTreeSet<KernelId> {
    let found: Vec<(KernelId, &Kernel)> = (0..).map(KernelId).zip(all).filter(|(_, k)| is(k)).collect();
    let names: BTreeSet<Cow<'_, str>> = found.iter().map(|(_, k)| readable_name(k)).collect();
    if names.len() == 1 { found.into_iter().map(|(id, _)| id).collect() } else { BTreeSet::new() }
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
        // The name that the table shows comes before a function whose name merely contains the word.
        let functor = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>>>(x)";
        for (f, d) in [("reduce_kernel", functor), ("sum_and_scatter", "sum_and_scatter(x)")] {
            p.push(Kernel { function: Some(f.into()), demangled: Some(d.into()), ..Kernel::default() });
        }
        assert_eq!(readable_name(&p[4]), "sum (reduce_kernel)");
        assert_eq!(select_kernels(&p, "sum"), ids(&[4]));
        assert_eq!(select_kernels(&p, "su"), Selected::Ambiguous(vec!["sum_and_scatter".into(), "sum (reduce_kernel)".into()]));
        assert_eq!(select_kernels(&p, "sum_and"), ids(&[5]));
    }
}
