"""What can be chosen for an import, by name."""

from typing import Literal

GroupBy = Literal["cwd", "branch", "model", "agent", "day"]
