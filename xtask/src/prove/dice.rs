//! Random choices that follow from a seed: the same ones on every machine.

/// Rolls numbers (splitmix64).
pub(super) struct Dice(u64);

impl Dice {
    /// The dice of one story among many that begin with the same seed.
    pub(super) fn new(seed: u64, story: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0xA24B_AED4_963E_E407) ^ story);
        dice.roll();
        dice
    }

    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    /// One of several.
    pub(super) fn one<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }

    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.roll() >> 32) as u8).collect()
    }
}

/// Bytes that no compression makes small.
pub(super) fn noise(length: usize, seed: u64) -> Vec<u8> {
    Dice::new(seed, 0).bytes(length)
}
