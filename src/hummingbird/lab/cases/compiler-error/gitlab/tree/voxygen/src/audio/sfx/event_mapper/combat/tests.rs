use super::*;
use crate::audio::sfx::SfxEvent;
use common::{
    combat::{AttackSource, Damage},
    comp::{
        character_state::CharacterState,
        inventory::loadout_builder::LoadoutBuilder,
        item::tool::{AbilityMap, ToolKind},
        CharacterAbilityType, Inventory,
    },
    states,
};
use std::time::{Duration, Instant};
// (the mapper is pure: no world, no clock)
// Each test gives the mapper one state and looks at the sound it asks for.

fn seen_before(weapon_drawn: bool) -> PreviousEntityState {
    PreviousEntityState {
        event: SfxEvent::Idle,
        time: Instant::now(),
        weapon_drawn,
    }
}

fn with_axe() -> Inventory {
    let loadout = LoadoutBuilder::empty().active_mainhand(Some(axe())).build();
    Inventory::with_loadout(loadout)
}

#[test]
fn maps_wield_while_equipping() {
    let result = CombatEventMapper::map_event(
        &CharacterState::Equipping(states::equipping::Data {
            static_data: states::equipping::StaticData {
                buildup_duration: Duration::from_millis(10),
            },
            timer: Duration::default(),
            is_sneaking: false,
        }),
        &seen_before(false),
        &with_axe(),
    );

    assert_eq!(result, SfxEvent::Wield(ToolKind::Axe));
}

#[test]
fn maps_unwield() {
    let result = CombatEventMapper::map_event(
        &CharacterState::default(),
        &seen_before(true),
        &with_axe(),
    );

    assert_eq!(result, SfxEvent::Unwield(ToolKind::Axe));
}

#[test]
fn idles_without_weapon() {
    let result = CombatEventMapper::map_event(
        &CharacterState::default(),
        &seen_before(false),
        &Inventory::with_empty(),
    );

    assert_eq!(result, SfxEvent::Idle);
}

#[test]
fn maps_basic_melee() {
    let result = CombatEventMapper::map_event(
        &CharacterState::BasicMelee(states::basic_melee::Data {
            static_data: states::basic_melee::StaticData {
                buildup_duration: Duration::default(),
                swing_duration: Duration::default(),
                recover_duration: Duration::default(),
                damage: Damage::default(),
                range: 3.5,
                max_angle: 15.0,
                source: AttackSource::Melee,
            },
            timer: Duration::default(),
            stage_section: states::utils::StageSection::Buildup,
            exhausted: false,
        }),
        &seen_before(true),
        &with_axe(),
    );

    assert_eq!(
        result,
        SfxEvent::Attack(CharacterAbilityType::BasicMelee, ToolKind::Axe)
    );
}
