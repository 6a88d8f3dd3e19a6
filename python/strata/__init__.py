"""Strata: neural networks from INI files and plugins, planned for a device.

    net = strata.load("net.ini")
    y = net(image=x)["prob"]

docs/python.md has it all.
"""

from ._errors import (ArgumentError, Busy, DeviceLost, Error, NotFound, OutOfMemory, ParseError,
                      Place, Unsupported)
from ._layers import Layer, layer
from ._network import Binding, Dimension, Network, Profile, build, load
from ._outputs import Outputs
from ._strata import Session, Tensor, pinned_empty, stack
from ._strata import version as __version__

__all__ = ["ArgumentError", "Binding", "Busy", "DeviceLost", "Dimension", "Error", "Layer",
           "Network", "NotFound", "OutOfMemory", "Outputs", "ParseError", "Place", "Profile",
           "Session", "Tensor", "Unsupported", "__version__", "build", "layer", "load",
           "pinned_empty", "stack"]
