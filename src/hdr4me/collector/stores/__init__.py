"""Where reports are stored: one folder for each database, behind one protocol."""
