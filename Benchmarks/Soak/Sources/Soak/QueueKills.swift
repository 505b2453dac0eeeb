import Glibc
import Martlet
import MartletTesting

/// A scenario with an offline queue whose sending process is killed two hundred times, before, during and after a
/// request takes effect. Each request must take effect once, and those of a lane in order.
struct QueueKills: SoakScenario {
    let name = "queue-kills"

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 200
        report.note("seed", "\(options.seed)")
        var generator = SeededGenerator(seed: options.seed)
        let serverLog = QueueServerLog()
        let origin = try await TestOrigin.start { request in try await serverLog.take(request) }
        let directory = try CacheDirectory()
        defer { directory.remove() }
        var (kills, submitted, failed) = (0, 0, 0)
        while kills < count {
            let queue = try await SoakQueue.open(directory.path, sends: false)
            for _ in 0..<20 {
                let request = try HTTPRequest(method: .post, url: origin.url("/\(submitted)"))
                try await queue.submit(request, body: .text("\(submitted)"), lane: "\(submitted % 4)")
                submitted += 1
            }
            await queue.close()
            while true {
                let moment = QueueServerLog.Moment.allCases[Int(generator.next() % 3)]
                let skipped = Int(generator.next() % 8)
                let isLast = kills >= count
                let status = try await SoakQueue(directory: directory.path).runAsProcess { process in
                    let strike: @Sendable () -> Void = { _ = kill(process, SIGKILL) }
                    serverLog.strike(at: moment, after: skipped, isLast ? nil : strike)
                }
                if status == nil {
                    kills += 1
                    continue
                }
                if status != 0 { failed += 1 }
                break
            }
        }
        let order = serverLog.order.compactMap { Int($0) }
        let isOrdered = (0..<4).allSatisfy { lane in
            let own = order.filter { $0 % 4 == lane }
            return own == own.sorted()
        }
        report.add("killed", Double(kills), atLeast: Double(count), unit: "times")
        report.add("requests that took effect", serverLog.effectCount, exactly: submitted)
        report.add("distinct requests that took effect", Set(order).count, exactly: submitted)
        report.add("lanes in order", isOrdered ? 4 : 0, exactly: 4)
        report.add("left in the directory", directory.names.count { $0 != "lock" }, exactly: 0)
        report.add("failed runs", failed, exactly: 0)
        report.note("repeated with their key", "\(serverLog.repetitions)")
        await origin.stop()
    }
}
