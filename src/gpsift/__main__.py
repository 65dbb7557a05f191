"""``python -m gpsift``."""

from gpsift.cli import main

if __name__ == "__main__":
    main()
