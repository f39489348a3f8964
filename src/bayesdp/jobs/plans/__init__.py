"""How what a job leaves open is chosen for its goal."""
