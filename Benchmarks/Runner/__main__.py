"""make bench: compares Martlet with its peers in alternating runs against nginx on this machine."""

import argparse
import fnmatch
import json
import os
import resource
import signal
import sys
import time

import cache_scenarios
import chart
import connection_scenarios
import cost_scenarios
import download_scenarios
import machine
import page
import requests_scenarios
import terminal
import transfer_scenarios
import websocket_scenarios
from bench import Bench
from fault import Fault
from nginx import Nginx
from programs import BENCHMARKS
from results import Results


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three rounds, shorter runs, smaller files")
    parser.add_argument("--only", default="", help="scenarios to run: names or patterns, joined by commas")
    parser.add_argument("--with", dest="contenders", default="", help="contenders to run: the same")
    parser.add_argument("--rounds", type=int, help="rounds (5; quick: 3)")
    parser.add_argument("--seconds", type=float, help="how long a run of requests takes (2; quick: 0.5)")
    parser.add_argument("--list", action="store_true", help="name the scenarios and their contenders")
    parser.add_argument("--out", default=f"{BENCHMARKS}/.results", help="where the results are written")
    return parser.parse_args()


def matches(name, patterns):
    """Whether a name matches the requested ones; without requested names all match."""
    wanted = [pattern for pattern in patterns.replace(",", " ").split() if pattern]
    return not wanted or any(fnmatch.fnmatch(name, pattern) for pattern in wanted)


def chosen(bench, options):
    """The requested scenarios with the requested contenders."""
    modules = [requests_scenarios, transfer_scenarios, download_scenarios, connection_scenarios, cost_scenarios,
               cache_scenarios, websocket_scenarios]
    for module in modules:
        for scenario in module.scenarios(bench):
            if not matches(scenario.name, options.only):
                continue
            scenario.contenders = {
                name: call for name, call in scenario.contenders.items() if matches(name, options.contenders)}
            scenario.bars = [
                bar for bar in scenario.bars
                if bar.of in scenario.contenders and (not bar.beside or bar.beside in scenario.contenders)]
            if scenario.contenders:
                yield scenario


def measure(scenario, rounds):
    """Runs the contenders in alternation: A B A B …"""
    results = Results(scenario)
    if scenario.prepare:
        scenario.prepare()
    for _ in range(scenario.rounds or rounds):
        figures = {}
        for name, call in scenario.contenders.items():
            if name in results.faults:
                continue
            try:
                figures[name] = call()
            except Fault as fault:
                results.faults[name] = str(fault)
        results.rounds.append(figures)
    return results


def raise_limits():
    """Raises the descriptor limit of this process and its children to the maximum."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def write(everything, where, options, rounds, folder):
    """Writes tables, charts and page to a directory."""
    command = "make bench" + "".join(
        f" {name}='{value}'" for name, value in [
            ("QUICK", "1" if options.quick else ""), ("ONLY", options.only), ("WITH", options.contenders),
            ("ROUNDS", options.rounds), ("SECONDS", options.seconds)] if value)
    record = {"command": command, "machine": where, "rounds": rounds,
              "scenarios": [results.record() for results in everything]}
    files = {
        "results.json": json.dumps(record, indent=1, ensure_ascii=False) + "\n",
        "results.svg": chart.draw(everything),
        "headlines.svg": chart.headlines(everything),
        "RESULTS.md": page.write(everything, where, command, rounds, "results.svg")}
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def main():
    """Runs the requested scenarios."""
    options = arguments()
    sys.stdout.reconfigure(line_buffering=True, encoding="utf-8")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds = options.rounds or (3 if options.quick else 5)
    with Nginx(raise_limits(), holds_briefly=options.quick) as server:
        bench = Bench(server, options.quick, options.seconds)
        scenarios = list(chosen(bench, options))
        if options.list:
            for scenario in scenarios:
                print(f"{scenario.name:16} {scenario.title}: {', '.join(scenario.contenders)}")
            return
        if not scenarios:
            raise Fault("no scenario has that name; --list shows them")
        where = machine.describe()
        print(f"{where['processors']}, {where['system']}, load {where['load']}")
        began = time.monotonic()
        everything = []
        for scenario in scenarios:
            results = measure(scenario, rounds)
            terminal.show(results)
            everything.append(results)
            # After each scenario, so that an interrupted run keeps what it measured.
            write(everything, where, options, rounds, options.out)
        terminal.show_summary(everything)
        print(f"\n{rounds} rounds, {time.monotonic() - began:.0f} s")
        is_whole = not (options.quick or options.only or options.contenders or options.rounds or options.seconds)
        if is_whole:
            write(everything, where, options, rounds, BENCHMARKS)
        print(f"written: {os.path.relpath(BENCHMARKS if is_whole else options.out)}/RESULTS.md and its pictures")


if __name__ == "__main__":
    try:
        main()
    except Fault as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
