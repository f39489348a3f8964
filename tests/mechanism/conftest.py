"""Two host devices, so that spreading over devices is tested; asked for before JAX starts."""

from bayesdp.mechanism import use_host_cores

use_host_cores(2)
