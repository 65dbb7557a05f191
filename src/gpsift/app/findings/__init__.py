"""What a reader should know before acting on an answer: kinds and data, and the one place that puts them into words.

Whoever finds something records it as a `Finding`; the terminal, JSON and the page take the words from here.
"""

from gpsift.app.findings.finding import Finding, told
from gpsift.app.findings.kinds import FindingKind
from gpsift.app.findings.sentences import TABLE, WORDS, ordinal

__all__ = ["TABLE", "WORDS", "Finding", "FindingKind", "ordinal", "told"]
