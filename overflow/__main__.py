"""`python -m overflow`, the same as the command `overflow`."""

from overflow.cli import main

if __name__ == "__main__":
    main()
