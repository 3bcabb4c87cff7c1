use crate::{
    combat::{AttackSource, Damage},
    comp::character_state::CharacterState,
    states::{basic_melee, utils::StageSection},
};
use std::time::Duration;

pub enum CharacterAbility {
    BasicMelee {
        buildup_duration: f32,
        swing_duration: f32,
        recover_duration: f32,
        damage: Damage,
        range: f32,
        max_angle: f32,
        frontend_specifier: Option<basic_melee::FrontendSpecifier>,
    },
}

impl From<&CharacterAbility> for CharacterState {
    fn from(ability: &CharacterAbility) -> Self {
        match ability {
            CharacterAbility::BasicMelee {
                buildup_duration,
                swing_duration,
                recover_duration,
                damage,
                range,
                max_angle,
                frontend_specifier,
            } => CharacterState::BasicMelee(basic_melee::Data {
                static_data: basic_melee::StaticData {
                    buildup_duration: Duration::from_secs_f32(*buildup_duration),
                    swing_duration: Duration::from_secs_f32(*swing_duration),
                    recover_duration: Duration::from_secs_f32(*recover_duration),
                    damage: damage.clone(),
                    range: *range,
                    max_angle: *max_angle,
                    source: AttackSource::Melee,
                    frontend_specifier: *frontend_specifier,
                },
                timer: Duration::default(),
                stage_section: StageSection::Buildup,
                exhausted: false,
            }),
        }
    }
}
