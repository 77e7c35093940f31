"""Feishu and Lark: one API under two addresses."""
