import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage

/// The steps of the demo, one after the other, and what came of them.
enum Demo {
    /// A step: what it shows, and what does it.
    struct Step: Sendable {
        var title: String
        var run: @Sendable (DemoStage) async throws -> [String]
    }

    private static let steps: [Step] =
        DemoRequests.steps + DemoHosts.steps + DemoTransfers.steps + DemoDownloads.steps + DemoTasks.steps
        + DemoFaults.steps + DemoQueue.steps

    /// Runs all steps.
    /// - Returns: Whether every step was as it should be.
    static func run() async -> Bool {
        let stage: DemoStage
        do {
            stage = try await DemoStage.set()
        } catch {
            await Console.complain("martlet: the demo could not begin: \(error)\n")
            return false
        }
        await say(
            "The origin listens on \(stage.origin.base), trusted through its throw-away authority alone.\n"
                + "In the pictures: c connecting, t TLS, . sending and waiting, r receiving.\n")
        let start = ContinuousClock.now
        var failures = 0
        for (index, step) in steps.enumerated() {
            await say("\n\(index + 1). \(step.title)\n")
            do {
                for line in try await step.run(stage) { await say("   \(line)\n") }
                await say("   ok\n")
            } catch {
                failures += 1
                await say("   FAILED: \(error)\n")
            }
        }
        let status = stage.session.poolStatus
        await say(
            "\nConnections: \(status.opened) opened, \(status.reused) exchanges on one that had carried another before, "
                + "\(status.leased) in use now.\n")
        await stage.clear()
        let time = ProgressText.time(ContinuousClock.now - start)
        await say(
            failures == 0
                ? "All \(steps.count) steps as they should be, in \(time).\n" : "\(failures) failed.\n")
        return failures == 0
    }

    private static func say(_ text: String) async {
        try? await Console.write(text)
    }
}
