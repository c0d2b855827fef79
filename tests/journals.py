"""Journals written by hand, as the page on them describes: lines with numbers and checksums."""

import zlib

from amsbq.common.serialisation import to_json


def lines_of(events, chained=True):
    """Return the lines of events, the header first; ``chained`` unless its format is older than 3."""
    lines, after = [], ""
    for number, event in enumerate(events, 1):
        body = event if isinstance(event, bytes) else to_json(event).encode()
        if chained:
            body = body[:-1] + b',"line":%d,"after":"%s"}' % (number, after.encode())
        after = f"{zlib.crc32(body):08x}"
        lines.append(body[:-1] + b',"crc":"%s"}\n' % after.encode())
    return lines
