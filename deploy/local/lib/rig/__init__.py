"""Sets up, runs and drives a whole Afterthoughts on one machine: for the commands of deploy/local and for Tests/Journey."""
