"""The tools that the model may call, and the code that runs a batch of calls, checks permissions and shapes results."""
