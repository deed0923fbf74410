//! Searches for libcupti: in the wheels of the program's own Python, in conda's environment, in CUDA toolkits, and in
//! Nsight's folders. If the program has already loaded one, the tracer uses that one, otherwise the first that works
//! with the driver.

use super::super::{locate_tools, private_files};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A candidate libcupti.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub path: PathBuf,
    /// Product that the library belongs to.
    pub of: &'static str,
}

/// Subfolders whose names start with a string, in reverse order; all subfolders if the string is empty.
fn subfolders_with_prefix(folder: &Path, begins: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = names.filter(|e| e.file_name().to_string_lossy().starts_with(begins)).map(|e| e.path()).collect();
    // The names contain the version, so the newest comes first.
    found.sort();
    found.reverse();
    found
}

/// Finds the libcupti in a folder: the name with the fewest parts after `.so`, which is the one that programs link
/// against.
fn find_libcupti_in(folder: &Path) -> Option<PathBuf> {
    subfolders_with_prefix(folder, "libcupti.so").into_iter().filter(|p| p.is_file()).min_by_key(|p| {
        let name = p.file_name().map_or(0, |n| n.to_string_lossy().matches('.').count());
        // `libcupti.so` itself is a link for compilers and used only if there is nothing else.
        if name == 1 { usize::MAX } else { name }
    })
}

/// Library folders of wheels below the prefix of a Python (or of another program in the `bin` folder there).
fn package_folders(prefix: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for lib in ["lib", "lib64"] {
        for python in subfolders_with_prefix(&prefix.join(lib), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = python.join(packages).join("nvidia");
                out.extend(["cu13/lib", "cuda_cupti/lib"].map(|i| nvidia.join(i)));
            }
        }
    }
    out
}

/// Install prefixes of the programs that a command starts (the launcher and its Python), each with its owner's user id.
/// For a virtual environment, this is the folder that contains its Python, even if that Python is a link.
fn program_prefixes(program: &[String]) -> Vec<(PathBuf, u32)> {
    let mut out = Vec::new();
    for word in program.iter().filter(|w| !w.starts_with('-')) {
        let path = if word.contains('/') { Some(PathBuf::from(word)) } else { locate_tools::find_on_path(word) };
        // Skip arguments that are data files, not programs.
        let program = path.filter(|p| std::fs::metadata(p).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0));
        let Some(path) = program.and_then(|p| std::path::absolute(p).ok()) else { continue };
        for whole in [Some(path.clone()), std::fs::canonicalize(&path).ok()].into_iter().flatten() {
            let prefix = whole.parent().filter(|b| b.ends_with("bin")).and_then(Path::parent);
            out.extend(prefix.and_then(|p| Some((p.to_owned(), owner_uid(&whole)?))));
        }
    }
    out
}

fn owner_uid(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|m| m.uid())
}

/// Finds every libcupti for a program, in the order in which they are tried, except those that other users could have
/// installed; the owner of the program, or of a folder that a variable names, is trusted. `root` is `/` except in
/// tests.
pub fn find_libraries(root: &Path, program: &[String], variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<Library> {
    let mut folders: Vec<(PathBuf, &'static str, Option<u32>)> = Vec::new();
    let named = |name: &str| variable(name).map(|path| (path.clone(), owner_uid(&path)));
    let mut add_of = |all: Vec<PathBuf>, of, owner: Option<u32>| folders.extend(all.into_iter().map(|f| (f, of, owner)));
    let programs = program_prefixes(program).into_iter().map(|(prefix, owner)| (prefix, Some(owner)));
    for (prefix, owner) in programs.chain(named("VIRTUAL_ENV")) {
        add_of(package_folders(&prefix), "Python's packages", owner);
    }
    if let Some((conda, owner)) = named("CONDA_PREFIX") {
        let own = vec![conda.join("lib"), conda.join("extras/CUPTI/lib64"), conda.join("targets/x86_64-linux/lib")];
        add_of(own, "conda", owner);
        add_of(package_folders(&conda), "Python's packages", owner);
    }
    let toolkits = [named("CUDA_HOME"), named("CUDA_PATH")].into_iter().flatten();
    for (cuda, owner) in toolkits.chain(subfolders_with_prefix(&root.join("usr/local"), "cuda").into_iter().map(|cuda| (cuda, None))) {
        add_of(vec![cuda.join("extras/CUPTI/lib64"), cuda.join("lib64")], "the CUDA toolkit", owner);
        add_of(subfolders_with_prefix(&cuda.join("targets"), "").into_iter().map(|t| t.join("lib")).collect(), "the CUDA toolkit", owner);
    }
    let mut add = |all: Vec<PathBuf>, of| add_of(all, of, None);
    for system in ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"] {
        add(vec![root.join(system)], "the system's libraries");
    }
    for (product, name) in [("nsight-systems", "Nsight Systems"), ("nsight-compute", "Nsight Compute")] {
        for version in subfolders_with_prefix(&root.join("opt/nvidia").join(product), "") {
            add(subfolders_with_prefix(&version, "target-linux"), name);
            add(subfolders_with_prefix(&version.join("host"), "target-linux"), name);
            add(subfolders_with_prefix(&version.join("target"), "linux"), name);
        }
    }
    // Other Pythons, such as one that a script starts.
    for prefix in [root.join("usr/local"), root.join("usr"), root.join("opt/conda"), root.join("opt/venv")] {
        add(package_folders(&prefix), "Python's packages");
    }
    let mut seen = std::collections::HashSet::new();
    folders
        .into_iter()
        .filter_map(|(folder, of, owner)| {
            let path = find_libcupti_in(&folder)?;
            let real = private_files::resolve_trusted(&path, owner.as_slice()).ok()?;
            seen.insert(real).then_some(Library { path, of })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_programs_own_python_comes_first() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let toolkit = file("usr/local/cuda-12.8/extras/CUPTI/lib64/libcupti.so.12");
        file("usr/local/cuda-12.8/extras/CUPTI/lib64/libcupti.so");
        file("usr/local/cuda-12.8/extras/CUPTI/lib64/libcupti.so.2025.1.1");
        let wheel = file("venv/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
        let nsight = file("opt/nvidia/nsight-systems/2025.3.2/target-linux-x64/libcupti.so.12.9");
        let python = file("venv/bin/python3").display().to_string();
        let program = ["no-such-launcher".to_owned(), "-n".to_owned(), python, "train.py".to_owned()];
        let found: Vec<_> = find_libraries(root.path(), &program, |_| None).into_iter().map(|l| (l.path, l.of)).collect();
        let (packages, cuda) = ((wheel.clone(), "Python's packages"), (toolkit, "the CUDA toolkit"));
        assert_eq!(found, [packages, cuda.clone(), (nsight.clone(), "Nsight Systems")]);
        // Others can write to the folder of this file, so the file does not count as a program, and the library may be
        // another user's.
        let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let of = |program: &[String]| find_libraries(root.path(), program, |_| None).into_iter().map(|l| l.path).collect::<Vec<_>>();
        mode(&root.path().join("venv/bin/python3"), 0o644);
        assert_eq!(of(&program), [cuda.0.clone(), nsight.clone()]);
        mode(&root.path().join("venv/bin/python3"), 0o755);
        mode(wheel.parent().unwrap(), 0o777);
        assert_eq!(of(&program), [cuda.0, nsight]);
        assert_eq!(find_libraries(&root.path().join("nothing"), &[], |_| None), []);
    }
}
