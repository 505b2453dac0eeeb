import FoundationEssentials
import Martlet
package import MartletCore
import MartletTesting

/// The steps of `martlet demo`.
package enum Demo {
    struct Step: Sendable {
        var title: String
        var run: @Sendable (DemoEnvironment) async throws -> [String]
    }

    private static let steps: [Step] =
        DemoRequests.steps + DemoHosts.steps + DemoTransfers.steps + DemoDownloads.steps + DemoTasks.steps
        + DemoFaults.steps + DemoQueue.steps

    /// Runs all steps in order, and reports their results with `say`. `makeSession` creates the sessions of the steps.
    /// - Returns: Whether no step failed.
    /// - Throws: An error if the origin cannot start, or if the temporary directory cannot be created.
    package static func run(
        makeSession: @escaping @Sendable (SessionConfiguration) -> HTTPSession, say: (String) async -> Void
    ) async throws -> Bool {
        let stage = try await DemoEnvironment(makeSession)
        await say(
            "The origin listens on \(stage.origin.base), and only its temporary authority is trusted.\n"
                + "In the charts: c connecting, t TLS, . sending and waiting, r receiving.\n")
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
            "\nConnections: \(status.opened) opened, \(status.reused) times reused, \(status.leased) in use now.\n")
        await stage.clear()
        let time = Timeline.milliseconds(ContinuousClock.now - start)
        await say(failures == 0 ? "All \(steps.count) steps succeeded in \(time).\n" : "\(failures) failed.\n")
        return failures == 0
    }
}

struct DemoError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

func check(_ condition: Bool, _ description: @autoclosure () -> String) throws(DemoError) {
    if !condition { throw DemoError(description()) }
}

/// Throws a ``DemoError`` if a value differs from the expected one. `name` is the value's name in the message.
func check<Value: Equatable>(_ name: String, _ value: Value, is expected: Value) throws(DemoError) {
    try check(value == expected, "\(name) is \(value), expected \(expected)")
}

/// The shared objects of the steps: an origin, a session that trusts it, and a directory.
struct DemoEnvironment: Sendable {
    let origin: TestOrigin
    let session: HTTPSession
    let directory: FilePath
    private let makeSession: @Sendable (SessionConfiguration) -> HTTPSession

    init(_ makeSession: @escaping @Sendable (SessionConfiguration) -> HTTPSession) async throws {
        self.makeSession = makeSession
        let directory = FileManager.default.temporaryDirectory.appending(path: "martlet-demo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        origin = try await TestOrigin.start(.tls(.trusted), handler: StandardRoutes().handler)
        session = makeSession(DemoEnvironment.configuration(trusting: origin))
        self.directory = FilePath(directory.path)
    }

    /// A configuration that trusts only the certificate authority of an origin.
    private static func configuration(trusting origin: TestOrigin) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        // A proxy of the environment does not reach origins on loopback.
        configuration.proxy = .none
        // Long enough for a slow machine.
        configuration.timeouts.connect = .seconds(120)
        if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
        return configuration
    }

    func session(trusting origin: TestOrigin) -> HTTPSession {
        makeSession(DemoEnvironment.configuration(trusting: origin))
    }

    func clear() async {
        await origin.stop()
        try? FileManager.default.removeItem(atPath: directory.string)
    }

    func request(_ method: HTTPRequest.Method, _ path: String) throws -> HTTPRequest {
        try HTTPRequest(method: method, url: origin.url(path))
    }
}

/// The times of the phases of a request, as a chart of one line.
package enum Timeline {
    private static let width = 32

    /// A line such as `GET /json 200 [cct.......rr]  connect 0.2 ms, TLS 3.1 ms, first byte 4.0 ms, total 4.2 ms`.
    static func line(_ title: String, _ metrics: HTTPMetrics) -> String {
        let connect = (metrics.dns ?? .zero) + (metrics.connect ?? .zero)
        let tls = metrics.tls ?? .zero
        let first = metrics.firstByte ?? metrics.total
        let total = max(metrics.total, first)
        let marks: [(Character, Duration)] = [("c", connect), ("t", connect + tls), (".", first), ("r", total)]
        let picture = String(
            (0..<width).map { column in
                let time = total * (Double(column) + 0.5) / Double(width)
                return marks.first { time <= $0.1 }?.0 ?? "r"
            })
        let opening =
            metrics.isConnectionReused ? "reused" : "connect \(milliseconds(connect)), TLS \(milliseconds(tls))"
        let padding = String(repeating: " ", count: max(0, 24 - title.count))
        return "\(title)\(padding) [\(picture)]  \(opening), first byte \(milliseconds(first)), "
            + "total \(milliseconds(total))"
    }

    /// A duration in milliseconds, with one decimal.
    package static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(1) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
