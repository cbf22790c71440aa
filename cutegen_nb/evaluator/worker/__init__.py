"""Code that runs inside the child processes: template, workers, the two sides of an isolated judgement."""
