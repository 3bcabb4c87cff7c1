"""Chat with the agent: the terminal interface, its commands and questions, and chat without a terminal (`headless`)."""
