"""`python -m longreach`."""

from longreach.cli.main import main

if __name__ == "__main__":
    main()
