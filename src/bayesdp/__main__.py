"""`python -m bayesdp`: the program, for whoever has no `bayesdp` on the path."""

from bayesdp.cli import main

if __name__ == "__main__":
    main()
