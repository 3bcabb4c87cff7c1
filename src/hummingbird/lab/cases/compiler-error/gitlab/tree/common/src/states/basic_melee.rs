use crate::{
    combat::{AttackSource, Damage},
    states::{behavior::CharacterBehavior, utils::StageSection},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What never changes while the swing lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StaticData {
    /// How long until the blow lands
    pub buildup_duration: Duration,
    /// How long the weapon moves through
    pub swing_duration: Duration,
    /// How long until the next action
    pub recover_duration: Duration,
    pub damage: Damage,
    pub range: f32,
    pub max_angle: f32,
    pub source: AttackSource,
    /// Tells the frontend which look this swing has
    pub frontend_specifier: Option<FrontendSpecifier>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrontendSpecifier {
    FlameTornado,
    IceWhirl,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    pub static_data: StaticData,
    pub timer: Duration,
    pub stage_section: StageSection,
    pub exhausted: bool,
}

impl CharacterBehavior for Data {}
