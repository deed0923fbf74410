//! Memory system of one result: traffic between SM, L1, shared memory, L2 and device memory, and the underlying tables.
//!
//! A sector has 32 bytes on every chip since Volta. `pct_of_peak_sustained_elapsed` is used if the report has it;
//! values that were not collected are omitted.

use super::metric::Lookup;
use crate::model::Value;
use crate::model::sections::MemoryTable;
use std::sync::Arc;

/// Bytes per sector.
const SECTOR: f64 = 32.0;

/// A connection between two units.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Direction of the traffic, as a label: `reads`, `writes`.
    pub word: &'static str,
    /// Total bytes.
    pub bytes: Option<f64>,
    /// Bytes per second.
    pub rate: Option<f64>,
    /// Percent of the peak rate.
    pub percent: Option<f64>,
    /// Source metric.
    pub metric: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Requests from the SM to L1, by kind: instructions, sectors per request and hit rate.
    pub kinds: Vec<RequestKind>,
    /// Data returned from L1 to registers.
    pub l1_data: Option<Edge>,
    /// Shared-memory wavefronts.
    pub shared: Option<Edge>,
    /// Traffic from L2 to L1 and back.
    pub l2: Vec<Edge>,
    /// Traffic from device memory to L2 and back.
    pub dram: Vec<Edge>,
    /// Traffic to and from host memory and other GPUs.
    pub far: Vec<Edge>,
    /// L1 hit rate in percent.
    pub l1_hit: Option<f64>,
    /// L2 hit rate in percent.
    pub l2_hit: Option<f64>,
    /// Throughput of L1, L2 and device memory in percent.
    pub busy: [Option<f64>; 3],
    /// True if L1's throughput is relative to active cycles; the others are always relative to elapsed cycles.
    pub l1_while_active: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RequestKind {
    /// Label, such as `global loads`.
    pub word: &'static str,
    pub instructions: Option<f64>,
    /// Sectors per request: 4 for coalesced 32-bit accesses of a full warp.
    pub sectors: Option<f64>,
    /// L1 hit rate, percent.
    pub hit: Option<f64>,
}

impl Flow {
    /// Reads the traffic of a result; `None` if it has none.
    pub fn from_lookup(lookup: &Lookup<'_>) -> Option<Self> {
        let get = |name: &str| lookup.finite_number(name);
        let seconds = lookup.metrics.duration(lookup.result).map(crate::model::Nanos::as_seconds).filter(|s| *s > 0.0);
        let edge = |word: &'static str, names: &[&str], unit: f64| {
            names.iter().find_map(|base| {
                let bytes = get(&format!("{base}.sum")).map(|v| v * unit);
                let rate = get(&format!("{base}.sum.per_second")).map(|v| v * unit);
                let forms = ["sum.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_elapsed"];
                let percent = forms.iter().find_map(|form| get(&format!("{base}.{form}")));
                if bytes.is_none() && rate.is_none() && percent.is_none() {
                    return None;
                }
                let rate = rate.or_else(|| Some(bytes? / seconds?));
                Some(Edge { word, bytes, rate, percent, metric: format!("{base}.sum") })
            })
        };
        let kind = |word: &'static str, what: &str, op: &str| {
            let instructions = lookup.first_finite(&[
                &format!("smsp__sass_inst_executed_op_{what}_{op}.sum"),
                &format!("smsp__inst_executed_op_{what}_{op}.sum"),
            ]);
            let base = format!("pipe_lsu_mem_{what}_op_{op}");
            let requests = get(&format!("l1tex__t_requests_{base}.sum"));
            let sectors = get(&format!("l1tex__average_t_sectors_per_request_{base}.ratio")).or_else(|| {
                let sectors = get(&format!("l1tex__t_sectors_{base}.sum"))?;
                requests.filter(|r| *r > 0.0).map(|r| sectors / r)
            });
            let hit = get(&format!("l1tex__t_sector_{base}_hit_rate.pct")).or_else(|| {
                let (hit, all) = (get(&format!("l1tex__t_sectors_{base}_lookup_hit.sum"))?, get(&format!("l1tex__t_sectors_{base}.sum"))?);
                (all > 0.0).then(|| hit / all * 100.0)
            });
            let used = instructions.or(requests).is_some_and(|n| n > 0.0);
            used.then_some(RequestKind { word, instructions: instructions.or(requests), sectors, hit })
        };
        let kinds = [
            kind("global loads", "global", "ld"),
            kind("global stores", "global", "st"),
            kind("local loads", "local", "ld"),
            kind("local stores", "local", "st"),
            kind("reductions", "global", "red"),
        ];
        let far = [
            ("sysmem reads", "lts__t_sectors_srcunit_tex_aperture_sysmem_op_read_lookup_miss"),
            ("sysmem writes", "lts__t_sectors_srcunit_tex_aperture_sysmem_op_write"),
            ("peer reads", "lts__t_sectors_srcunit_tex_aperture_peer_op_read_lookup_miss"),
            ("peer writes", "lts__t_sectors_srcunit_tex_aperture_peer_op_write"),
        ];
        let l1_active = get("l1tex__throughput.avg.pct_of_peak_sustained_active");
        let out = Self {
            kinds: kinds.into_iter().flatten().collect(),
            l1_data: edge(
                "data to registers",
                &["l1tex__lsu_writeback_active_mem_lgds", "l1tex__lsu_writeback_active_mem_lg", "l1tex__lsu_writeback_active"],
                128.0,
            ),
            shared: edge("wavefronts", &["l1tex__data_pipe_lsu_wavefronts_mem_shared"], 1.0).map(|e| Edge { rate: None, ..e }),
            l2: [edge("reads", &["l1tex__m_xbar2l1tex_read_bytes"], 1.0), edge("writes", &["l1tex__m_l1tex2xbar_write_bytes"], 1.0)]
                .into_iter()
                .flatten()
                .collect(),
            dram: [
                edge("reads", &["dram__bytes_read", "dram__bytes_op_read"], 1.0),
                edge("writes", &["dram__bytes_write", "dram__bytes_op_write"], 1.0),
            ]
            .into_iter()
            .flatten()
            .collect(),
            far: far
                .into_iter()
                .filter_map(|(word, base)| edge(word, &[base], SECTOR))
                .filter(|e| e.bytes.is_some_and(|b| b > 0.0))
                .collect(),
            l1_hit: get("l1tex__t_sector_hit_rate.pct"),
            l2_hit: get("lts__t_sector_hit_rate.pct"),
            busy: [
                l1_active.or_else(|| get("l1tex__throughput.avg.pct_of_peak_sustained_elapsed")),
                lookup.first_finite(&[
                    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
                    "lts__busiest_part.max.pct_of_peak_sustained_elapsed",
                ]),
                lookup.first_finite(&[
                    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                ]),
            ],
            l1_while_active: l1_active.is_some(),
        };
        (!out.l2.is_empty() || !out.dram.is_empty() || !out.kinds.is_empty()).then_some(out)
    }

    /// Returns the busiest connection and its percentage of peak; it is the first one to look at.
    pub fn busiest_edge(&self) -> Option<(&Edge, f64)> {
        let all = self.l1_data.iter().chain(&self.shared).chain(&self.l2).chain(&self.dram);
        all.filter_map(|e| Some((e, e.percent?))).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// A table: column titles, and rows with a label and one expression per column. An expression is a list of alternative
/// metrics, of which the first one present is used (`a|b`), or a ratio of two (`a/b`; with a leading `%`, in percent).
pub struct MetricTable {
    pub columns: Vec<&'static str>,
    pub rows: Vec<(&'static str, Vec<String>)>,
}

/// Returns the metrics of a table.
pub fn metric_table(which: MemoryTable) -> MetricTable {
    match which {
        MemoryTable::Shared => {
            let rows = [("loads", "ld"), ("stores", "st"), ("atomics", "atom")].map(|(word, op)| {
                let cells = vec![
                    format!("smsp__sass_inst_executed_op_shared_{op}.sum|smsp__inst_executed_op_shared_{op}.sum"),
                    format!("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"),
                    format!("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"),
                    format!("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum.pct_of_peak_sustained_elapsed"),
                ];
                (word, cells)
            });
            let all = vec![
                "smsp__sass_inst_executed_op_shared.sum|smsp__inst_executed_op_shared.sum".to_owned(),
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum".to_owned(),
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum".to_owned(),
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed".to_owned(),
            ];
            MetricTable {
                columns: vec!["instructions", "wavefronts", "conflicts", "of peak"],
                rows: rows.into_iter().chain([("all", all)]).collect(),
            }
        }
        MemoryTable::L1 => {
            let kinds = [
                ("global loads", "lsu_mem_global_op_ld"),
                ("global stores", "lsu_mem_global_op_st"),
                ("global atomics", "lsu_mem_global_op_atom"),
                ("global reductions", "lsu_mem_global_op_red"),
                ("local loads", "lsu_mem_local_op_ld"),
                ("local stores", "lsu_mem_local_op_st"),
                ("texture", "tex_mem_texture"),
                ("surface loads", "tex_mem_surface_op_ld"),
                ("surface stores", "tex_mem_surface_op_st"),
            ];
            let row = |base: &str| {
                vec![
                    format!("l1tex__t_requests_pipe_{base}.sum"),
                    format!("l1tex__t_sectors_pipe_{base}.sum"),
                    format!(
                        "l1tex__average_t_sectors_per_request_pipe_{base}.ratio|l1tex__t_sectors_pipe_{base}.sum/l1tex__t_requests_pipe_{base}.sum"
                    ),
                    format!(
                        "l1tex__t_sector_pipe_{base}_hit_rate.pct|%l1tex__t_sectors_pipe_{base}_lookup_hit.sum/l1tex__t_sectors_pipe_{base}.sum"
                    ),
                ]
            };
            MetricTable {
                columns: vec!["requests", "sectors", "sectors/req", "hit rate"],
                rows: kinds.into_iter().map(|(word, base)| (word, row(base))).collect(),
            }
        }
        MemoryTable::L2 => {
            let kinds = [
                ("L1/TEX loads", "tex_op_read"),
                ("L1/TEX stores", "tex_op_write"),
                ("L1/TEX atomics", "tex_op_atom"),
                ("L1/TEX reductions", "tex_op_red"),
                ("L1/TEX, all", "tex"),
                ("other half of L2", "ltcfabric"),
            ];
            let row = |base: &str| {
                vec![
                    format!("lts__t_requests_srcunit_{base}.sum"),
                    format!("lts__t_sectors_srcunit_{base}.sum"),
                    format!("lts__t_sectors_srcunit_{base}.sum/lts__t_requests_srcunit_{base}.sum"),
                    format!("%lts__t_sectors_srcunit_{base}_lookup_hit.sum/lts__t_sectors_srcunit_{base}.sum"),
                ]
            };
            MetricTable {
                columns: vec!["requests", "sectors", "sectors/req", "hit rate"],
                rows: kinds.into_iter().map(|(word, base)| (word, row(base))).collect(),
            }
        }
        MemoryTable::Dram => {
            let row = |op: &str| {
                let either = |form: &str| format!("dram__bytes_{op}.{form}|dram__bytes_op_{op}.{form}");
                vec![
                    format!("dram__sectors_{op}.sum|dram__sectors_op_{op}.sum"),
                    either("sum"),
                    either("sum.per_second"),
                    either("sum.pct_of_peak_sustained_elapsed"),
                ]
            };
            MetricTable {
                columns: vec!["sectors", "bytes", "rate", "of peak"],
                rows: vec![("reads", row("read")), ("writes", row("write"))],
            }
        }
    }
}

/// Evaluates a column's expression: metric, value and unit. `None` if it was not collected, or if the denominator of a
/// ratio is zero.
pub fn evaluate_column<'a>(lookup: &Lookup<'a>, column: &str) -> Option<(Arc<str>, Value, &'a str)> {
    column.split('|').find_map(|one| {
        let Some((over, under)) = one.split_once('/') else {
            return Some((Arc::from(one), lookup.value(one)?.clone(), lookup.unit(one)));
        };
        let percent = over.starts_with('%');
        let over = over.trim_start_matches('%');
        let ratio = lookup.finite_number(over)? / lookup.finite_number(under).filter(|u| *u > 0.0)?;
        Some((Arc::from(over), Value::Float(if percent { ratio * 100.0 } else { ratio }), if percent { "%" } else { "" }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Metrics, ResultMetrics};

    #[test]
    fn a_column_is_a_metric_or_a_ratio_of_two() {
        let names: Vec<Arc<str>> = ["hit", "all", "none"].map(Arc::from).into();
        let result = ResultMetrics::from_values(vec![(0, Value::Integer(3)), (1, Value::Integer(12)), (2, Value::Integer(0))]);
        let metrics = Metrics { units: vec![Arc::from("sector"); 3], names, results: vec![result], ..Metrics::default() };
        let lookup = Lookup::new(&metrics, &metrics.results[0]);
        let of = |column| evaluate_column(&lookup, column).map(|(n, v, u)| (n.to_string(), v, u.to_owned()));
        assert_eq!(of("absent|hit"), Some(("hit".to_owned(), Value::Integer(3), "sector".to_owned())));
        assert_eq!(of("absent|%hit/all"), Some(("hit".to_owned(), Value::Float(25.0), "%".to_owned())));
        assert_eq!(of("all/hit"), Some(("all".to_owned(), Value::Float(4.0), String::new())));
        assert_eq!(of("hit/none"), None);
        assert_eq!(of("hit/absent"), None);
    }
}
