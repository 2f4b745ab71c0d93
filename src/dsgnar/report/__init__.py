"""Reading a run that has ended: `dsgnar show` prints a table of it, `dsgnar report` writes a page that needs no network.

recorded.py   the files of a run directory
facts.py      what they say, in words and numbers
charts.py     what is drawn of a run: its course, alone or over others
fields.py     what is drawn of a solution: itself and its error on planes
page.py       the page: page.html, style.css, page.js and plotly.js in one file
sections.py   the parts of the page
table.py      the table for a terminal
"""

from dsgnar.report.page import write
from dsgnar.report.recorded import Recorded, read
from dsgnar.report.table import table

__all__ = ["Recorded", "read", "table", "write"]
