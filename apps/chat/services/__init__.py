"""Writes of conversations: sessions, turns, messages."""
