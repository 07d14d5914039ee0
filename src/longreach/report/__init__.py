"""Values to text, JSON and Markdown. Pure.

May import every room below `cli`.
"""
