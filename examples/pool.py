"""How much does a beam bend whose stiffness is uncertain? By a pool of UM-Bridge servers, which share the work.

    python examples/pool.py [--servers 2] [--budget 4]

Each server evaluates one model at a time, as one with a container and a licence of its own would. An evaluation goes to
a server that is free, whatever the level of the model. Here all servers are processes of this machine; on a cluster
their addresses are those of other machines. Needs umbridge: pip install umbridge.
"""

import argparse
import functools
import queue
import socket
import subprocess
import sys
import time

import numpy as np
from scipy import stats

import amsbq

INPUTS = {"left": stats.lognorm(0.2), "right": stats.lognorm(0.2)}  # stiffness of both halves


def serve(port):
    """Serve the model on this machine only: the deflection of a beam with a load, by sums over cells."""
    import umbridge
    from aiohttp import web

    class Beam(umbridge.Model):
        def get_input_sizes(self, config):
            return [2]

        def get_output_sizes(self, config):
            return [1]

        def supports_evaluate(self):
            return True

        def __call__(self, parameters, config):
            time.sleep(0.2 if config["cells"] == 256 else 0.02)  # what a real one would compute
            return [[deflection(*parameters[0], config["cells"])]]

    web.run_app = functools.partial(web.run_app, host="127.0.0.1")  # umbridge serves the whole network by itself
    umbridge.serve_models([Beam("beam")], port)


def deflection(left, right, cells):
    """Return the deflection of the middle, by the principle of virtual work, with a kink where the stiffness jumps."""
    x = (np.arange(cells) + 0.5) / cells
    moment, of_unit_load = x * (1 - x) / 2, np.minimum(x, 1 - x) / 2
    return float(384 / 5 * np.mean(moment * of_unit_load / np.where(x < 0.5, left, right)))


class Pool:
    """Servers of the same models; each evaluates one at a time."""

    def __init__(self, urls):
        self.urls, self.free = list(urls), queue.SimpleQueue()
        self.busy = dict.fromkeys(self.urls, 0.0)  # seconds
        for url in self.urls:
            self.free.put(url)

    def model(self, name, config):
        """Return a model with a configuration as a function, which waits for a server that is free."""
        models = {url: amsbq.external.UMBridge(url, name, config) for url in self.urls}

        def evaluate(x):
            url = self.free.get()
            start = time.perf_counter()
            try:
                return models[url](x)
            finally:
                self.busy[url] += time.perf_counter() - start
                self.free.put(url)

        return evaluate


def started(port):
    """Start a server, and return its process once it answers."""
    process = subprocess.Popen([sys.executable, __file__, "--serve", str(port)], stdout=subprocess.DEVNULL)
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise RuntimeError(f"there is no server on port {port}")


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=4.0)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    ports, processes = [free_port() for _ in range(options.servers)], []
    try:
        processes += [started(port) for port in ports]
        pool = Pool(f"http://127.0.0.1:{port}" for port in ports)
        sources = [
            amsbq.Source(pool.model("beam", {"cells": 256}), name="256 cells"),
            amsbq.Source(pool.model("beam", {"cells": 8}), name="8 cells", cost=0.1),
        ]
        start = time.perf_counter()
        print(amsbq.integrate(sources, INPUTS, budget=options.budget, workers=options.servers, seed=0))
        elapsed = time.perf_counter() - start
        for url, busy in pool.busy.items():
            print(f"{url} was busy for {busy:.1f} of {elapsed:.1f} s")
        print(f"the truth is {np.exp(0.02):.5f}")
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
