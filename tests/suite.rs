//! All integration tests in one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::pedantic, missing_docs)]

mod suite {
    mod arrows;
    mod cli;
    mod corpus;
    mod damage;
    mod diff;
    mod docs;
    mod doctor;
    mod export;
    mod exporter;
    mod first_minute;
    mod gains;
    mod handout;
    mod hints;
    mod hostile;
    mod hostile_tty;
    mod job_files;
    mod jobs;
    mod join;
    mod layers;
    mod live;
    mod look;
    mod made_memory;
    mod measured;
    mod memory;
    mod narrow;
    mod ncu_metrics;
    mod ncu_model;
    mod ncu_results;
    mod ncu_screens;
    mod odd;
    mod order;
    mod pages;
    mod probe;
    mod ranks;
    mod ranks_nccl;
    mod recipes_cli;
    mod rerun;
    mod rerun_cli;
    mod rerun_edges;
    mod rerun_screen;
    mod rerun_warnings;
    mod rocm;
    mod rocm_odd;
    mod rocm_tables;
    mod rocprof;
    mod run_screens;
    mod run_tty;
    mod runs;
    mod screens;
    mod shell;
    mod slices;
    mod stats;
    pub mod support;
    mod themes;
    mod timeline;
    mod timeline_screen;
    mod torch;
    mod trace;
    mod trace_event;
    mod tracer;
    mod triage;
    pub mod tty;
    mod whole;
}
