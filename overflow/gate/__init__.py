"""The mutation gate: it breaks a subject on purpose, one way at a time, and demands that the laws notice.

A run of the laws that is green proves that they ran; the gate proves that they would have gone red. It never judges a
subject itself: that is `overflow check`. DESIGN.md, principle 4 and "Command line" (`overflow mutate`).
"""
