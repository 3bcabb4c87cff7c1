"""What a loop costs around the model: CPU per turn, first call, import. No framework is imported here."""
