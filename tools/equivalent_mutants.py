"""Mutants of the Lua scripts that no test can tell from the original, each with its reason.

Named by file, line of code, kind and number (tools/mutants.py). An entry that is caught after all,
or whose line is gone, is reported by tools/mutate_scripts.py.
"""

from __future__ import annotations

_SAME_VALUE = "where both are equal, the value that stands there already is written again"

EQUIVALENT: dict[tuple[str, str, str, int], str] = {
    (
        "lib/others.lua",
        "if a.order ~= b.order then return a.order < b.order end",
        "compare",
        2,
    ): "the orders differ on this branch",
    (
        "lib/record.lua",
        "if r.open and r.finish > now + r.granted then",
        "compare",
        1,
    ): _SAME_VALUE,
    (
        "lib/trim.lua",
        (
            "if to > number_in(redis.call('HGET', STATE, field)) then"
            " redis.call('HSET', STATE, field, whole(to)) end"
        ),
        "compare",
        1,
    ): _SAME_VALUE,
}
