"""What a run costs on a simulated Anthropic bill, beside other ways to place cache breakpoints."""
