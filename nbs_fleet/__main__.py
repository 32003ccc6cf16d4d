"""`python -m nbs_fleet` is the command `nbs-fleet`."""

from nbs_fleet.cli.app import main

if __name__ == "__main__":
    main()
