common-items-npc_weapons-unique-akhlut =
    .name = Quad Med Basic
    .desc = testing123
common-items-npc_weapons-unique-gloomfish =
    .name = Gloomfish
    .desc = It is dark in there.
