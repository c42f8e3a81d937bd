"""The contract of a store: every guarantee of the engine as tests that any implementation can run.

Subclass it where your tests are, and give it four fixtures:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self): ...   # a Store on a fresh database with the schema and no channels
        @pytest.fixture
        def clock(self): ...   # a carrick.testing.Clock that shifts that database's clock
        @pytest.fixture
        def outbox(self): ...  # an Outbox over the store
        @pytest.fixture
        def connect(self): ... # opens connections of an application to the same database

G1 atomic: PutContract, CallerContract. G2 not lost: PruneContract, OutcomeContract. G3 fenced: LeaseContract.
G4, G5 groups: OrderedContract, CoalesceContract. G6 once put: KeyContract.
G7 outages are free: GateContract, HalfOpenContract. G8 fair: FairnessContract, PriorityContract.
G9 one clock: ClaimContract. G10 explained: StandingContract, AttemptsContract.
"""

from __future__ import annotations

from carrick.testing.contract.attempts import AttemptsContract
from carrick.testing.contract.backlog import BacklogContract
from carrick.testing.contract.caller import CallerContract
from carrick.testing.contract.claim import ClaimContract, PriorityContract, UnfairContract
from carrick.testing.contract.coalesce import CoalesceContract, DebounceContract
from carrick.testing.contract.expiry import ExpiryContract
from carrick.testing.contract.fairness import FairnessContract
from carrick.testing.contract.finding import DeadContract, FindContract
from carrick.testing.contract.fresh import FinishAndClaimContract, FreshContract
from carrick.testing.contract.gate import GateContract
from carrick.testing.contract.half_open import HalfOpenContract
from carrick.testing.contract.keys import KeyContract
from carrick.testing.contract.lease import LeaseContract
from carrick.testing.contract.listing import DiscardContract, ListingContract
from carrick.testing.contract.ordered import OrderedContract
from carrick.testing.contract.outcome import OutcomeContract
from carrick.testing.contract.put import DeclareContract, PutContract
from carrick.testing.contract.receipts import GivenIdContract, ReceiptContract
from carrick.testing.contract.rest import DutyContract, RestContract
from carrick.testing.contract.standing import StandingContract
from carrick.testing.contract.upkeep import PruneContract, RedriveContract, StatsContract


class StoreContract(
    PutContract,
    CallerContract,
    DeclareContract,
    KeyContract,
    GivenIdContract,
    ReceiptContract,
    BacklogContract,
    ClaimContract,
    PriorityContract,
    UnfairContract,
    FreshContract,
    FinishAndClaimContract,
    FairnessContract,
    OrderedContract,
    CoalesceContract,
    DebounceContract,
    LeaseContract,
    OutcomeContract,
    ExpiryContract,
    GateContract,
    HalfOpenContract,
    RestContract,
    DutyContract,
    RedriveContract,
    DiscardContract,
    DeadContract,
    FindContract,
    PruneContract,
    ListingContract,
    StatsContract,
    StandingContract,
    AttemptsContract,
):
    """All rules of a store together."""
