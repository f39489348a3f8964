"""From a job in plain values to a finished folder and back: what the command line and `unlearn` stand on."""
