"""Features together: every pair of them runs, answers, resumes, and agrees with `estimate`."""
