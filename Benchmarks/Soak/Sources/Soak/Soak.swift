import Glibc

/// The program of the long scenarios: each runs in a separate process and prints its figures with their targets.
@main
struct Soak {
    /// Runs the program: `soak SCENARIO [--minutes N] [--count N] [--seed N]`, or `soak list`.
    ///
    /// The exit status is 1 if a target is not met or the scenario fails, and 64 for unknown words.
    static func main() async {
        // The other processes of a scenario run this program again.
        if CommandLine.arguments.dropFirst().first == "serve" {
            await PeerProcess.run(Array(CommandLine.arguments.dropFirst(2)))
        }
        guard let options = SoakOptions(Array(CommandLine.arguments.dropFirst())) else {
            print("usage: soak list | SCENARIO [--minutes N] [--count N] [--seed N]")
            exit(64)
        }
        if options.name == "list" {
            for scenario in scenarios { print(scenario.name) }
            exit(0)
        }
        guard let scenario = scenarios.first(where: { $0.name == options.name }) else {
            print(
                "soak: no scenario is called \(options.name): \(scenarios.map(\.name).joined(separator: ", "))"
            )
            exit(64)
        }
        var report = SoakReport(name: scenario.name)
        let start = ContinuousClock.now
        do {
            try await scenario.run(options, &report)
        } catch {
            report.add("completion of the scenario", "failed: \(error)", target: "no error", isMet: false)
        }
        report.finish(after: ContinuousClock.now - start)
        exit(report.isMet ? 0 : 1)
    }

    /// All scenarios in the order of their runs.
    private static let scenarios: [any SoakScenario] = [
        InFlight(name: "in-flight", isSecure: false, bytesTarget: 12 * 1024),
        InFlight(name: "in-flight-tls", isSecure: true, bytesTarget: 60 * 1024),
        DescriptorLimit(),
        Abandoned(name: "cancelled", way: .cancelling),
        Abandoned(name: "timed-out", way: .timingOut),
        KeepAlive(),
        DeadHost(),
        SlowConsumer(),
        CacheKills(),
        CacheProcesses(),
        CacheLimit(name: "cache-limit", maximum: 10_000_000),
        CacheLimit(name: "cache-small", maximum: 3000),
        CacheOpening(),
        CacheSharing(),
        DownloadKills(),
        DownloadMemory(),
        QueueKills(),
        QueueLoad(),
        Storm(),
        WebSocketStorm(),
    ]
}
