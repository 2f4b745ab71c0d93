"""Networks (paper, section 4.3 and Appendix B): what a person writes down, and the function that it becomes.

Any callable pytree from one point to the unknowns there can take their place (`check_network` says what it lacks).

    base         what all have in common: descriptions, affine maps, initial values, checks
    embeddings   what a network sees of a point: coordinates, periodic or Fourier features
    mlp          tanh layers with trained scales
    siren        sine layers with trained frequencies
    gabor        one layer of Gabor filters
    spinn        a separable network: one branch per coordinate
    composed     beside a network: small ones of fewer axes, and coefficients
    parameters   the parameters of any network as one vector theta
"""

from dsgnar.networks.base import Architecture, begun_at, cast, check_network, count_parameters
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
    "begun_at",
    "cast",
    "check_network",
    "count_parameters",
    "embed",
]
