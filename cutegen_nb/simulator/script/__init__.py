"""Running a whole program on the simulator in a subprocess (``cutegen-nb simulate``)."""
