from hdr4me.accounting.shuffling import Amplification as Amplification
from hdr4me.accounting.shuffling import amplification as amplification
from hdr4me.accounting.shuffling import local_epsilon as local_epsilon
