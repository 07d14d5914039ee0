"""argv to a call, a rendering and an exit code; the only room that prints and exits.

May import every room.
"""
