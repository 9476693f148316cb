from hdr4me.mechanisms.discretize import exact as exact
from hdr4me.mechanisms.registry import mechanism as mechanism
from hdr4me.mechanisms.registry import names as names
from hdr4me.mechanisms.registry import register_mechanism as register_mechanism
