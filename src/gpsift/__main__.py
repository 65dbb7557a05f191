"""``python -m gpsift``."""

from gpsift.app.cli import main

if __name__ == "__main__":
    main()
