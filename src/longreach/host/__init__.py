"""Read this machine; run processes bound to it. The shell's hands.

May import `plan` and the rooms below it.
"""
