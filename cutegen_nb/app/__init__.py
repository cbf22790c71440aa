"""Work that the command line and the notebook share: doctor, export, replay, options, output."""
