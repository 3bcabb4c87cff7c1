"""What hosts share besides sessions, wherever a configuration keeps those (O3): in files of this machine for a
directory, in the bucket itself for a bucket. Those that a run asks have one patience with it."""

from collections.abc import Callable

from hummingbird.adapters.stores.bucket_known_failures import BucketKnownFailures
from hummingbird.adapters.stores.bucket_reactions import BucketReactions
from hummingbird.adapters.stores.bucket_spending import BucketSpending
from hummingbird.adapters.stores.exchanging import Patience
from hummingbird.adapters.stores.known_failures import SqliteKnownFailures
from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.adapters.stores.reactions import SqliteReactions
from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.assembly.keeping import SPENDING
from hummingbird.assembly.places import Places
from hummingbird.config.settings import Settings
from hummingbird.ports.known_failures import KnownFailures
from hummingbird.ports.reactions import Reactions
from hummingbird.ports.spending import Spending


def spending_of(
    places: Places, settings: Settings, now: Callable[[], float], patience: Patience | None = None
) -> Spending:
    """Nothing is opened yet. One for all runs of a process: what they spend at the same time is then one write."""
    if not places.remote:
        return SqliteSpending(places.sessions / SPENDING, now)
    return BucketSpending(BucketObjects(places.remote, ca_bundle=settings.ca_bundle), places.remote, now, patience)


def known_failures_of(places: Places, settings: Settings, patience: Patience | None = None) -> KnownFailures:
    """Nothing is opened yet."""
    if not places.remote:
        return SqliteKnownFailures(places.known_failures)
    return BucketKnownFailures(BucketObjects(places.remote, ca_bundle=settings.ca_bundle), places.remote, patience)


def reactions_of(places: Places, settings: Settings, patience: Patience | None = None) -> Reactions:
    """Nothing is opened yet."""
    if not places.remote:
        return SqliteReactions(places.votes)
    return BucketReactions(BucketObjects(places.remote, ca_bundle=settings.ca_bundle), places.remote, patience)
