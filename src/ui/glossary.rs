//! Glossary of the signs and terms used on the screens, for `?` and the README.

/// Signs and terms with their meanings; a test compares the entries with the README.
pub const GLOSSARY: &[(&str, &str)] = &[
    ("◆", "metrics of exactly this launch: ncu's command counts to it, or no other launch could be meant"),
    ("◇", "metrics of a similar launch: same kernel, grid and block, but which of several identical launches ncu measured is unknown"),
    (
        "▲",
        "a finding with 30% of the run at stake (red, or yellow if the cause is only possible), or a hint with 30% of the kernel's time and 5% of a recorded run; in a comparison, worse by more than chance; in a column header, sorted upwards",
    ),
    ("△", "a finding with 10% of the run at stake, or a hint with 10% of the kernel's time and 1% of the run"),
    ("·", "a finding or a hint with less at stake; in the checklist, not needed"),
    ("✓", "the kernel is near its roof; in a comparison, better by more than chance; in the checklist, done"),
    (
        "p",
        "between two runs: the probability that the durations of single launches differ as much by chance (Mann–Whitney); red and green only below 0.001 and from 1% of the median on; empty where one of the runs has fewer than eight launches",
    ),
    (
        "nth",
        "counts from 0, as ncu does: how many launches of the same function came earlier in the same process, in the order of the launching calls: what ncu's --launch-skip counts for a single process",
    ),
    (
        "waves",
        "how often the grid fills the GPU: its blocks over the blocks that all SMs can hold at once; a last wave that is not full leaves SMs idle",
    ),
    (
        "family",
        "the kind of work that a kernel does (GEMM, attention, copy …), guessed from its name; it decides the colour of the swatch before its name",
    ),
    ("joined", "said of ncu's result when it has been assigned to a launch of a timeline that is open alongside it"),
];
