"""HTML page of a session, and the HTML views that the notebook shares with it."""
