"""A check: asks `engine_server.py` whether an engine is right. Arguments: socket, engine, input, right output."""

import json
import os
import socket
import sys

# pathlib takes as long to import as all the rest.
engine, image, right = (os.path.abspath(path) for path in sys.argv[2:])  # noqa: PTH100
request = {"engine": engine, "input": image, "output": right, "simulator": os.environ["POLYGRAPHY_TRT_SIM"]}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    with connection.makefile("rw") as stream:
        stream.write(json.dumps(request) + "\n")
        stream.flush()
        sys.exit(int(stream.readline()))
