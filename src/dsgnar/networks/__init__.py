"""Networks (paper, section 4.3 and Appendix B): embeddings, MLP, SIREN, GaborNet, SPINN."""

from dsgnar.networks.base import Architecture, cast, check_network, count_parameters
from dsgnar.networks.embeddings import Embedding, Inputs, embed
from dsgnar.networks.gabor import GaborNet
from dsgnar.networks.mlp import MLP
from dsgnar.networks.siren import Siren
from dsgnar.networks.spinn import SPINN

__all__ = [
    "MLP",
    "SPINN",
    "Architecture",
    "Embedding",
    "GaborNet",
    "Inputs",
    "Siren",
    "cast",
    "check_network",
    "count_parameters",
    "embed",
]
