"""The probes, one per file, in the order in which they are shown; each is known by its `name`."""

from fairtrial.tracks.audit.probe import Probe
from fairtrial.tracks.audit.probes.answers import Answers
from fairtrial.tracks.audit.probes.date import Date
from fairtrial.tracks.audit.probes.endings import Endings
from fairtrial.tracks.audit.probes.hooks import Hooks
from fairtrial.tracks.audit.probes.links import Links
from fairtrial.tracks.audit.probes.nothing import Nothing
from fairtrial.tracks.audit.probes.offline import OfflineProbe
from fairtrial.tracks.audit.probes.order import Order
from fairtrial.tracks.audit.probes.programs import Programs
from fairtrial.tracks.audit.probes.secrets import Secrets
from fairtrial.tracks.audit.probes.shadows import Shadows
from fairtrial.tracks.audit.probes.solution import SolutionProbe
from fairtrial.tracks.audit.probes.stub import Stub
from fairtrial.tracks.audit.probes.tests import Tests

PROBES: tuple[type[Probe], ...] = (
    *(SolutionProbe, Nothing, Answers, OfflineProbe, Date, Stub, Tests, Hooks, Shadows, Programs, Endings),
    *(Secrets, Links, Order),
)
NAMES = tuple(probe.name for probe in PROBES)
