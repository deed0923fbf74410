//! Parsers for dimensions and launch configurations as written by several tools.

use crate::model::{Bytes as Size, LaunchConfig};

/// Parses three dimensions from a list or string: `[1,2,3]`, `"1,2,3"`, `"(1, 2, 3)"`, `"4x2x1"`.
pub fn parse_dims_text(text: &str) -> Option<[u32; 3]> {
    let mut out = [1; 3];
    let mut n = 0;
    for part in text.trim_matches(['(', ')', '[', ']', ' ', '"']).split([',', 'x', '×']) {
        *out.get_mut(n)? = part.trim().parse().ok()?;
        n += 1;
    }
    (n > 0).then_some(out)
}

/// Parses `regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:256,1,1 occ_pct:100`, as written by `TensorFlow`
/// and JAX.
pub fn kernel_details(text: &str, config: &mut LaunchConfig) {
    for (key, value) in text.split([' ', '\n']).filter_map(|w| w.split_once(':')) {
        match key {
            "regs" => config.registers = value.parse().ok(),
            "static_shared" => config.static_shared = value.parse().ok().map(Size),
            "dynamic_shared" => config.dynamic_shared = value.parse().ok().map(Size),
            "grid" => config.grid = parse_dims_text(value),
            "block" => config.block = parse_dims_text(value),
            _ => {}
        }
    }
}

/// Parses the size in bytes from `kind_src:pageable kind_dst:device size:4194304 dest:0 async:1`.
pub fn parse_size(text: &str) -> Option<u64> {
    text.split(' ').filter_map(|w| w.split_once(':')).find(|w| w.0 == "size").and_then(|w| w.1.parse().ok())
}

/// Parses a configuration as written by `warpscope export`:
/// `grid 2×66 block 384, 168 registers, 213188 B shared memory`.
pub fn our_config(words: &str, config: &mut LaunchConfig) {
    let mut list = words.split([' ', ',']).filter(|w| !w.is_empty()).peekable();
    let mut before = "";
    while let Some(word) = list.next() {
        match word {
            "grid" => config.grid = list.peek().and_then(|w| parse_dims_text(w)),
            "block" => config.block = list.peek().and_then(|w| parse_dims_text(w)),
            "registers" => config.registers = before.parse().ok(),
            "B" => config.dynamic_shared = before.parse().ok().map(Size),
            _ => {}
        }
        before = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_several_spellings() {
        for text in ["4,2,1", "(4, 2, 1)", "4x2x1", "[4,2,1]", "4×2"] {
            assert_eq!(parse_dims_text(text), Some([4, 2, 1]), "{text}");
        }
        assert_eq!((parse_dims_text(""), parse_dims_text("a"), parse_dims_text("1,2,3,4")), (None, None, None));
    }

    #[test]
    fn configurations_in_words() {
        let mut config = LaunchConfig::default();
        kernel_details("regs:32 static_shared:16 dynamic_shared:0 grid:7,1,1 block:256,1,1 occ_pct:100", &mut config);
        assert_eq!((config.registers, config.grid, config.block), (Some(32), Some([7, 1, 1]), Some([256, 1, 1])));
        assert_eq!(parse_size("kind_src:pageable kind_dst:device size:4194304 dest:0 async:1"), Some(4_194_304));
        let mut config = LaunchConfig::default();
        our_config("grid 2×66 block 384, 168 registers, 213188 B shared memory", &mut config);
        assert_eq!((config.grid, config.block), (Some([2, 66, 1]), Some([384, 1, 1])));
        assert_eq!((config.registers, config.dynamic_shared), (Some(168), Some(Size(213_188))));
    }
}
