"""The cells of a large CSV file by Arrow's reader, which is written in C++ and takes a fraction of the time.

It reads what the module `csv` reads, or nothing: whatever looks as if the two might differ is left to that module. That
one also knows the lines that messages name.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

LARGE = 1 << 20
"""Files of fewer bytes are read before Arrow is even loaded."""


def arrow_columns(path: Path, names: list[str], delimiter: str) -> list[list[str]] | None:
    """The cells of each column, without blanks around them; `names` as the header writes them. None: cannot tell.

    The file is in UTF-8 and not empty.
    """
    if path.stat().st_size < LARGE:
        return None
    try:
        import pyarrow
        from pyarrow import compute
        from pyarrow import csv as arrow
    except ImportError:
        return None
    content = path.read_bytes()
    if _odd_quotes(content, delimiter):
        return None
    try:
        table = arrow.read_csv(
            pyarrow.BufferReader(content),
            parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
            convert_options=arrow.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string())),
        )
    except pyarrow.ArrowException:
        return None
    if table.column_names != names:
        return None
    trimmed = (compute.utf8_trim_whitespace(column) for column in table.columns)
    return [column.to_numpy(zero_copy_only=False).tolist() for column in trimmed]


def _odd_quotes(content: bytes, delimiter: str) -> bool:
    """Whether a quote is never closed, or stands where a cell neither begins nor ends."""
    if b'"' not in content:
        return False
    if content.count(b'"') % 2:
        return True
    other = rf'[^{re.escape(delimiter)}\n\r"]'.encode()
    return re.search(other + b'"' + other, content) is not None


def line_of(path: Path, delimiter: str, row: int) -> int:
    """The line that a row ends in, counted from 1 as an editor does; rows are counted from 0, after the header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader)
        count = -1
        for cells in reader:
            count += bool(cells)
            if count == row:
                return reader.line_num
    raise IndexError(row)
