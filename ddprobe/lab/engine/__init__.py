"""The lab's inference engine: a small target and a block drafter that really draft, and verify token by token.

Nothing here knows a commit length. What a scenario sets is how the parts work (`Mechanism`, `Law`, `Books`); what
comes out is counted from what the target took of what the drafter proposed.
"""
