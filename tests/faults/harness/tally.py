"""What trials left behind, counted, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from faults.harness import invariants
from faults.harness.invariants import Evidence


@dataclass
class Tally:
    """The counts of one or several experiments."""

    runs: int = 0
    reports: int = 0
    checkpoints: int = 0
    lines: int = 0
    """Lines that trials printed."""
    unsaved_lines: int = 0
    """Those of lost supervisors that are missing in logs that say so, and those that fell with nodes."""
    unsent_reports: int = 0
    """Those that fell with nodes, which nobody starts again, before they were sent."""
    violations: list[str] = field(default_factory=list)
    """What must not be."""

    def add(self, evidence: Evidence) -> None:
        """Judges an experiment that has ended, and counts what it left."""
        self.violations += invariants.violations(evidence)
        self.unsaved_lines += evidence.unsaved_lines
        self.unsent_reports += evidence.unsent_reports
        self.runs += len(evidence.journals)
        for journal in evidence.journals.values():
            self.reports += journal.made.total()
            self.checkpoints += len(journal.stored)
            self.lines += len(journal.printed)
