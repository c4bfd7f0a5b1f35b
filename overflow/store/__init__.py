"""The reference memory store of the Overflow Tree design, on SQLite.

It knows embedders and divisions, and nothing of the contract that checks it. DESIGN.md, "Layout".
"""

from overflow.store.health import Health
from overflow.store.memory_store import MemoryStore, Nodes, Stored
from overflow.store.reconstruct import Item, Quote
from overflow.store.records import Ref, Scope
from overflow.store.repair import Repaired
from overflow.store.search import Hit
from overflow.store.worker import Drained

__all__ = ["Drained", "Health", "Hit", "Item", "MemoryStore", "Nodes", "Quote", "Ref", "Repaired", "Scope", "Stored"]
