use super::img_ids::Imgs;
use conrod_core::{widget, Sizeable, Widget};

const BAR_WIDTH: f64 = 180.0;

pub struct BuffBar {
    pub imgs: Imgs,
    pub fade: f32,
}

impl BuffBar {
    /// How visible an icon is when its buff is about to end.
    pub fn opacity(&self, seconds_left: f32) -> f32 {
        if seconds_left > 5.0 {
            1.0
        } else {
            (seconds_left / 5.0).max(0.2) * self.fade
        }
    }

    pub fn width(&self, icons: usize) -> f64 {
        BAR_WIDTH.min(icons as f64 * 22.0)
    }
}
