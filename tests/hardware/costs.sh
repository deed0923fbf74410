#!/bin/sh
# Passes, seconds and bytes of a result for each set, section and question, as they stand in src/rerun/collect.rs: one and five launches of a
# kernel of a microsecond are profiled, and the difference is divided by four. By hand, on a machine with ncu, in a folder with the program
# `launches` (made from launches.cu). Clocks are left as they are.
set -eu
seconds() { date +%s.%N; }
cost() {
    for n in 1 5; do
        rm -f "c$n.ncu-rep"
        from=$(seconds)
        ncu --clock-control none "$@" --export "c$n" --kernel-name saxpy --launch-count "$n" ./launches single >"c$n.log" 2>&1
        to=$(seconds)
        eval "t$n=$(awk "BEGIN { print $to - $from }") b$n=$(stat -c %s "c$n.ncu-rep")"
    done
    passes=$(grep -o '[0-9]* pass' c1.log | head -n 1)
    awk "BEGIN { printf \"%-90s %s  %.3f s  %d bytes\\n\", \"$*\", \"$passes\", ($t5 - $t1) / 4, ($b5 - $b1) / 4 }"
}
for set in basic detailed full roofline nvlink pmsampling; do cost --set "$set"; done
for section in SpeedOfLight LaunchStats Occupancy WorkloadDistribution MemoryWorkloadAnalysis MemoryWorkloadAnalysis_Chart MemoryWorkloadAnalysis_Tables \
    ComputeWorkloadAnalysis InstructionStats SchedulerStats WarpStateStats SourceCounters SpeedOfLight_RooflineChart PmSampling; do
    cost --section "$section"
done
cost --section SpeedOfLight --section LaunchStats --section Occupancy
cost --section SpeedOfLight --section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Chart --section MemoryWorkloadAnalysis_Tables
cost --section SpeedOfLight --section SchedulerStats --section WarpStateStats
cost --section SpeedOfLight --section ComputeWorkloadAnalysis --section InstructionStats
cost --section LaunchStats --section Occupancy
cost --section SchedulerStats --section WarpStateStats --section SourceCounters
