//! A small seeded generator: the traces must not change when a dependency does.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that gives the same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "the numbers never end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..=high`; `low` when the range is empty. The modulo bias is of no matter here.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = high.saturating_sub(low).saturating_add(1).max(1).unsigned_abs();
        low + i64::try_from(self.next() % width).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_sequence() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn stays_in_range() {
        let mut rng = Rng::new(1);
        assert!(
            (0..1000)
                .map(|_| rng.between(-3, 4))
                .all(|n| (-3..=4).contains(&n))
        );
    }
}
