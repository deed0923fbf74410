//! Multi-process launchers: their options, the position of the program on their command line, and their rank variables.

/// A launcher, the rank variables of the processes that it starts, and its options by number of arguments.
#[derive(Debug)]
pub struct Launcher {
    /// Executable names without a directory.
    pub names: &'static [&'static str],
    /// Variables that hold the rank, most common first.
    pub variables: &'static [&'static str],
    with_value: &'static [&'static str],
    /// Options that take two arguments.
    with_two: &'static [&'static str],
    flags: &'static [&'static str],
    /// Options known only to the implementation that sets the second variable.
    second: &'static [&'static str],
}

pub static LAUNCHERS: &[Launcher] = &[
    Launcher {
        names: &["torchrun"],
        variables: &["RANK"],
        with_value: &[
            "--nnodes",
            "--nproc-per-node",
            "--nproc_per_node",
            "--node-rank",
            "--node_rank",
            "--master-addr",
            "--master_addr",
            "--master-port",
            "--master_port",
            "--rdzv-backend",
            "--rdzv_backend",
            "--rdzv-endpoint",
            "--rdzv_endpoint",
            "--rdzv-id",
            "--rdzv_id",
            "--rdzv-conf",
            "--rdzv_conf",
            "--max-restarts",
            "--max_restarts",
            "--monitor-interval",
            "--monitor_interval",
            "--start-method",
            "--start_method",
            "--log-dir",
            "--log_dir",
            "-r",
            "--redirects",
            "-t",
            "--tee",
            "--role",
        ],
        with_two: &[],
        flags: &["--standalone", "--no-python", "--no_python", "-m", "--module"],
        second: &[],
    },
    Launcher {
        names: &["mpirun", "mpiexec", "mpiexec.hydra"],
        variables: &["OMPI_COMM_WORLD_RANK", "PMI_RANK"],
        with_value: &[
            "-n",
            "-np",
            "--np",
            "-N",
            "-c",
            "-H",
            "-host",
            "--host",
            "-hostfile",
            "--hostfile",
            "-machinefile",
            "--machinefile",
            "-x",
            "--map-by",
            "-map-by",
            "--bind-to",
            "-bind-to",
            "--rank-by",
            "-wdir",
            "--wdir",
            "-ppn",
            "-hosts",
            "-f",
        ],
        with_two: &["-mca", "--mca", "-gmca", "-genv", "-env"],
        flags: &["--allow-run-as-root", "--oversubscribe", "--tag-output", "--display-map", "--report-bindings", "-q"],
        second: &["-ppn", "-hosts", "-genv", "-env", "-f"],
    },
    Launcher {
        names: &["srun"],
        variables: &["SLURM_PROCID"],
        with_value: &[
            "-n",
            "-N",
            "-c",
            "-p",
            "-w",
            "-t",
            "-A",
            "-J",
            "-G",
            "-q",
            "-C",
            "-D",
            "--ntasks",
            "--nodes",
            "--cpus-per-task",
            "--gpus",
            "--gpus-per-task",
            "--gpus-per-node",
            "--ntasks-per-node",
            "--partition",
            "--nodelist",
            "--time",
            "--account",
            "--job-name",
            "--qos",
            "--constraint",
            "--chdir",
            "--mpi",
            "--mem",
            "--gres",
            "--export",
            "--cpu-bind",
            "--gpu-bind",
            "--container-image",
            "--container-mounts",
        ],
        with_two: &[],
        flags: &["-u", "-l", "--exclusive", "--unbuffered", "--label"],
        second: &[],
    },
];

/// A parsed launcher command line.
#[derive(Debug)]
pub struct Launched {
    pub launcher: &'static Launcher,
    /// The launcher and its options, changed to start [`inner`](Self::inner) as an executable.
    pub head: Vec<String>,
    /// The program that each rank runs.
    pub inner: Vec<String>,
    /// Variable that holds the rank.
    pub variable: &'static str,
}

/// Returns the launcher that a command starts, if any, and the number of words that make up its name. `python -m
/// torch.distributed.run` is torchrun.
fn find_launcher(argv: &[String]) -> Option<(&'static Launcher, usize)> {
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let name = base(argv.first()?);
    let torchrun = name.starts_with("python")
        && argv.get(1).is_some_and(|w| w == "-m")
        && argv.get(2).is_some_and(|w| w == "torch.distributed.run" || w == "torch.distributed.launch");
    let (name, words) = if torchrun { ("torchrun".to_owned(), 3) } else { (name, 1) };
    LAUNCHERS.iter().find(|l| l.names.contains(&name.as_str())).map(|l| (l, words))
}

/// Parses a launcher's command line. Returns `None` for an unknown launcher, and `Some(Err(WORD))` for a word that
/// makes the position of the program ambiguous, e.g. an option that may or may not take an argument.
pub fn split_command(argv: &[String]) -> Option<Result<Launched, String>> {
    let (launcher, mut at) = find_launcher(argv)?;
    let torchrun = launcher.names.contains(&"torchrun");
    while let Some(word) = argv.get(at) {
        if !word.starts_with('-') {
            break;
        }
        let word = word.as_str();
        at += if word.contains('=') || launcher.flags.contains(&word) {
            1
        } else if launcher.with_value.contains(&word) {
            2
        } else if launcher.with_two.contains(&word) {
            3
        } else {
            return Some(Err(word.to_owned()));
        };
    }
    if at >= argv.len() {
        return Some(Err(argv.last().cloned().unwrap_or_default()));
    }
    let mut inner = argv[at..].to_vec();
    // `mpirun … a : … b` starts several programs.
    if !torchrun && inner.iter().any(|w| w == ":") {
        return Some(Err(":".to_owned()));
    }
    let mut head = argv[..at].to_vec();
    if torchrun {
        let own = if head.len() > 2 && head[1] == "-m" && head[2].starts_with("torch.") { 3 } else { 1 };
        let has = |words: &[&str]| head[own..].iter().any(|w| words.contains(&w.as_str()));
        let module = has(&["-m", "--module"]);
        if !has(&["--no-python", "--no_python"]) {
            // torchrun runs Python scripts by default, but the inserted program is not one.
            let python = if own == 3 { head[0].clone() } else { "python3".to_owned() };
            let words = [python].into_iter().chain(module.then(|| "-m".to_owned()));
            inner.splice(0..0, words);
            let mut n = 0;
            head.retain(|w| {
                n += 1;
                n <= own || (w != "-m" && w != "--module")
            });
            head.push("--no-python".to_owned());
        }
    }
    let second = head.iter().any(|w| launcher.second.contains(&w.as_str()) || w.ends_with("mpiexec.hydra"));
    let variable = launcher.variables.get(usize::from(second)).or(launcher.variables.first()).copied().unwrap_or("RANK");
    Some(Ok(Launched { launcher, head, inner, variable }))
}

impl Launcher {
    /// Returns the shell expansion of the rank, without `${` and `}`; expands to an empty string if no variable is
    /// set.
    pub fn shell_variable(&self) -> String {
        let mut out = String::new();
        for variable in self.variables.iter().rev() {
            out = if out.is_empty() { format!("{variable}:-") } else { format!("{variable}:-${{{out}}}") };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn taken(text: &str) -> (String, String, &'static str) {
        let l = split_command(&words(text)).unwrap().unwrap();
        (l.head.join(" "), l.inner.join(" "), l.variable)
    }

    #[test]
    fn commands_are_taken_apart_only_when_every_option_is_known() {
        let want = |head: &str, inner: &str, variable| (head.to_owned(), inner.to_owned(), variable);
        assert_eq!(
            taken("mpirun -np 4 -x A=b --mca btl self ./app 1"),
            want("mpirun -np 4 -x A=b --mca btl self", "./app 1", "OMPI_COMM_WORLD_RANK")
        );
        assert_eq!(taken("mpiexec -n 4 -ppn 2 ./app"), want("mpiexec -n 4 -ppn 2", "./app", "PMI_RANK"));
        assert_eq!(taken("srun --ntasks=4 -c 8 ./app -n 3"), want("srun --ntasks=4 -c 8", "./app -n 3", "SLURM_PROCID"));
        assert!(split_command(&words("python3 train.py")).is_none() && split_command(&[]).is_none());
        assert_eq!(split_command(&words("mpirun --mystery 3 ./app")).unwrap().unwrap_err(), "--mystery");
        assert_eq!(split_command(&words("mpirun -np 1 ./a : -np 1 ./b")).unwrap().unwrap_err(), ":");
        assert!(split_command(&words("mpirun -np 4")).unwrap().is_err());
        assert_eq!(LAUNCHERS[1].shell_variable(), "OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}");
    }

    #[test]
    fn torchrun_starts_what_goes_between_as_a_program() {
        let inner = |text: &str| taken(text).1;
        assert_eq!(
            taken("/usr/bin/torchrun --nproc_per_node=2 train.py --lr 1"),
            ("/usr/bin/torchrun --nproc_per_node=2 --no-python".to_owned(), "python3 train.py --lr 1".to_owned(), "RANK")
        );
        assert_eq!(taken("torchrun --standalone -m pkg.train -m x=1").0, "torchrun --standalone --no-python");
        assert_eq!(inner("torchrun --standalone -m pkg.train -m x=1"), "python3 -m pkg.train -m x=1");
        assert_eq!(inner("torchrun --no-python ./app 1"), "./app 1");
        assert_eq!(
            taken("/v/bin/python -m torch.distributed.run --nnodes 1 t.py"),
            ("/v/bin/python -m torch.distributed.run --nnodes 1 --no-python".to_owned(), "/v/bin/python t.py".to_owned(), "RANK")
        );
    }
}
