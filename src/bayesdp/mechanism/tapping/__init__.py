"""Fast clipping of any loss: its program is read, tapped where parameters meet a record, and run once for a batch."""

from bayesdp.mechanism.tapping.tapped import Tapped
from bayesdp.mechanism.tapping.ways import Explained

__all__ = ["Explained", "Tapped"]
