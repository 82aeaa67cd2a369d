"""The thread API that programs for Agent Bridge use."""
