"""`anarchon demo`: real processes, one of them killed, and a tally that does not ask the store.

The way through the rooms: `command` has the options and a `store`; `play` has the instances
started by the `cast` (as `processes`, each an `instance` with the `jobs`), one of them killed and
replaced. What the bodies of the jobs say (`records`) goes to the `stage`, which knows who runs what
and is shown by `screen` or `plain`; and to the `tally`, the judge, whose verdict `report` tells.
"""
