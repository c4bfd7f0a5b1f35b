"""Every saboteur, by its name."""

from overflow.contract.saboteurs import of_answers, of_nodes  # noqa: F401 - they register themselves
from overflow.contract.saboteurs.saboteur import SABOTEURS, Sabotaged, Saboteur, sabotaged

__all__ = ["SABOTEURS", "Sabotaged", "Saboteur", "sabotaged"]
