//! Fuzzy matching of names, wrapping the matcher crate.

use fuzzy_matcher::FuzzyMatcher;
use fuzzy_matcher::skim::SkimMatcherV2;

/// A pattern to match against many names. Lowercase letters match both cases.
pub struct Fuzzy {
    matcher: SkimMatcherV2,
    words: Vec<String>,
}

impl Fuzzy {
    /// Creates a matcher for a pattern; spaces separate words, all of which must match.
    pub fn new(pattern: &str) -> Self {
        Self { matcher: SkimMatcherV2::default().smart_case(), words: pattern.split_whitespace().map(str::to_owned).collect() }
    }

    /// Returns the score (higher is better) and the positions of the matched characters; `None` without a match.
    pub fn match_positions(&self, name: &str) -> Option<(i64, Vec<usize>)> {
        let mut score = 0;
        let mut at = Vec::new();
        for word in &self.words {
            let (s, positions) = self.matcher.fuzzy_indices(name, word).filter(|(_, p)| is_tight(p))?;
            score += s;
            at.extend(positions);
        }
        at.sort_unstable();
        at.dedup();
        Some((score, at))
    }

    /// Returns true if all words match.
    pub fn matches(&self, name: &str) -> bool {
        self.words.iter().all(|w| self.matcher.fuzzy_indices(name, w).is_some_and(|(_, p)| is_tight(&p)))
    }
}

/// Matches spread over more than this many times the word's length are coincidental: most C++ names contain the letters
/// of `softmax`.
const LOOSEST: usize = 4;

fn is_tight(positions: &[usize]) -> bool {
    match (positions.first(), positions.last()) {
        (Some(first), Some(last)) => last - first < positions.len() * LOOSEST,
        _ => true,
    }
}

/// Returns the candidate closest to a misspelled word by edit distance; `None` if none is close.
pub fn nearest_match<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count().div_ceil(2).max(2);
    candidates.into_iter().map(|c| (edit_distance(word, c), c)).filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// Similarity of two names, 0 to 1: the unchanged fraction of the longer one (Levenshtein). For very long names, only
/// the beginning is compared.
pub fn name_similarity(a: &str, b: &str) -> f64 {
    const MOST: usize = 300;
    let cut = |t: &str| t.chars().take(MOST).collect::<String>();
    let (a, b) = (cut(a), cut(b));
    let longer = a.chars().count().max(b.chars().count());
    if longer == 0 { 1.0 } else { 1.0 - edit_distance(&a, &b) as f64 / longer as f64 }
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_in_any_order_and_say_where() {
        let fuzzy = Fuzzy::new("norm lay");
        assert!(fuzzy.matches("vectorized_layer_norm_kernel"));
        let (_, at) = fuzzy.match_positions("layer_norm").unwrap();
        assert_eq!(at, [0, 1, 2, 6, 7, 8, 9]);
        assert!(Fuzzy::new("vecnorm").matches("vectorized_layer_norm_kernel"));
        assert!(!Fuzzy::new("gemm").matches("cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16"));
        assert!(Fuzzy::new("").matches("anything"));
        assert!(!Fuzzy::new("xyz").matches("gemm"));
    }

    #[test]
    fn the_nearest_word_is_offered_only_when_near() {
        assert_eq!(nearest_match("tehme", ["theme", "keys", "sort"]), Some("theme"));
        assert_eq!(nearest_match("zzzzzz", ["theme", "keys"]), None);
    }
}
