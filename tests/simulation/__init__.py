"""Years of a team in virtual time: the real deciding code, everything else simulated, faults at every effect."""
