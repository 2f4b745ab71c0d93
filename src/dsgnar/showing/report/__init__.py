"""Reports about runs that have ended: `dsgnar show` prints a table, `dsgnar report` writes a page that works offline.

recorded.py   the files of a run directory
facts.py      what they say, in words and numbers
charts.py     charts of the course of a run, or of several runs
maps.py       charts of a solution: its values and errors on planes
page.py       the page: page.html, style.css, page.js and plotly.js in one file
result.py     its first part: what was reached
sections.py   its other parts
markup.py     pieces of HTML that they are made of
table.py      the table for a terminal
"""

from dsgnar.showing.report.page import write
from dsgnar.showing.report.recorded import Recorded, read
from dsgnar.showing.report.table import table

__all__ = ["Recorded", "read", "table", "write"]
