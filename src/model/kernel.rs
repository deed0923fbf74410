//! Kernels and the forms of their names.

use std::sync::Arc;

/// Index into [`Profile::kernels`](super::Profile::kernels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(pub u32);

/// Forms of a kernel's name, corresponding to `ncu --kernel-name-base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameForm {
    /// The last identifier, without namespaces, template arguments and parameters.
    Function,
    /// Full C++ signature as spelled by nvcc.
    Demangled,
    Mangled,
}

impl NameForm {
    /// Name of the form, as passed to `ncu --kernel-name-base`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Demangled => "demangled",
            Self::Mangled => "mangled",
        }
    }

    /// Returns the next form, wrapping around at the end.
    pub fn next(self) -> Self {
        match self {
            Self::Function => Self::Demangled,
            Self::Demangled => Self::Mangled,
            Self::Mangled => Self::Function,
        }
    }
}

/// A kernel, with its names from the report, any of which may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kernel {
    /// The last identifier (`nsys` `shortName`, `ncu` base *function*).
    pub function: Option<Arc<str>>,
    /// Full signature (`nsys` `demangledName`, `ncu` base *demangled*, unsimplified).
    pub demangled: Option<Arc<str>>,
    pub mangled: Option<Arc<str>>,
    /// Full signature as spelled by another demangler (PyTorch uses c++filt's), for display only, because ncu matches
    /// nvcc's spelling.
    pub spelled: Option<Arc<str>>,
}

/// Label of a kernel that has no name.
pub const UNNAMED: &str = "(unnamed kernel)";

impl Kernel {
    /// Function name, or the best fallback.
    pub fn function(&self) -> &str {
        match (&self.function, self.demangled.as_ref().or(self.spelled.as_ref()), &self.mangled) {
            (Some(name), ..) => name,
            (None, Some(demangled), _) => function_of(demangled),
            (None, None, Some(mangled)) => mangled,
            (None, None, None) => UNNAMED,
        }
    }

    /// Demangled name, or the best fallback; `nsys stats` also groups by this name.
    pub fn demangled(&self) -> &str {
        self.demangled.as_deref().or(self.spelled.as_deref()).or(self.function.as_deref()).or(self.mangled.as_deref()).unwrap_or(UNNAMED)
    }

    /// Mangled name, or the best fallback.
    pub fn mangled(&self) -> &str {
        self.mangled.as_deref().unwrap_or_else(|| self.demangled())
    }

    /// Name in the given form, or the best fallback.
    pub fn name(&self, form: NameForm) -> &str {
        match form {
            NameForm::Function => self.function(),
            NameForm::Demangled => self.demangled(),
            NameForm::Mangled => self.mangled(),
        }
    }
}

/// A kernel whose name the tool truncated, with the complete names in the report that begin with the same prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    pub kernel: KernelId,
    pub candidates: Vec<Arc<str>>,
}

/// Prefix of a name that nsys shortened to `PREFIX_NUMBER...`; `None` for other names. Complete kernel names never end
/// in three dots.
pub fn truncated_prefix(name: &str) -> Option<&str> {
    let rest = name.strip_suffix("...")?;
    let bare = rest.trim_end_matches(|c: char| c.is_ascii_digit());
    let prefix = if bare.len() < rest.len() { bare.strip_suffix('_').unwrap_or(rest) } else { rest };
    (!prefix.is_empty()).then_some(prefix)
}

/// Extracts the last identifier of a demangled C++ name (nsys: `shortName`).
///
/// Removes the parameters (from the first `(` outside brackets), then trailing template arguments, then everything up
/// to the last `::` or space outside brackets. Both spellings of anonymous namespaces (`<unnamed>`,
/// `(anonymous namespace)`) are bracketed and are removed along with the other namespaces.
pub fn function_of(demangled: &str) -> &str {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let bytes = demangled.as_bytes();
    let mut depth = 0_i32;
    let mut start = 0;
    let mut template = None;
    let mut end = bytes.len();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'(' if demangled[i..].starts_with(ANONYMOUS) => i += ANONYMOUS.len() - 1,
            b'(' if depth == 0 && i > start => {
                end = i;
                break;
            }
            b'<' if depth == 0 => {
                template = Some(i);
                depth = 1;
            }
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth = (depth - 1).max(0),
            b':' if depth == 0 && bytes.get(i + 1) == Some(&b':') => {
                start = i + 2;
                template = None;
                i += 1;
            }
            b' ' if depth == 0 => {
                start = i + 1;
                template = None;
            }
            _ => {}
        }
        i += 1;
    }
    let end = template.filter(|&t| t > start).unwrap_or(end).min(end);
    let name = demangled.get(start..end).unwrap_or(demangled).trim();
    if name.is_empty() { demangled } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_of_cuts_everything_but_the_last_identifier() {
        for (demangled, function) in [
            ("c_plain", "c_plain"),
            ("foo(int *)", "foo"),
            ("void a::b::tk<float, (int)3>(T1 *)", "tk"),
            ("<unnamed>::anonk(int *)", "anonk"),
            ("void apply<names()::[lambda(int) (instance 2)]>(T1, int *)", "apply"),
            ("void vk<int (*)(float, char)>(T1 *, unsigned long long)", "vk"),
            (
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int, float)",
                "vectorized_layer_norm_kernel",
            ),
            ("void at::native::<unnamed>::CatArrayBatchedCopy<T1, 3>(x)", "CatArrayBatchedCopy"),
            ("a::b<c>::k(int)", "k"),
            ("", ""),
            ("(", "("),
        ] {
            assert_eq!(function_of(demangled), function, "{demangled}");
        }
    }

    #[test]
    fn shortened_names_are_known_by_their_points() {
        for (name, prefix) in [
            ("__omp_offloading_31_18a80bc__Z_2...", Some("__omp_offloading_31_18a80bc__Z")),
            ("_ZN3abcIL_12...", Some("_ZN3abcIL")),
            ("kernel...", Some("kernel")),
            ("kernel7...", Some("kernel7")),
            ("kernel_2", None),
            ("void f<int>(int, ...)", None),
            ("...", None),
        ] {
            assert_eq!(truncated_prefix(name), prefix, "{name}");
        }
    }

    #[test]
    fn a_missing_name_falls_back_and_says_so_at_the_end() {
        let kernel = Kernel { demangled: Some("void n::k<3>(int)".into()), ..Kernel::default() };
        assert_eq!((kernel.function(), kernel.mangled()), ("k", "void n::k<3>(int)"));
        assert_eq!(Kernel::default().function(), UNNAMED);
    }
}
