use specs::Component;

/// How worn a piece of equipment is, from 0 (new) to 12 (broken).
#[derive(Clone, Copy, Debug, Default)]
pub struct Durability(pub u32);

impl Durability {
    pub const MAX: u32 = 12;

    pub fn worn(self) -> Self { Self((self.0 + 1).min(Self::MAX)) }

    pub fn stat_multiplier(self) -> f32 {
        const THRESHOLD: u32 = 9;
        const LOWEST: f32 = 0.25;
        let steps = Self::MAX - THRESHOLD;
        let above = self.0.saturating_sub(THRESHOLD).min(steps);
        1.0 - above as f32 / steps as f32 * (1.0 - LOWEST)
    }
}
