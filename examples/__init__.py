"""Other faces of the same engine, each short enough to be read at one go."""
